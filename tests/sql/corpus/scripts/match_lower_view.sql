create table rides (ride_id bigint, is_start boolean, ride_ts timestamp(3), watermark for ride_ts as ride_ts - interval '60' second) with ('connector' = 'kafka', 'topic' = 'rides', 'format' = 'json');
create view ride_durations as
select * from rides match_recognize (
  partition by ride_id
  order by ride_ts
  measures s.ride_ts as started, e.ride_ts as ended
  after match skip past last row
  pattern (s e)
  define s as s.is_start, e as not e.is_start
);
create table durations (ride_id bigint, minutes int) with ('connector' = 'print');
insert into durations select ride_id, timestampdiff(minute, started, ended) from ride_durations;
