CREATE TABLE readings (
  sensor STRING,
  v DOUBLE,
  seen_at TIMESTAMP(3),
  WATERMARK FOR seen_at AS seen_at - INTERVAL '1' MINUTE
) WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'json');
CREATE TABLE hot (sensor STRING, v DOUBLE, seen_at TIMESTAMP(3)) WITH ('connector' = 'print');
CREATE TABLE cold (sensor STRING, v DOUBLE, seen_at TIMESTAMP(3)) WITH ('connector' = 'print');
EXECUTE STATEMENT SET
BEGIN
  INSERT INTO hot SELECT * FROM readings WHERE v >= 60;
  INSERT INTO cold SELECT * FROM readings WHERE v < 60;
END;
