CREATE TABLE src_events (id STRING, amount DOUBLE, event_ts TIMESTAMP(3), WATERMARK FOR event_ts AS event_ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'e', 'format' = 'json');
CREATE TABLE lake (
  id STRING,
  amount DOUBLE,
  dt STRING,
  `hour` STRING
) PARTITIONED BY (dt, `hour`) WITH (
  'connector' = 'filesystem',
  'path' = 's3://lake/events',
  'format' = 'parquet',
  'sink.partition-commit.policy.kind' = 'success-file'
);
INSERT INTO lake SELECT id, amount, DATE_FORMAT(event_ts, 'yyyy-MM-dd'), DATE_FORMAT(event_ts, 'HH') FROM src_events;
