--! tumble
SELECT TUMBLE_START(order_time, INTERVAL '1' HOUR) AS wStart, SUM(price) AS total FROM orders GROUP BY TUMBLE(order_time, INTERVAL '1' HOUR)
--! tumble_keyed
SELECT
  customer_id,
  TUMBLE_START(order_time, INTERVAL '1' DAY) AS wStart,
  SUM(price) FROM orders
GROUP BY
  TUMBLE(order_time, INTERVAL '1' DAY),
  customer_id
--! hop
select hop_start(click_time, interval '5' minute, interval '10' minute) as ws, hop_end(click_time, interval '5' minute, interval '10' minute) as we, count(*) as cnt from clicks group by hop(click_time, interval '5' minute, interval '10' minute)
--! session_q11
SELECT
    B.bidder,
    count(*) as bid_count,
    SESSION_START(B.`dateTime`, INTERVAL '10' SECOND) as starttime,
    SESSION_END(B.`dateTime`, INTERVAL '10' SECOND) as endtime
FROM bid B
GROUP BY B.bidder, SESSION(B.`dateTime`, INTERVAL '10' SECOND);
--! rowtime_cascade
SELECT TUMBLE_END(rt, INTERVAL '1' HOUR) AS hour_end, MAX(temp) AS max_of_avg FROM (
  SELECT TUMBLE_ROWTIME(reading_time, INTERVAL '5' MINUTE) AS rt, sensor_id, AVG(temperature) AS temp
  FROM sensor_readings GROUP BY sensor_id, TUMBLE(reading_time, INTERVAL '5' MINUTE)
) GROUP BY TUMBLE(rt, INTERVAL '1' HOUR)
--! having
SELECT user_id, TUMBLE_END(login_time, INTERVAL '10' MINUTE) AS w, COUNT(*) AS fails FROM logins WHERE success = FALSE GROUP BY user_id, TUMBLE(login_time, INTERVAL '10' MINUTE) HAVING COUNT(*) > 1
--! filter
SELECT TUMBLE_START(tx_time, INTERVAL '15' MINUTE) AS ws, COUNT(*) FILTER (WHERE amount > 60) AS big, COUNT(DISTINCT account_id) AS accounts FROM transactions GROUP BY TUMBLE(tx_time, INTERVAL '15' MINUTE)
--! no_bounds_selected
SELECT symbol, SUM(volume) AS v FROM ticker GROUP BY symbol, TUMBLE(rowtime, INTERVAL '20' MINUTE)
--! over_subquery
SELECT country, TUMBLE_START(tx_time, INTERVAL '1' HOUR) AS ws, SUM(fee) AS fees FROM (SELECT country, tx_time, amount * 0.25e0 AS fee FROM transactions WHERE is_online) GROUP BY country, TUMBLE(tx_time, INTERVAL '1' HOUR)
--! session_end_only
select user_id, session_end(click_time, interval '10' minutes) as ended, max(dwell_ms) as longest from clicks group by user_id, session(click_time, interval '10' minutes)
--! seconds
SELECT TUMBLE_START(rideTime, INTERVAL '90' SECOND) AS s, SUM(psgCnt) AS passengers, COUNT(*) AS n FROM rides WHERE isStart GROUP BY TUMBLE(rideTime, INTERVAL '90' SECOND)
--! expression_of_bounds
SELECT DATE_FORMAT(TUMBLE_START(order_time, INTERVAL '1' HOUR), 'HH:mm') AS h, COUNT(*) AS n FROM orders GROUP BY TUMBLE(order_time, INTERVAL '1' HOUR)
--! case_key
SELECT CASE WHEN amount > 60 THEN 'big' ELSE 'small' END AS size_class, TUMBLE_END(tx_time, INTERVAL '1' HOUR) AS w, COUNT(*) AS n FROM transactions GROUP BY CASE WHEN amount > 60 THEN 'big' ELSE 'small' END, TUMBLE(tx_time, INTERVAL '1' HOUR)
--! join_then_window
SELECT p.`method`, TUMBLE_END(o.order_time, INTERVAL '1' HOUR) AS w, SUM(p.amount) AS paid
FROM orders o, payments p
WHERE o.order_id = p.order_id AND p.pay_time BETWEEN o.order_time AND o.order_time + INTERVAL '1' HOUR
GROUP BY p.`method`, TUMBLE(o.order_time, INTERVAL '1' HOUR)
--! area
SELECT CAST(lon / 10 AS INT) AS cell, isStart, HOP_END(rideTime, INTERVAL '5' MINUTE, INTERVAL '15' MINUTE) AS w, COUNT(*) AS popCnt
FROM rides GROUP BY CAST(lon / 10 AS INT), isStart, HOP(rideTime, INTERVAL '5' MINUTE, INTERVAL '15' MINUTE)
HAVING COUNT(*) >= 2
--! hop_with_gaps
SELECT HOP_START(order_time, INTERVAL '1' HOUR, INTERVAL '15' MINUTE) AS s, COUNT(*) AS n FROM orders GROUP BY HOP(order_time, INTERVAL '1' HOUR, INTERVAL '15' MINUTE)
