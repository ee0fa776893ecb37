create table trades (
  symbol string,
  price double,
  volume bigint,
  trade_time timestamp(3),
  watermark for trade_time as trade_time - interval '1' second
) with ('connector' = 'kafka', 'topic' = 'trades', 'format' = 'json');
create view priced as select * from trades where price is not null;
create table vwap_inputs (symbol string, trade_time timestamp(3), avg_price double, trades_so_far bigint) with ('connector' = 'print');
insert into vwap_inputs
select symbol, trade_time,
  avg(price) over w as avg_price,
  count(*) over w as trades_so_far
from priced
window w as (partition by symbol order by trade_time range between interval '10' minute preceding and current row);
