CREATE TABLE sensor_raw (
  device STRING,
  temperature DOUBLE,
  ts BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(ts, 3),
  WATERMARK FOR event_time AS event_time - INTERVAL '5' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'sensors',
  'properties.bootstrap.servers' = 'broker:9092',
  'properties.group.id' = 'sensor-job',
  'scan.startup.mode' = 'latest-offset',
  'format' = 'json',
  'json.ignore-parse-errors' = 'true'
);
CREATE TABLE sensor_minutes (
  device STRING,
  window_start TIMESTAMP(3),
  avg_temp DOUBLE,
  n BIGINT,
  PRIMARY KEY (device, window_start) NOT ENFORCED
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:postgresql://localhost:5432/metrics',
  'table-name' = 'sensor_minutes'
);
INSERT INTO sensor_minutes
SELECT device, window_start, AVG(temperature), COUNT(*)
FROM TABLE(TUMBLE(TABLE sensor_raw, DESCRIPTOR(event_time), INTERVAL '1' MINUTE))
WHERE device IS NOT NULL
GROUP BY device, window_start, window_end;
