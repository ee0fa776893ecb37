create table purchases (
  product_id string,
  units int,
  purchase_time timestamp(3),
  watermark for purchase_time as purchase_time - interval '10' second
) with ('connector' = 'kafka', 'topic' = 'purchases', 'format' = 'json');
create table top_products (
  window_start timestamp(3), product_id string, sold bigint, `rank` bigint
) with ('connector' = 'print');
insert into top_products
select window_start, product_id, sold, `rank` from (
  select *, row_number() over (partition by window_start, window_end order by sold desc, product_id asc) as `rank`
  from (
    select window_start, window_end, product_id, sum(cast(units as bigint)) as sold
    from table(tumble(table purchases, descriptor(purchase_time), interval '1' hour))
    group by window_start, window_end, product_id
  )
) where `rank` <= 3;
