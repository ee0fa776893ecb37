create table q (a string, b bigint, ts timestamp(3), watermark for ts as ts - interval '5' second) with ('connector' = 'datagen');
create table q_out (a string, n bigint) with ('connector' = 'blackhole');
explain insert into q_out select a, count(*) from table(tumble(table q, descriptor(ts), interval '10' minute)) group by a, window_start, window_end;
explain plan for select * from q;
insert into q_out select a, count(*) from table(tumble(table q, descriptor(ts), interval '10' minute)) group by a, window_start, window_end;
drop table q_out;
