create table telemetry (
  vehicle row<vin string, model string>,
  gps row<lat double, lon double>,
  speed double,
  seen timestamp(3),
  watermark for seen as seen - interval '5' second
) with ('connector' = 'kafka', 'topic' = 'telemetry', 'format' = 'json');
create table positions (vin string, lat double, lon double, speed double) with ('connector' = 'print');
insert into positions select vehicle.vin, t.gps.lat, t.gps.lon, speed from telemetry t where t.speed > 30;
