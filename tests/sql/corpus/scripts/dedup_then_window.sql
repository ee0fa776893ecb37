create table ticks (id string, price double, ts timestamp(3), watermark for ts as ts - interval '5' second) with ('connector' = 'kafka', 'topic' = 'ticks', 'format' = 'json');
create view unique_ticks as
select id, price, ts from (
  select *, row_number() over (partition by id order by ts) as rn from ticks
) where rn = 1;
create table tick_stats (window_start timestamp(3), n bigint, avg_price double) with ('connector' = 'print');
insert into tick_stats
select window_start, count(*), avg(price) from table(tumble(table unique_ticks, descriptor(ts), interval '10' minute)) group by window_start, window_end;
