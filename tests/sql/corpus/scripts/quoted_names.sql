create table `my source` (
  `select` string,
  `group by` bigint,
  `time` timestamp(3),
  watermark for `time` as `time` - interval '5' second
) with ('connector' = 'datagen');
create table `my sink` (`from` string, `order` bigint) with ('connector' = 'print');
insert into `my sink` select `select`, sum(`group by`) from table(tumble(table `my source`, descriptor(`time`), interval '1' hour)) group by `select`, window_start, window_end;
