CREATE TABLE kafka_orders (
  `event_time` TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  `partition` INT METADATA VIRTUAL,
  `offset` BIGINT METADATA VIRTUAL,
  order_id STRING,
  amount DOUBLE,
  WATERMARK FOR event_time AS event_time - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = 'localhost:9092',
  'format' = 'json'
);
CREATE TABLE archive (order_id STRING, amount DOUBLE, event_time TIMESTAMP_LTZ(3), part INT, pos BIGINT)
WITH ('connector' = 'filesystem', 'path' = 's3://bucket/archive', 'format' = 'json');
INSERT INTO archive SELECT order_id, amount, event_time, `partition`, `offset` FROM kafka_orders WHERE amount > 20;
