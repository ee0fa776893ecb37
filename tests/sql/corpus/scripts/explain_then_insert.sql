CREATE TABLE src (k STRING, v INT, t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '5' SECOND) WITH ('connector' = 'datagen', 'number-of-rows' = '100');
CREATE TABLE dst (k STRING, s BIGINT, w TIMESTAMP(3)) WITH ('connector' = 'print');
EXPLAIN SELECT k, SUM(v) FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(t), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end;
INSERT INTO dst SELECT k, CAST(SUM(v) AS BIGINT), window_end FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(t), INTERVAL '1' HOUR)) GROUP BY k, window_start, window_end;
