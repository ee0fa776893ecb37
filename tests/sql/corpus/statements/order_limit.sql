--! order_by | ordered order_time
SELECT order_id, price, order_time FROM orders ORDER BY order_time
--! order_desc_limit | ordered amount tx_id
SELECT tx_id, amount FROM transactions WHERE amount IS NOT NULL ORDER BY amount DESC, tx_id LIMIT 10
--! limit_zero_offset | ordered click_time user_id
select user_id, click_time from clicks order by click_time, user_id, url limit 5 offset 3
--! order_by_alias | ordered t2 sensor_id
SELECT sensor_id, temperature * 2 AS t2 FROM sensor_readings WHERE sensor_id IS NOT NULL ORDER BY t2 DESC, sensor_id, reading_time FETCH FIRST 4 ROWS ONLY
--! windows_ordered | ordered window_start
SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '1' HOUR)) GROUP BY window_start, window_end ORDER BY window_start DESC LIMIT 3
--! order_time_asc | ordered rowtime
SELECT * FROM ticker ORDER BY rowtime ASC
