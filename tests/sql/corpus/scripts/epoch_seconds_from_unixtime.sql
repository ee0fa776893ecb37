create table taxi (
  ride_id bigint,
  fare double,
  pickup bigint,
  pickup_time as to_timestamp(from_unixtime(pickup)),
  watermark for pickup_time as pickup_time - interval '30' second
) with ('connector' = 'filesystem', 'path' = '/tmp/taxi', 'format' = 'csv');
create table fares (w timestamp(3), total double) with ('connector' = 'print');
insert into fares select tumble_end(pickup_time, interval '1' hour), sum(fare) from taxi group by tumble(pickup_time, interval '1' hour);
