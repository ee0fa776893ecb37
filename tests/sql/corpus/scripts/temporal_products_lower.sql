create table order_lines (line_id string, product_id string, ordered timestamp(3), watermark for ordered as ordered - interval '5' second) with ('connector' = 'kafka', 'topic' = 'lines', 'format' = 'json');
create table product_prices (
  product_id string,
  unit_price double,
  changed timestamp(3),
  watermark for changed as changed - interval '5' second,
  primary key (product_id) not enforced
) with ('connector' = 'upsert-kafka', 'topic' = 'prices', 'key.format' = 'json', 'value.format' = 'json');
create table priced_lines (line_id string, unit_price double, ordered timestamp(3)) with ('connector' = 'print');
insert into priced_lines
select l.line_id, p.unit_price, l.ordered from order_lines as l
left join product_prices for system_time as of l.ordered as p on l.product_id = p.product_id;
