--! first_then_tumble
WITH firsts AS (
  SELECT order_id, order_time FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY order_id ORDER BY order_time ASC) AS rn FROM orders)
  WHERE rn = 1)
SELECT window_start, window_end, COUNT(*) AS orders_placed
FROM TABLE(TUMBLE(TABLE firsts, DESCRIPTOR(order_time), INTERVAL '10' MINUTE))
GROUP BY window_start, window_end
--! with_first_then_tumble
WITH deduplicated AS (
  SELECT event_id, user_id, ts FROM (
    SELECT event_id, user_id, ts, ROW_NUMBER() OVER (PARTITION BY event_id ORDER BY ts) AS row_num FROM events
  ) WHERE row_num = 1
)
SELECT user_id, window_start, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE deduplicated, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY user_id, window_start, window_end
--! first_then_group_window
select tumble_start(click_time, interval '1' hour) as ws, count(*) as uniques from (
  select user_id, click_time, row_number() over (partition by user_id order by click_time asc) as rn from clicks
) where rn = 1 group by tumble(click_time, interval '1' hour)
--! first_then_hop
SELECT window_end, SUM(amount) AS total FROM TABLE(HOP((
  SELECT tx_id, amount, tx_time FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY account_id, merchant ORDER BY tx_time ASC) AS rn FROM transactions) WHERE rn <= 1
), DESCRIPTOR(tx_time), INTERVAL '30' MINUTE, INTERVAL '1' HOUR)) GROUP BY window_start, window_end
