create table source_events (
  id string,
  kind string,
  amount int,
  ts timestamp(3),
  watermark for ts as ts - interval '3' second
) with ('connector' = 'kafka', 'topic' = 'events', 'format' = 'json');
create table clicks_out (id string, ts timestamp(3)) with ('connector' = 'blackhole');
create table hourly_out (kind string, window_end timestamp(3), n bigint, amount bigint) with ('connector' = 'print');

execute statement set
begin
insert into clicks_out select id, ts from source_events where kind = 'click';
insert into hourly_out
  select kind, window_end, count(*), sum(cast(amount as bigint))
  from table(tumble(table source_events, descriptor(ts), interval '1' hour))
  group by kind, window_start, window_end;
end;
