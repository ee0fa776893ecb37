CREATE TABLE machine_temps (
  machine STRING,
  temp DOUBLE,
  ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'temps', 'format' = 'json');
CREATE TABLE overheats (machine STRING, first_temp DOUBLE, last_temp DOUBLE, n BIGINT) WITH ('connector' = 'print');
INSERT INTO overheats
SELECT machine, first_temp, last_temp, n FROM machine_temps MATCH_RECOGNIZE (
  PARTITION BY machine
  ORDER BY ts
  MEASURES FIRST(H.temp) AS first_temp, LAST(H.temp) AS last_temp, COUNT(H.temp) AS n
  ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (H{2,} C)
  DEFINE H AS H.temp > 50, C AS C.temp <= 50
) AS m;
