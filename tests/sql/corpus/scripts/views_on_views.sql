create table metrics (name string, `value` double, ts timestamp(3), watermark for ts as ts - interval '10' second) with ('connector' = 'kafka', 'topic' = 'metrics', 'format' = 'json');
create view valid_metrics as select * from metrics where `value` is not null and name is not null;
create view minute_metrics as
  select name, window_start as minute_start, window_time as minute_time, avg(`value`) as avg_value
  from table(tumble(table valid_metrics, descriptor(ts), interval '1' minute))
  group by name, window_start, window_end, window_time;
create table hour_metrics (name string, window_end timestamp(3), max_avg double) with ('connector' = 'print');
insert into hour_metrics
select name, window_end, max(avg_value)
from table(tumble(table minute_metrics, descriptor(minute_time), interval '1' hour))
group by name, window_start, window_end;
