--! window_in
SELECT * FROM (SELECT * FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(click_time), INTERVAL '10' MINUTES))) L
WHERE L.user_id IN (
  SELECT user_id FROM (SELECT * FROM TABLE(TUMBLE(TABLE impressions, DESCRIPTOR(impression_time), INTERVAL '10' MINUTES))) R
  WHERE L.window_start = R.window_start AND L.window_end = R.window_end)
--! window_not_in
SELECT L.order_id, L.window_start FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '30' MINUTES))) L
WHERE L.order_id NOT IN (
  SELECT order_id FROM (SELECT * FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(pay_time), INTERVAL '30' MINUTES)) WHERE order_id IS NOT NULL) R
  WHERE L.window_start = R.window_start AND L.window_end = R.window_end)
--! window_exists
SELECT * FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '15' MINUTES))) L
WHERE EXISTS (
  SELECT * FROM (SELECT * FROM TABLE(TUMBLE(TABLE shipments, DESCRIPTOR(ship_time), INTERVAL '15' MINUTES))) R
  WHERE L.order_id = R.order_id AND L.window_start = R.window_start AND L.window_end = R.window_end)
--! window_not_exists
select l.user_id, l.window_end from (select * from table(tumble(table logins, descriptor(login_time), interval '1' hour))) l
where not exists (select * from (select * from table(tumble(table clicks, descriptor(click_time), interval '1' hour))) r where l.user_id = r.user_id and l.window_start = r.window_start and l.window_end = r.window_end)
