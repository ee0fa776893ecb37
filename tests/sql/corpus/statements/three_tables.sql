--! order_paid_shipped
SELECT o.order_id, o.price, p.amount, s.carrier
FROM orders o
JOIN payments p ON o.order_id = p.order_id AND p.pay_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR
JOIN shipments s ON s.order_id = p.order_id AND s.ship_time BETWEEN p.pay_time AND p.pay_time + INTERVAL '6' HOUR
--! bounds_on_both_sides
SELECT o.order_id, p.payment_id, s.shipment_id
FROM orders AS o
JOIN payments AS p ON p.order_id = o.order_id AND p.pay_time BETWEEN o.order_time - INTERVAL '1' HOUR AND o.order_time + INTERVAL '4' HOUR
JOIN shipments AS s ON o.order_id = s.order_id AND s.ship_time BETWEEN o.order_time - INTERVAL '10' MINUTE AND o.order_time + INTERVAL '8' HOUR
--! commas
SELECT o.order_id, amount, carrier, TIMESTAMPDIFF(MINUTE, o.order_time, s.ship_time) AS minutes_to_ship
FROM orders o, payments p, shipments s
WHERE o.order_id = p.order_id AND s.order_id = o.order_id
  AND p.pay_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR
  AND s.ship_time BETWEEN p.pay_time - INTERVAL '2' HOUR AND p.pay_time + INTERVAL '4' HOUR
  AND o.quantity > 1
--! star
SELECT * FROM orders o JOIN payments p ON o.order_id = p.order_id AND p.pay_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR JOIN shipments s ON s.order_id = o.order_id AND s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '8' HOUR
--! left_joins
SELECT o.order_id, p.payment_id, s.shipment_id, s.ship_time
FROM orders o
LEFT JOIN payments p ON o.order_id = p.order_id AND p.pay_time BETWEEN o.order_time - INTERVAL '1' HOUR AND o.order_time + INTERVAL '4' HOUR
LEFT JOIN shipments s ON s.order_id = o.order_id AND s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '8' HOUR
WHERE o.status <> 'cancelled'
--! windows
SELECT o.window_start, o.order_id, p.amount, s.carrier
FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '6' HOUR))) o
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(pay_time), INTERVAL '6' HOUR))) p
ON o.order_id = p.order_id AND o.window_start = p.window_start AND o.window_end = p.window_end
JOIN (SELECT * FROM TABLE(TUMBLE(TABLE shipments, DESCRIPTOR(ship_time), INTERVAL '6' HOUR))) s
ON s.order_id = o.order_id AND s.window_start = o.window_start AND s.window_end = o.window_end
--! counts_by_window
WITH o AS (SELECT window_start, window_end, COUNT(*) AS orders FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' HOUR)) GROUP BY window_start, window_end),
p AS (SELECT window_start, window_end, SUM(amount) AS paid FROM TABLE(TUMBLE(TABLE payments, DESCRIPTOR(pay_time), INTERVAL '1' HOUR)) GROUP BY window_start, window_end),
s AS (SELECT window_start, window_end, COUNT(*) AS shipped FROM TABLE(TUMBLE(TABLE shipments, DESCRIPTOR(ship_time), INTERVAL '1' HOUR)) GROUP BY window_start, window_end)
SELECT o.window_start, o.orders, p.paid, s.shipped FROM o
JOIN p ON o.window_start = p.window_start AND o.window_end = p.window_end
JOIN s ON o.window_start = s.window_start AND o.window_end = s.window_end
--! price_in_euro_and_name
SELECT o.order_id, o.price * r.rate AS in_euro, pr.product_name
FROM orders AS o
JOIN currency_rates FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency
JOIN products FOR SYSTEM_TIME AS OF o.order_time AS pr ON o.product_id = pr.product_id
--! four_tables
SELECT o.order_id, p.amount, s.carrier, r.rate
FROM orders AS o
JOIN currency_rates FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency
JOIN payments AS p ON p.order_id = o.order_id AND p.pay_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR
JOIN shipments AS s ON s.order_id = o.order_id AND s.ship_time BETWEEN o.order_time AND o.order_time + INTERVAL '8' HOUR
--! grouped_in_windows
WITH shipped AS (
  SELECT s.carrier, p.amount, s.ship_time FROM orders o
  JOIN payments p ON o.order_id = p.order_id AND p.pay_time BETWEEN o.order_time AND o.order_time + INTERVAL '4' HOUR
  JOIN shipments s ON s.order_id = p.order_id AND s.ship_time BETWEEN p.pay_time AND p.pay_time + INTERVAL '6' HOUR
)
SELECT window_start, carrier, COUNT(*) AS n, SUM(amount) AS paid
FROM TABLE(TUMBLE(TABLE shipped, DESCRIPTOR(ship_time), INTERVAL '12' HOUR))
GROUP BY window_start, window_end, carrier
