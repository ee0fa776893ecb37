DROP TABLE IF EXISTS logs;
DROP TABLE IF EXISTS error_counts;

CREATE TABLE logs (
  host STRING,
  `level` STRING,
  msg STRING,
  log_ts TIMESTAMP(3),
  WATERMARK FOR log_ts AS log_ts - INTERVAL '10' SECONDS
) WITH ('connector' = 'filesystem', 'path' = 'hdfs:///logs', 'format' = 'csv', 'csv.field-delimiter' = ';');

CREATE TABLE error_counts (
  host STRING, window_start TIMESTAMP(3), errors BIGINT
) WITH ('connector' = 'print');

INSERT INTO error_counts
SELECT host, window_start, COUNT(*) AS errors
FROM TABLE(HOP(TABLE logs, DESCRIPTOR(log_ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTES))
WHERE `level` = 'ERROR'
GROUP BY host, window_start, window_end
HAVING COUNT(*) > 1;
