create table taps (card string, gate int, tap_time timestamp(3), watermark for tap_time as tap_time - interval '5' second)
with ('connector' = 'kafka', 'topic' = 'taps', 'properties.bootstrap.servers' = 'kafka:9092', 'format' = 'json');
create table gate_counts (gate int, n bigint, window_end timestamp(3)) with ('connector' = 'print');
insert into gate_counts
select gate, count(distinct card), tumble_end(tap_time, interval '1' minute)
from taps /*+ options('scan.startup.mode' = 'earliest-offset') */
group by gate, tumble(tap_time, interval '1' minute);
