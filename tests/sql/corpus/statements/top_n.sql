--! keep_first
SELECT order_id, customer_id, price, order_time FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY order_time ASC) AS row_num FROM orders)
WHERE row_num = 1
--! keep_last
SELECT order_id, status, order_time FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY order_time DESC) AS row_num FROM orders)
WHERE row_num = 1
--! q18_last_bid
SELECT auction, bidder, price, channel, url, `dateTime`, extra
 FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS rank_number
       FROM bid)
 WHERE rank_number <= 1;
--! q19_top10
SELECT * FROM
(SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid)
WHERE rank_number <= 10;
--! top3_per_category
select * from (
  select customer_id, product_id, price, row_number() over (partition by customer_id order by price desc) as ranking from orders
) where ranking <= 3
--! top_no_partition
SELECT tx_id, amount FROM (SELECT tx_id, amount, ROW_NUMBER() OVER (ORDER BY amount DESC) AS rn FROM transactions) WHERE rn <= 5
--! top_without_rank_output
SELECT symbol, price FROM (SELECT symbol, price, ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY price DESC, volume ASC) AS rn FROM ticker) t WHERE t.rn < 3
--! rank_top
SELECT sensor_id, temperature, rk FROM (SELECT sensor_id, temperature, RANK() OVER (PARTITION BY sensor_id ORDER BY temperature DESC) AS rk FROM sensor_readings) WHERE rk <= 2
--! dedup_proctime
SELECT event_id, user_id, event_type FROM (
  SELECT event_id, user_id, event_type, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY proctime ASC) AS rownum
  FROM (SELECT *, PROCTIME() AS proctime FROM events)) WHERE rownum = 1
--! with_latest
WITH ranked AS (SELECT user_id, url, click_time, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY click_time DESC) AS rn FROM clicks)
SELECT user_id, url FROM ranked WHERE rn = 1
--! second_only
SELECT user_id, click_time FROM (SELECT user_id, click_time, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY click_time) AS rn FROM clicks) WHERE rn = 2
