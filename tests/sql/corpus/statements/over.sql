--! range_hour
SELECT order_id, order_time, price,
  SUM(price) OVER (
    PARTITION BY product_id
    ORDER BY order_time
    RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW
  ) AS one_hour_prod_amount_sum
FROM orders
--! named_window
SELECT order_id, order_time, price,
  SUM(price) OVER w AS sum_price,
  MAX(price) OVER w AS max_price
FROM orders
WINDOW w AS (
  PARTITION BY product_id
  ORDER BY order_time
  RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW)
--! rows_preceding
select sensor_id, reading_time, avg(temperature) over (partition by sensor_id order by reading_time rows between 2 preceding and current row) as moving_avg from sensor_readings
--! lag_price
SELECT symbol, rowtime, price, LAG(price, 1) OVER (PARTITION BY symbol ORDER BY rowtime) AS prev_price,
  price - LAG(price) OVER (PARTITION BY symbol ORDER BY rowtime) AS diff
FROM ticker
--! lag_filter
SELECT * FROM (
  SELECT account_id, amount, tx_time, LAG(country) OVER (PARTITION BY account_id ORDER BY tx_time) AS prev_country, country
  FROM transactions)
WHERE prev_country <> country
--! unbounded
SELECT user_id, COUNT(*) OVER (PARTITION BY user_id ORDER BY click_time RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS clicks_so_far FROM clicks
--! row_number_by_time
SELECT user_id, url, ROW_NUMBER() OVER (PARTITION BY user_id ORDER BY click_time) AS seq FROM clicks
--! global_over
SELECT tx_id, SUM(amount) OVER (ORDER BY tx_time ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM transactions
--! no_frame
SELECT bidder, price, COUNT(*) OVER (PARTITION BY bidder ORDER BY `dateTime`) AS n, MAX(price) OVER (PARTITION BY bidder ORDER BY `dateTime`) AS m FROM bid
--! case_over
SELECT account_id, tx_id, CASE WHEN COUNT(*) OVER w >= 3 THEN 'burst' ELSE 'ok' END AS flag FROM transactions WINDOW w AS (PARTITION BY account_id ORDER BY tx_time RANGE BETWEEN INTERVAL '10' MINUTE PRECEDING AND CURRENT ROW)
--! first_last
SELECT symbol, price, FIRST_VALUE(price) OVER (PARTITION BY symbol ORDER BY rowtime ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS first_price, LAST_VALUE(price) OVER (PARTITION BY symbol ORDER BY rowtime ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS last_price FROM ticker WHERE price IS NOT NULL
--! count_distinct
SELECT user_id, COUNT(DISTINCT ip) OVER (PARTITION BY user_id ORDER BY login_time RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW) AS ips FROM logins
--! over_expression_partition
SELECT UPPER(country) AS c, SUM(amount) OVER (PARTITION BY UPPER(country) ORDER BY tx_time) AS running_total FROM transactions WHERE amount > 20
--! avg_share
select tx_id, amount / sum(amount) over (partition by account_id order by tx_time) as share from transactions
--! functions_of_over
SELECT tx_id, COALESCE(SUM(amount) OVER (PARTITION BY account_id ORDER BY tx_time), 0e0) AS total, ABS(COUNT(*) OVER (PARTITION BY account_id ORDER BY tx_time) - 3) AS distance FROM transactions
--! values_that_skip_nulls
SELECT symbol, rowtime,
  FIRST_VALUE(price) OVER (PARTITION BY symbol ORDER BY rowtime ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS first_price,
  LAST_VALUE(volume) OVER (PARTITION BY symbol ORDER BY rowtime ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS last_volume
FROM ticker
