CREATE TABLE evts (uid STRING, kind STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'datagen');
CREATE TABLE funnel (window_start TIMESTAMP(3), purchases BIGINT, total BIGINT) WITH ('connector' = 'print');
INSERT INTO funnel
WITH w AS (
  SELECT window_start, window_end, kind, COUNT(*) AS n
  FROM TABLE(TUMBLE(TABLE evts, DESCRIPTOR(ts), INTERVAL '1' HOUR))
  GROUP BY window_start, window_end, kind
)
SELECT window_start, SUM(CASE WHEN kind = 'purchase' THEN n ELSE 0 END), SUM(n) FROM w GROUP BY window_start, window_end;
