create table ad_events (campaign string, country string, spend double, ts timestamp(3), watermark for ts as ts - interval '5' second) with ('connector' = 'kafka', 'topic' = 'ads', 'format' = 'json');
create table spend_report (window_start timestamp(3), campaign string, country string, spend double) with ('connector' = 'print');
insert into spend_report
select window_start, campaign, country, sum(spend)
from table(tumble(table ad_events, descriptor(ts), interval '1' hour))
group by window_start, window_end, grouping sets ((campaign, country), (campaign), ());
