CREATE TABLE orders (
  order_id STRING,
  customer_id BIGINT,
  amount DECIMAL(10, 2),
  proc_time AS PROCTIME()
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE customers (
  id BIGINT,
  name STRING,
  country STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'jdbc',
  'url' = 'jdbc:mysql://localhost:3306/crm',
  'table-name' = 'customers',
  'lookup.cache' = 'PARTIAL',
  'lookup.partial-cache.max-rows' = '1000'
);
CREATE TABLE enriched (order_id STRING, amount DECIMAL(10, 2), name STRING, country STRING) WITH ('connector' = 'print');
INSERT INTO enriched
SELECT o.order_id, o.amount, c.name, c.country
FROM orders AS o
JOIN customers FOR SYSTEM_TIME AS OF o.proc_time AS c
ON o.customer_id = c.id;
