CREATE TABLE raw_events (
  event_id STRING,
  user_id STRING,
  event_type STRING,
  event_time TIMESTAMP(3),
  WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'raw_events', 'format' = 'json');
CREATE TABLE unique_events (
  event_id STRING, user_id STRING, event_type STRING, event_time TIMESTAMP(3)
) WITH ('connector' = 'kafka', 'topic' = 'unique_events', 'format' = 'json');
INSERT INTO unique_events
SELECT event_id, user_id, event_type, event_time
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY event_time ASC) AS row_num
  FROM raw_events
)
WHERE row_num = 1;
