SET 'execution.runtime-mode' = 'batch';

CREATE TABLE sales (
  store STRING,
  product STRING,
  qty INT,
  price DECIMAL(8, 2),
  sold_at TIMESTAMP(3)
) WITH (
  'connector' = 'filesystem',
  'path' = '/data/sales',
  'format' = 'csv'
);

SELECT store, product, qty * price AS total
FROM sales
WHERE qty > 3
ORDER BY total DESC, store, product
LIMIT 10;
