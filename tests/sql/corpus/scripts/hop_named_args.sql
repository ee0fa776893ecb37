CREATE TABLE calls (cell STRING, dropped BOOLEAN, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'calls', 'format' = 'json');
CREATE TABLE drop_rates (cell STRING, window_end TIMESTAMP(3), drops BIGINT, total BIGINT) WITH ('connector' = 'print');
INSERT INTO drop_rates
SELECT cell, window_end, COUNT(*) FILTER (WHERE dropped), COUNT(*)
FROM TABLE(HOP(DATA => TABLE calls, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '5' MINUTES, SIZE => INTERVAL '10' MINUTES))
GROUP BY cell, window_start, window_end;
