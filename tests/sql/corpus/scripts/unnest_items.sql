CREATE TABLE baskets (
  basket_id STRING,
  items ARRAY<ROW<sku STRING, qty INT>>,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'baskets', 'format' = 'json');
CREATE TABLE basket_lines (basket_id STRING, sku STRING, qty INT) WITH ('connector' = 'print');
INSERT INTO basket_lines SELECT basket_id, sku, qty FROM baskets CROSS JOIN UNNEST(items) AS t (sku, qty);
