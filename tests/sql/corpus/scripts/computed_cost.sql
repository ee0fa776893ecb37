create table carts (
  cart_id string,
  unit_price double,
  qty int,
  cost as unit_price * qty,
  added_at timestamp(3),
  watermark for added_at as added_at - interval '5' second
) with ('connector' = 'datagen', 'rows-per-second' = '5', 'fields.qty.min' = '1', 'fields.qty.max' = '9');
create table cart_totals (window_start timestamp(3), total double) with ('connector' = 'print');
insert into cart_totals select window_start, sum(cost) from table(tumble(table carts, descriptor(added_at), interval '15' minute)) group by window_start, window_end;
