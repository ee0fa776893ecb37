CREATE TABLE transactions (
    account_id  BIGINT,
    amount      BIGINT,
    transaction_time TIMESTAMP(3),
    WATERMARK FOR transaction_time AS transaction_time - INTERVAL '5' SECOND
) WITH (
    'connector' = 'kafka',
    'topic'     = 'transactions',
    'properties.bootstrap.servers' = 'kafka:9092',
    'format'    = 'csv'
);
CREATE TABLE spend_report (
    account_id BIGINT,
    log_ts     TIMESTAMP(3),
    amount     BIGINT
,    PRIMARY KEY (account_id, log_ts) NOT ENFORCED) WITH (
   'connector'  = 'jdbc',
   'url'        = 'jdbc:mysql://mysql:3306/sql-demo',
   'table-name' = 'spend_report',
   'driver'     = 'com.mysql.jdbc.Driver',
   'username'   = 'sql-demo',
   'password'   = 'demo-sql'
);
INSERT INTO spend_report
SELECT account_id, TUMBLE_START(transaction_time, INTERVAL '1' HOUR) AS log_ts, SUM(amount) AS amount
FROM transactions WHERE account_id IS NOT NULL GROUP BY account_id, TUMBLE(transaction_time, INTERVAL '1' HOUR);
