CREATE TABLE heartbeats (
  host STRING, cpu DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'datagen');

SELECT host, ts, cpu, AVG(cpu) OVER (PARTITION BY host ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS cpu_avg
FROM heartbeats;
