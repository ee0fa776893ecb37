CREATE TABLE user_log (
  user_id STRING,
  item STRING,
  log_ts TIMESTAMP(3),
  WATERMARK FOR log_ts AS log_ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'user_log', 'format' = 'json');
CREATE TABLE uv_curve (time_str STRING, uv BIGINT, pv BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db:3306/x', 'table-name' = 'uv_curve');
INSERT INTO uv_curve
SELECT DATE_FORMAT(window_end, 'yyyy-MM-dd HH:mm'), COUNT(DISTINCT user_id), COUNT(*)
FROM TABLE(CUMULATE(TABLE user_log, DESCRIPTOR(log_ts), INTERVAL '10' MINUTES, INTERVAL '1' DAY))
GROUP BY window_start, window_end;
