create table impressions (
  ad_id string,
  user_id string,
  impression_ts timestamp(3),
  watermark for impression_ts as impression_ts - interval '5' second
) with ('connector' = 'kafka', 'topic' = 'impressions', 'format' = 'json');
create table ad_clicks (
  ad_id string,
  user_id string,
  click_ts timestamp(3),
  watermark for click_ts as click_ts - interval '5' second
) with ('connector' = 'kafka', 'topic' = 'clicks', 'format' = 'json');
create table conversions (ad_id string, user_id string, seconds_to_click bigint) with ('connector' = 'print');
insert into conversions
select i.ad_id, i.user_id, cast(timestampdiff(second, i.impression_ts, c.click_ts) as bigint)
from impressions i
join ad_clicks c
  on i.ad_id = c.ad_id and i.user_id = c.user_id
 and c.click_ts between i.impression_ts and i.impression_ts + interval '1' hour;
