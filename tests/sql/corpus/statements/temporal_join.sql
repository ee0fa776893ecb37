--! currency
SELECT
     order_id,
     price,
     orders.currency,
     rate,
     order_time
FROM orders
LEFT JOIN currency_rates FOR SYSTEM_TIME AS OF orders.order_time
ON orders.currency = currency_rates.currency;
--! inner_expression
SELECT o.order_id, o.price * r.rate AS converted FROM orders AS o JOIN currency_rates FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency
--! products
select o.order_id, p.product_name, p.category from orders o left join products for system_time as of o.order_time as p on o.product_id = p.product_id where o.quantity > 1
--! then_window
SELECT window_start, SUM(eur) AS total FROM TABLE(TUMBLE((
  SELECT o.order_time AS ts, o.quantity AS eur FROM orders o JOIN currency_rates FOR SYSTEM_TIME AS OF o.order_time r ON o.currency = r.currency
), DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end
--! two_temporal
SELECT o.order_id, r.rate, p.category FROM orders o
JOIN currency_rates FOR SYSTEM_TIME AS OF o.order_time AS r ON o.currency = r.currency
JOIN products FOR SYSTEM_TIME AS OF o.order_time AS p ON o.product_id = p.product_id
