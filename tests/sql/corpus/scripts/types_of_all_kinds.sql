CREATE TABLE typed (
  a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(20, 4), h BOOLEAN,
  i CHAR(4), j VARCHAR(20), k DATE, l TIMESTAMP(3), m TIMESTAMP_LTZ(3), n NUMERIC(6, 2)
) WITH ('connector' = 'datagen');
CREATE TABLE typed_out (a TINYINT, b SMALLINT, c INT, d BIGINT, e FLOAT, f DOUBLE, g DECIMAL(20, 4), h BOOLEAN, k DATE, l TIMESTAMP(3), m TIMESTAMP_LTZ(3), n NUMERIC(6, 2)) WITH ('connector' = 'print');
INSERT INTO typed_out SELECT a, b, c, d, e, f, g, h, k, l, m, n FROM typed WHERE h;
