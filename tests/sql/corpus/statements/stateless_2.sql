--! extract_parts
SELECT order_id, EXTRACT(YEAR FROM order_time) AS y, EXTRACT(MONTH FROM order_time) AS m, EXTRACT(DAY FROM order_time) AS d, EXTRACT(HOUR FROM order_time) AS h, EXTRACT(MINUTE FROM order_time) AS mi, EXTRACT(SECOND FROM order_time) AS s FROM orders
--! short_parts
select order_id, year(order_time), month(order_time), dayofmonth(order_time), hour(order_time), minute(order_time), second(order_time), quarter(order_time), week(order_time), dayofweek(order_time), dayofyear(order_time) from orders
--! date_format
SELECT order_id, DATE_FORMAT(order_time, 'yyyy-MM-dd HH:mm:ss') AS time_text, DATE_FORMAT(order_time, 'yyyyMMddHH') AS bucket FROM orders
--! floor_times
SELECT order_id, FLOOR(order_time TO HOUR) AS h, FLOOR(order_time TO DAY) AS d, CEIL(order_time TO MINUTE) AS m FROM orders
--! intervals
SELECT order_id, order_time + INTERVAL '1' DAY AS due, order_time - INTERVAL '30' MINUTE AS earlier, order_time + INTERVAL '1:30' HOUR TO MINUTE AS later FROM orders
--! timestampdiff
SELECT id, TIMESTAMPDIFF(MINUTE, `dateTime`, expires) AS minutes_open, TIMESTAMPDIFF(SECOND, `dateTime`, expires) AS seconds_open, TIMESTAMPADD(HOUR, 2, expires) AS extended_to FROM auction
--! time_literals
SELECT order_id FROM orders WHERE order_time >= TIMESTAMP '2026-03-02 08:05:00' AND order_time < TIMESTAMP '2026-03-02 18:00:00.500'
--! date_compare
SELECT customer_id, signup_date FROM customers WHERE signup_date >= DATE '2026-02-01'
--! epoch_to_time
SELECT event_id, TO_TIMESTAMP_LTZ(epoch_ms, 3) AS event_at FROM events
--! epoch_from_unixtime
SELECT event_id, TO_TIMESTAMP(FROM_UNIXTIME(epoch_ms / 1000, 'yyyy-MM-dd HH:mm:ss')) AS event_at, FROM_UNIXTIME(epoch_ms / 1000) AS text_at FROM events
--! to_date
SELECT event_id, TO_DATE('2026-03-01') AS d, TO_TIMESTAMP('2026-03-01 10:00:00') AS t, UNIX_TIMESTAMP('2026-03-01 10:00:00') AS u FROM events
--! json_value
SELECT event_id, JSON_VALUE(payload, '$.user.id') AS uid, JSON_VALUE(payload, '$.amount' RETURNING DOUBLE) AS amount FROM events
--! json_value_default
SELECT event_id, JSON_VALUE(payload, '$.missing' DEFAULT 'none' ON EMPTY) AS missing, JSON_VALUE(payload, 'lax $.user.id' NULL ON EMPTY NULL ON ERROR) AS uid FROM events
--! json_query_exists
SELECT event_id, JSON_QUERY(payload, '$.user') AS u, JSON_EXISTS(payload, '$.amount') AS has_amount FROM events WHERE payload IS JSON
--! json_object
SELECT JSON_OBJECT('id' VALUE event_id, 'type' VALUE event_type) AS j FROM events
--! try_cast
SELECT event_id, TRY_CAST(payload AS INT) AS n, TRY_CAST('12' AS INT) + 1 AS m FROM events
--! array_access
SELECT host, tags[1] AS first_tag, CARDINALITY(tags) AS n FROM logs
--! map_access
SELECT host, attributes['env'] AS env, attributes['zone'] AS zone FROM logs WHERE attributes['team'] IS NOT NULL
--! array_contains
SELECT host, message FROM logs WHERE ARRAY_CONTAINS(tags, 'new')
--! nested_row
SELECT cart_id, items[1].sku AS sku, items[1].qty AS qty FROM carts
--! constructors
SELECT sensor_id, ARRAY[temperature, humidity] AS readings, MAP['t', temperature] AS m, ROW(sensor_id, location) AS r FROM sensor_readings
--! hashes
SELECT MD5(user_id) AS h, SHA256(user_id) AS s, TO_BASE64(user_id) AS b FROM clicks
--! constants
SELECT 'orders' AS source, 1 AS version, 2.5 AS factor, CAST(NULL AS STRING) AS nothing, order_id FROM orders
--! distance
select rideId, SQRT(POWER(lon - 50.0, 2) + POWER(lat - 50.0, 2)) as dist from rides where isStart
--! union_all
SELECT order_id AS id, 'order' AS kind, order_time AS event_at FROM orders
UNION ALL
SELECT payment_id, 'payment', pay_time FROM payments
--! union_all_three
select 'a' as src, user_id from clicks where device = 'mobile'
union all select 'b', user_id from impressions
union all
(select 'c', user_id from logins where success)
--! union_all_filtered
SELECT * FROM (
  SELECT user_id, click_time AS ts FROM clicks
  UNION ALL
  SELECT user_id, impression_time AS ts FROM impressions
) t WHERE t.user_id <> 'user1'
--! subquery
SELECT order_id, total FROM (SELECT order_id, price * quantity AS total, status FROM orders) WHERE total > 100 AND status = 'shipped'
--! with_query
WITH big AS (
  SELECT tx_id, account_id, amount FROM transactions WHERE amount > 50
), online AS (
  SELECT tx_id, account_id, amount * 1.1e0 AS fee_amount FROM big
)
SELECT * FROM online WHERE fee_amount < 120;
--! nested_subqueries
select x.uid, x.u from (select y.user_id as uid, upper(y.url) as u from (select * from clicks where dwell_ms > 100) as y) as x
--! values_constants
SELECT * FROM (VALUES (1, 'a'), (2, 'b'), (3, CAST(NULL AS STRING))) AS t(id, name)
--! values_with_filter
SELECT name, id * 2 AS twice FROM (VALUES (1, 'a'), (2, 'b')) AS t(id, name) WHERE id > 1
--! select_without_from
SELECT 1 + 1 AS two, UPPER('abc') AS abc
--! commented
/* cleaned events
   ; with a semicolon in a comment */
SELECT event_id, -- the id; 'quoted'
       event_type /* a kind */
FROM events -- no WHERE
;
--! odd_format
sElEcT
	o.order_id
	,o.price
	,o . quantity
FrOm orders o
wHeRe   o.price>10and o.quantity<>3
--! escaped_string
SELECT 'it''s' AS quote, 'a\b' AS slash, order_id FROM orders WHERE status <> 'it''s'
--! unicode_string
SELECT U&'\00e9t\00e9' AS word, name FROM person WHERE name = 'Çelik'
--! keywords_as_names
SELECT `level`, `host` AS `table`, `message` AS `user` FROM logs
--! hint
SELECT /*+ OPTIONS('scan.startup.mode' = 'earliest-offset') */ order_id FROM orders
--! table_hint
SELECT order_id, price FROM orders /*+ OPTIONS('scan.parallelism' = '1') */ WHERE price > 20
--! parenthesized
SELECT ((price + 1) * (2 - quantity)) AS v, (NOT (status = 'paid' OR (status = 'created' AND quantity > 1))) AS open_order FROM orders
--! between_symmetric
SELECT tx_id FROM transactions WHERE amount BETWEEN SYMMETRIC 90 AND 20 AND amount NOT BETWEEN 40 AND 45
--! where_true
SELECT user_id FROM clicks WHERE 1 = 1 AND TRUE
--! where_unknown
SELECT user_id FROM clicks WHERE dwell_ms > NULL
--! distinct_batch
SELECT DISTINCT country, is_online FROM transactions
--! initcap_reverse
SELECT INITCAP(location) AS l, REVERSE(sensor_id) AS r, REPEAT('x', 3) AS x, ASCII(sensor_id) AS a FROM sensor_readings
--! scientific
SELECT tx_id, amount * 1e-2 AS cents, 1.5E3 AS k FROM transactions WHERE amount >= 1e1
