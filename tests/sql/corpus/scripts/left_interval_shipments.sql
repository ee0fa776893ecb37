CREATE TABLE o (
  id STRING, item STRING, placed TIMESTAMP(3), WATERMARK FOR placed AS placed - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json');
CREATE TABLE s (
  order_id STRING, carrier STRING, shipped TIMESTAMP(3), WATERMARK FOR shipped AS shipped - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'json');
CREATE TABLE shipped_orders (id STRING, item STRING, carrier STRING) WITH ('connector' = 'print');
INSERT INTO shipped_orders
SELECT o.id, o.item, s.carrier FROM o LEFT JOIN s
ON o.id = s.order_id AND s.shipped BETWEEN o.placed AND o.placed + INTERVAL '2' HOURS;
