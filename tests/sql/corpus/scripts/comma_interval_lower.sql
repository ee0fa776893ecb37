create table logins_a (usr string, ip string, at_a timestamp(3), watermark for at_a as at_a - interval '5' second) with ('connector' = 'datagen');
create table logins_b (usr string, ip string, at_b timestamp(3), watermark for at_b as at_b - interval '5' second) with ('connector' = 'datagen');
create table suspicious (usr string, ip_a string, ip_b string) with ('connector' = 'print');
insert into suspicious
select a.usr, a.ip, b.ip from logins_a a, logins_b b
where a.usr = b.usr and a.ip <> b.ip and a.at_a between b.at_b - interval '15' minute and b.at_b + interval '15' minute;
