CREATE TABLE csv_trips (
  trip_id BIGINT,
  started STRING,
  distance DOUBLE,
  start_ts AS TO_TIMESTAMP(started),
  WATERMARK FOR start_ts AS start_ts - INTERVAL '10' SECOND
) WITH ('connector' = 'filesystem', 'path' = '/trips.csv', 'format' = 'csv', 'csv.ignore-parse-errors' = 'true');
CREATE TABLE trip_stats (w TIMESTAMP(3), trips BIGINT, longest DOUBLE) WITH ('connector' = 'print');
INSERT INTO trip_stats SELECT window_start, COUNT(*), MAX(distance) FROM TABLE(TUMBLE(TABLE csv_trips, DESCRIPTOR(start_ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end;
