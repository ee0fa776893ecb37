--! orders_payments
SELECT o.order_id, o.price, p.amount, p.pay_time
FROM orders o, payments p
WHERE o.order_id = p.order_id
  AND p.pay_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR
--! orders_shipments_on
SELECT o.order_id AS id, o.order_time, s.ship_time, TIMESTAMPDIFF(MINUTE, o.order_time, s.ship_time) AS minutes_to_ship
FROM orders o
JOIN shipments s ON o.order_id = s.order_id AND o.order_time BETWEEN s.ship_time - INTERVAL '3' HOUR AND s.ship_time
--! left_join
select o.order_id, p.payment_id from orders o left join payments p on o.order_id = p.order_id and p.pay_time >= o.order_time and p.pay_time < o.order_time + interval '30' minute
--! bounds_in_where
SELECT o.order_id, s.carrier
FROM orders AS o
JOIN shipments AS s ON o.order_id = s.order_id
WHERE s.ship_time BETWEEN o.order_time - INTERVAL '5' MINUTE AND o.order_time + INTERVAL '10' MINUTE
--! full_outer
SELECT i.ad_id, i.user_id AS shown_to, c.user_id AS clicked_by FROM impressions i FULL OUTER JOIN clicks c ON i.user_id = c.user_id AND c.click_time BETWEEN i.impression_time AND i.impression_time + INTERVAL '10' MINUTES
--! with_filter
SELECT i.ad_id, c.url, i.cost FROM impressions AS i INNER JOIN clicks AS c ON c.user_id = i.user_id AND c.click_time > i.impression_time AND c.click_time <= i.impression_time + INTERVAL '1' HOUR AND i.cost > 20 WHERE c.device <> 'tablet'
