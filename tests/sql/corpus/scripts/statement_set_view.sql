CREATE TABLE orders_in (
  id STRING, country STRING, amount DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE TABLE sink_all (id STRING, amount DOUBLE) WITH ('connector' = 'print');
CREATE TABLE sink_big (id STRING, amount DOUBLE) WITH ('connector' = 'print');
CREATE TABLE sink_hourly (country STRING, w TIMESTAMP(3), total DOUBLE) WITH ('connector' = 'print');
CREATE VIEW clean AS SELECT id, UPPER(country) AS country, amount, ts FROM orders_in WHERE amount IS NOT NULL;
EXECUTE STATEMENT SET BEGIN
INSERT INTO sink_all SELECT id, amount FROM clean;
INSERT INTO sink_big SELECT id, amount FROM clean WHERE amount > 80;
INSERT INTO sink_hourly SELECT country, window_start, SUM(amount) FROM TABLE(TUMBLE(TABLE clean, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY country, window_start, window_end;
END;
