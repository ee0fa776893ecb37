CREATE TABLE tx (
  id BIGINT, account STRING, amount DOUBLE, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'tx', 'format' = 'avro');

CREATE TEMPORARY VIEW large_tx AS
SELECT id, account, amount, ts FROM tx WHERE amount > 60;

CREATE TABLE alerts (id BIGINT, account STRING, amount DOUBLE) WITH ('connector' = 'print');
CREATE TABLE per_account (account STRING, window_start TIMESTAMP(3), total DOUBLE) WITH ('connector' = 'print');

INSERT INTO alerts SELECT id, account, amount FROM large_tx;
INSERT INTO per_account
SELECT account, window_start, SUM(amount)
FROM TABLE(TUMBLE(TABLE large_tx, DESCRIPTOR(ts), INTERVAL '30' MINUTES))
GROUP BY account, window_start, window_end;
