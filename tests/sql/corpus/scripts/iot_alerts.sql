CREATE TABLE iot (
  sensor_id INT,
  reading DOUBLE,
  event_time_ms BIGINT,
  event_time AS TO_TIMESTAMP_LTZ(event_time_ms, 3),
  proc_time AS PROCTIME(),
  WATERMARK FOR event_time AS event_time - INTERVAL '30' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'iot', 'value.format' = 'json', 'key.format' = 'raw', 'key.fields' = 'sensor_id');
CREATE TABLE sensors (
  id INT, room STRING, max_reading DOUBLE, PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/iot', 'table-name' = 'sensors');
CREATE TABLE iot_alerts (sensor_id INT, room STRING, reading DOUBLE) WITH ('connector' = 'print');
INSERT INTO iot_alerts
SELECT i.sensor_id, s.room, i.reading
FROM iot AS i JOIN sensors FOR SYSTEM_TIME AS OF i.proc_time AS s ON i.sensor_id = s.id
WHERE i.reading > s.max_reading;
