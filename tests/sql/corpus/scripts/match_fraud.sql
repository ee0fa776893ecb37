CREATE TABLE transactions (
  account_id BIGINT,
  amount DOUBLE,
  transaction_time TIMESTAMP(3),
  WATERMARK FOR transaction_time AS transaction_time - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'transactions', 'format' = 'csv');
CREATE TABLE fraud_alerts (account_id BIGINT, small DOUBLE, big DOUBLE, alert_time TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO fraud_alerts
SELECT account_id, small, big, alert_time
FROM transactions
MATCH_RECOGNIZE (
  PARTITION BY account_id
  ORDER BY transaction_time
  MEASURES
    A.amount AS small,
    B.amount AS big,
    B.transaction_time AS alert_time
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A B) WITHIN INTERVAL '1' HOUR
  DEFINE
    A AS A.amount < 40,
    B AS B.amount > 70
);
