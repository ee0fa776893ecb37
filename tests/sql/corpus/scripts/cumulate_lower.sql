create table sales_stream (region string, amount double, ts timestamp(3), watermark for ts as ts - interval '5' second) with ('connector' = 'datagen');
create table sales_so_far (region string, window_end timestamp(3), total double) with ('connector' = 'blackhole');
insert into sales_so_far
select region, window_end, sum(amount) from table(cumulate(table sales_stream, descriptor(ts), interval '30' minute, interval '1' hour)) where region is not null group by region, window_start, window_end
