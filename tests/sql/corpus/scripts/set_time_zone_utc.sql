SET 'table.local-time-zone' = 'UTC';
SET 'sql-client.execution.result-mode' = 'tableau';
CREATE TABLE readings_ltz (
  meter STRING,
  kwh DOUBLE,
  read_at TIMESTAMP_LTZ(3),
  WATERMARK FOR read_at AS read_at - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'meters', 'format' = 'json');
CREATE TABLE daily_usage (meter STRING, day_start TIMESTAMP(3), kwh DOUBLE) WITH ('connector' = 'print');
INSERT INTO daily_usage
SELECT meter, window_start, SUM(kwh)
FROM TABLE(TUMBLE(TABLE readings_ltz, DESCRIPTOR(read_at), INTERVAL '1' DAY))
GROUP BY meter, window_start, window_end;
