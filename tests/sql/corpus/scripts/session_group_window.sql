CREATE TABLE clickstream (
  user_id STRING,
  url STRING,
  click_time TIMESTAMP(3),
  WATERMARK FOR click_time AS click_time - INTERVAL '5' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'clickstream', 'format' = 'json');
CREATE TABLE user_sessions (user_id STRING, session_begin TIMESTAMP(3), session_end TIMESTAMP(3), clicks BIGINT) WITH ('connector' = 'filesystem', 'path' = '/sessions', 'format' = 'json');
INSERT INTO user_sessions (user_id, session_begin, session_end, clicks)
SELECT user_id,
       SESSION_START(click_time, INTERVAL '30' MINUTES),
       SESSION_END(click_time, INTERVAL '30' MINUTES),
       COUNT(url)
FROM clickstream
GROUP BY user_id, SESSION(click_time, INTERVAL '30' MINUTES);
