create table clicks (
  user_id bigint,
  url string,
  proctime as proctime()
) with ('connector' = 'datagen');
create temporary table users (
  id bigint,
  email string,
  primary key (id) not enforced
) with ('connector' = 'jdbc', 'url' = 'jdbc:mysql://db/users', 'table-name' = 'users');
create table out_clicks (user_id bigint, url string, email string) with ('connector' = 'print');
insert into out_clicks select c.user_id, c.url, u.email from clicks c left join users for system_time as of c.proctime as u on c.user_id = u.id;
