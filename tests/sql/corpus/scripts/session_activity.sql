create table activity (
  user_id bigint,
  activity string,
  activity_time timestamp(3),
  watermark for activity_time as activity_time - interval '5' second
) with (
  'connector' = 'kafka', -- the topic has 8 partitions
  'topic' = 'activity',
  'format' = 'json'
);
create table sessions (user_id bigint, started timestamp(3), ended timestamp(3), actions bigint) with ('connector' = 'print');
insert into sessions
select user_id, window_start, window_end, count(*)
from table(session(table activity partition by user_id, descriptor(activity_time), interval '10' minute))
group by user_id, window_start, window_end;
