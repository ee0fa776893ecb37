CREATE TABLE payments (
  payment_id STRING,
  amount DECIMAL(10, 2),
  proc_time AS PROCTIME()
) WITH ('connector' = 'kafka', 'topic' = 'payments', 'format' = 'json');
CREATE TABLE unique_payments (payment_id STRING, amount DECIMAL(10, 2)) WITH ('connector' = 'kafka', 'topic' = 'unique', 'format' = 'json');
INSERT INTO unique_payments
SELECT payment_id, amount FROM (
  SELECT payment_id, amount, ROW_NUMBER() OVER (PARTITION BY payment_id ORDER BY proc_time ASC) AS rn FROM payments
) WHERE rn = 1;
