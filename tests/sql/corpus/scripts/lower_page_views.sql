set 'execution.checkpointing.interval' = '10s';
set 'table.exec.state.ttl' = '1 h';

create table page_views (
  user_id string,
  page string,
  view_time timestamp(3),
  watermark for view_time as view_time - interval '5' second
) with (
  'connector' = 'datagen',
  'rows-per-second' = '10'
);

create table page_counts (
  page string,
  window_end timestamp(3),
  hits bigint
) with ('connector' = 'blackhole');

insert into page_counts
select page, window_end, count(*) as hits
from table(tumble(table page_views, descriptor(view_time), interval '1' minute))
group by page, window_start, window_end;
