--! inner
SELECT L.user_id, L.url, R.ad_id, L.window_start, L.window_end
FROM (SELECT * FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(click_time), INTERVAL '10' MINUTES))) L
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE impressions, DESCRIPTOR(impression_time), INTERVAL '10' MINUTES))) R
ON L.user_id = R.user_id AND L.window_start = R.window_start AND L.window_end = R.window_end
--! full
SELECT L.order_id AS l_id, R.order_id AS r_id, COALESCE(L.window_start, R.window_start) AS window_start, COALESCE(L.window_end, R.window_end) AS window_end
FROM (
    SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '5' MINUTES))
) L
FULL JOIN (
    SELECT * FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(pay_time), INTERVAL '5' MINUTES))
) R
ON L.order_id = R.order_id AND L.window_start = R.window_start AND L.window_end = R.window_end;
--! q8_new_users
SELECT P.id, P.name, P.starttime
FROM (
  SELECT id, name, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' MINUTE))
  GROUP BY id, name, window_start, window_end
) P
JOIN (
  SELECT seller, window_start AS starttime, window_end AS endtime
  FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' MINUTE))
  GROUP BY seller, window_start, window_end
) A
ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime;
--! aggregates
with o as (select window_start, window_end, count(*) as n_orders from table(tumble(table orders, descriptor(order_time), interval '1' hour)) group by window_start, window_end),
p as (select window_start, window_end, sum(amount) as paid from table(tumble(table payments, descriptor(pay_time), interval '1' hour)) group by window_start, window_end)
select o.window_start, n_orders, paid from o left join p on o.window_start = p.window_start and o.window_end = p.window_end
--! star_both
SELECT L.*, R.* FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' HOUR))) L JOIN (SELECT * FROM TABLE(TUMBLE(TABLE shipments, DESCRIPTOR(ship_time), INTERVAL '1' HOUR))) R ON L.order_id = R.order_id AND L.window_start = R.window_start AND L.window_end = R.window_end
