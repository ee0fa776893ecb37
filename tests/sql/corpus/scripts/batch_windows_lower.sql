set 'execution.runtime-mode' = 'batch';
create table visits (visitor string, pages int, visited_at timestamp(3), watermark for visited_at as visited_at) with ('connector' = 'filesystem', 'path' = '/visits', 'format' = 'parquet');
create table visits_by_hour (hour_start timestamp(3), visitors bigint, pages bigint) with ('connector' = 'filesystem', 'path' = '/visits_by_hour', 'format' = 'parquet');
insert overwrite visits_by_hour
select window_start, count(distinct visitor), sum(cast(pages as bigint))
from table(tumble(table visits, descriptor(visited_at), interval '1' hour))
group by window_start, window_end;
