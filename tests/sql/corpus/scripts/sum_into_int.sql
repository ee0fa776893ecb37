CREATE TABLE orders (
    order_id BIGINT, customer_id INT, product STRING, price DECIMAL(10,2), quantity INT, order_ts TIMESTAMP(3),
    proc_time AS PROCTIME(),
    WATERMARK FOR order_ts AS order_ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'kafka:9092', 'properties.group.id' = 'g1',
 'scan.startup.mode' = 'earliest-offset', 'format' = 'json', 'json.ignore-parse-errors' = 'true');
CREATE VIEW per_minute AS SELECT window_time AS rowtime, product, SUM(quantity) AS q FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, window_time, product;
CREATE TABLE per_hour (ws TIMESTAMP(3), product STRING, q INT) WITH ('connector'='print');
INSERT INTO per_hour SELECT window_start, product, SUM(q) FROM TABLE(TUMBLE(TABLE per_minute, DESCRIPTOR(rowtime), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, product;
