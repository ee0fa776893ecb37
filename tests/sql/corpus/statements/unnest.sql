--! unnest_cross
SELECT host, tag FROM logs CROSS JOIN UNNEST(tags) AS t (tag)
--! unnest_comma
select host, tag from logs, unnest(tags) as t(tag) where tag <> 'a'
--! unnest_rows
SELECT c.cart_id, i.sku, i.qty, i.unit_price FROM carts AS c CROSS JOIN UNNEST(c.items) AS i (sku, qty, unit_price)
--! unnest_total
SELECT cart_id, cart_time, qty * unit_price AS line_total FROM carts CROSS JOIN UNNEST(items) AS i(sku, qty, unit_price) WHERE qty > 2
--! unnest_map
SELECT host, k, v FROM logs CROSS JOIN UNNEST(attributes) AS m (k, v)
--! unnest_left
SELECT host, message, tag FROM logs LEFT JOIN UNNEST(tags) AS t (tag) ON TRUE
--! unnest_ordinality
SELECT host, tag, pos FROM logs CROSS JOIN UNNEST(tags) WITH ORDINALITY AS t (tag, pos)
--! unnest_windowed
SELECT window_start, tag, COUNT(*) AS n FROM TABLE(TUMBLE((SELECT tag, log_time FROM logs CROSS JOIN UNNEST(tags) AS t (tag)), DESCRIPTOR(log_time), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, tag
--! unnest_no_alias_columns
SELECT cart_id, sku, qty FROM carts, UNNEST(items)
--! unnest_grouped_window
SELECT sku, TUMBLE_END(cart_time, INTERVAL '1' HOUR) AS w, SUM(qty) AS sold FROM carts CROSS JOIN UNNEST(items) AS i (sku, qty, unit_price) GROUP BY sku, TUMBLE(cart_time, INTERVAL '1' HOUR)
