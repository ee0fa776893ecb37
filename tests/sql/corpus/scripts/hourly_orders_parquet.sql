CREATE TABLE orders (
  order_id STRING,
  customer STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH (
  'connector' = 'filesystem',
  'path' = 'file:///data/orders',
  'format' = 'parquet'
);
CREATE TABLE hourly (
  window_start TIMESTAMP(3),
  window_end TIMESTAMP(3),
  orders BIGINT,
  revenue DECIMAL(38, 2)
) WITH ('connector' = 'filesystem', 'path' = 'file:///data/hourly', 'format' = 'parquet');
INSERT INTO hourly
SELECT window_start, window_end, COUNT(*), SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' HOUR))
GROUP BY window_start, window_end;
