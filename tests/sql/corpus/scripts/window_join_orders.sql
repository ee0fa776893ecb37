CREATE TABLE lefts (id STRING, num INT, row_time TIMESTAMP(3), WATERMARK FOR row_time AS row_time - INTERVAL '1' SECOND) WITH ('connector' = 'kafka', 'topic' = 'l', 'format' = 'json');
CREATE TABLE rights (id STRING, num INT, row_time TIMESTAMP(3), WATERMARK FOR row_time AS row_time - INTERVAL '1' SECOND) WITH ('connector' = 'kafka', 'topic' = 'r', 'format' = 'json');
CREATE TABLE pairs (l_num INT, l_id STRING, r_num INT, r_id STRING, window_start TIMESTAMP(3)) WITH ('connector' = 'print');
INSERT INTO pairs
SELECT L.num, L.id, R.num, R.id, L.window_start
FROM (
  SELECT * FROM TABLE(TUMBLE(TABLE lefts, DESCRIPTOR(row_time), INTERVAL '30' MINUTES))
) L
JOIN (
  SELECT * FROM TABLE(TUMBLE(TABLE rights, DESCRIPTOR(row_time), INTERVAL '30' MINUTES))
) R
ON L.id = R.id AND L.window_start = R.window_start AND L.window_end = R.window_end;
