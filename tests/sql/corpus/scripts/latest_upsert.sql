CREATE TABLE status_changes (
  machine_id STRING,
  status STRING,
  changed_at TIMESTAMP(3),
  WATERMARK FOR changed_at AS changed_at - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'status', 'format' = 'json');
CREATE TABLE latest_status (
  machine_id STRING,
  status STRING,
  changed_at TIMESTAMP(3),
  PRIMARY KEY (machine_id) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'latest', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO latest_status
SELECT machine_id, status, changed_at FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY machine_id ORDER BY changed_at DESC) AS rn FROM status_changes WHERE machine_id IS NOT NULL
) WHERE rn = 1;
