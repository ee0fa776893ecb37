CREATE TABLE orders (order_id BIGINT, price DECIMAL(12, 4), order_ts TIMESTAMP(3), WATERMARK FOR order_ts AS order_ts - INTERVAL '5' SECOND)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json');
CREATE OR REPLACE TEMPORARY VIEW dear AS SELECT * FROM `default`.orders WHERE price > 10;
CREATE TABLE rounded (order_id BIGINT, price DECIMAL(10, 1), at_ TIMESTAMP_LTZ(3)) WITH ('connector' = 'print');
INSERT INTO rounded SELECT order_id, price, order_ts FROM `default`.dear;
