CREATE TABLE IF NOT EXISTS t_in (x INT, y STRING) WITH ('connector' = 'datagen');
DROP TABLE IF EXISTS t_out;
CREATE TABLE t_out (x INT, y STRING) WITH ('connector' = 'print');
DROP VIEW IF EXISTS v;
CREATE VIEW v (a, b) AS SELECT x, y FROM t_in WHERE x > 1000;
INSERT INTO t_out SELECT a, b FROM v;
