create table access_log (
  message string,
  log_time timestamp(3),
  watermark for log_time as log_time - interval '1' minute
) with ('connector' = 'filesystem', 'path' = '/var/log', 'format' = 'raw');
create table status_counts (code string, window_end timestamp(3), n bigint) with ('connector' = 'print');
create temporary view parsed_log as
select regexp_extract(message, '(\d{3})$', 1) as code, log_time from access_log where message like 'GET%';
insert into status_counts
select code, window_end, count(*) from table(tumble(table parsed_log, descriptor(log_time), interval '1' hour)) group by code, window_start, window_end;
