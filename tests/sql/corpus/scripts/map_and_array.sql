CREATE TABLE requests (
  host STRING,
  headers MAP<STRING, STRING>,
  tags ARRAY<STRING>,
  ts TIMESTAMP_LTZ(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'requests', 'format' = 'json');
CREATE TABLE flat_requests (host STRING, env STRING, tag STRING, n_tags INT) WITH ('connector' = 'print');
INSERT INTO flat_requests SELECT host, headers['env'], tags[1], CARDINALITY(tags) FROM requests;
