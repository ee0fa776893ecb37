CREATE TABLE raw_payloads (
  id STRING,
  payload STRING,
  received_at TIMESTAMP(3),
  WATERMARK FOR received_at AS received_at - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'raw', 'format' = 'raw');
CREATE TABLE parsed (id STRING, user_id STRING, amount DOUBLE) WITH ('connector' = 'print');
INSERT INTO parsed
SELECT id, JSON_VALUE(payload, '$.user.id'), CAST(JSON_VALUE(payload, '$.amount') AS DOUBLE)
FROM raw_payloads
WHERE JSON_EXISTS(payload, '$.amount');
