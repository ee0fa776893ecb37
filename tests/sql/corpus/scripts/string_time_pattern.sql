create table feed (
  code string,
  px double,
  t string,
  rt as to_timestamp(t, 'yyyy-MM-dd HH:mm:ss'),
  watermark for rt as rt - interval '2' second
) with ('connector' = 'kafka', 'topic' = 'feed', 'format' = 'csv');
create table bars (code string, bar_end timestamp(3), hi double, lo double) with ('connector' = 'print');
insert into bars select code, hop_end(rt, interval '1' minute, interval '5' minute), max(px), min(px) from feed group by code, hop(rt, interval '1' minute, interval '5' minute);
