CREATE TABLE web_orders (order_id STRING, amount DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'web', 'format' = 'json');
CREATE TABLE store_orders (order_id STRING, amount DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'store', 'format' = 'json');
CREATE VIEW all_orders AS
SELECT order_id, amount, ts, 'web' AS channel FROM web_orders
UNION ALL
SELECT order_id, amount, ts, 'store' AS channel FROM store_orders;
CREATE TABLE by_channel (channel STRING, window_start TIMESTAMP(3), total DOUBLE) WITH ('connector' = 'print');
INSERT INTO by_channel
SELECT channel, window_start, SUM(amount)
FROM TABLE(TUMBLE(TABLE all_orders, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY channel, window_start, window_end;
