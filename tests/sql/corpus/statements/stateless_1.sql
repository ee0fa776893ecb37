--! q0_passthrough
SELECT auction, bidder, price, `dateTime`, extra FROM bid;
--! q1_currency
SELECT
    auction,
    bidder,
    0.908 * price as price, -- convert dollar to euro
    `dateTime`,
    extra
FROM bid;
--! q2_selection
SELECT auction, price FROM bid WHERE MOD(auction, 3) = 0
--! q14_calculation
SELECT
    auction,
    bidder,
    0.908 * price as price,
    CASE
        WHEN HOUR(`dateTime`) >= 8 AND HOUR(`dateTime`) <= 18 THEN 'dayTime'
        WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
        ELSE 'otherTime'
    END AS bidTimeType,
    `dateTime`,
    extra
FROM bid
WHERE 0.908 * price > 1000 AND 0.908 * price < 50000000
--! q21_channel_id
SELECT
    auction, bidder, price, channel,
    CASE
        WHEN lower(channel) = 'apple' THEN '0'
        WHEN lower(channel) = 'google' THEN '1'
        WHEN lower(channel) = 'facebook' THEN '2'
        WHEN lower(channel) = 'baidu' THEN '3'
        ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
        END
    AS channel_id FROM bid
    where REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) is not null or
          lower(channel) in ('apple', 'google', 'facebook', 'baidu');
--! q22_split_url
SELECT
    auction, bidder, price, channel,
    SPLIT_INDEX(url, '/', 3) as dir1,
    SPLIT_INDEX(url, '/', 4) as dir2,
    SPLIT_INDEX(url, '/', 5) as dir3 FROM bid;
--! q10_partitioned
SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm')
FROM bid;
--! star
select * from orders;
--! star_where
SELECT * FROM orders WHERE status = 'paid'
--! star_not_null
select * from customers where city is not null;
--! projection_reordered
SELECT status, order_id, price FROM orders
--! aliases_quoted
SELECT o.`order_id` AS `Order`, o.`price` `Total Price` FROM `orders` AS o WHERE o.`price` > 50
--! computed_total
SELECT order_id, price * quantity AS total_amount, order_time FROM orders WHERE quantity >= 2;
--! filter_in
select order_id, currency, price from orders where currency in ('EUR', 'CHF') and price between 10 and 150
--! filter_not_in
SELECT order_id, currency FROM orders WHERE currency NOT IN ('EUR', 'USD') OR currency IS NULL
--! filter_like
SELECT name, emailAddress FROM person WHERE emailAddress LIKE '%@example.com'
--! filter_like_escape
SELECT id, description FROM auction WHERE description LIKE '%!%%' ESCAPE '!' OR description LIKE '%#_%' ESCAPE '#'
--! case_searched
SELECT sensor_id,
  temperature,
  CASE WHEN temperature > 100 THEN 'HOT' WHEN temperature > 50 THEN 'WARM' WHEN temperature IS NULL THEN 'UNKNOWN' ELSE 'COLD' END AS `level`
FROM sensor_readings
--! case_simple
select order_id, case status when 'created' then 0 when 'paid' then 1 when 'shipped' then 2 else -1 end as status_code from orders
--! coalesce_ifnull
SELECT order_id, COALESCE(currency, 'EUR') AS currency, IFNULL(quantity, 0) AS quantity FROM orders
--! nullif_if
SELECT tx_id, NULLIF(merchant, '') AS merchant, IF(amount > 60, 'large', 'small') AS size_class FROM transactions
--! casts
SELECT CAST(auction AS STRING) AS auction_id, CAST(price AS DOUBLE) / 100 AS dollars, CAST(bidder AS INT) AS bidder FROM bid
--! cast_varchar
SELECT CAST(customer_id AS VARCHAR) AS customer, CAST(price AS VARCHAR) AS price_text FROM orders;
--! cast_time_text
SELECT order_id, CAST(order_time AS STRING) AS order_time_text, CAST(order_time AS DATE) AS order_date FROM orders
--! upper_lower_trim
SELECT UPPER(name) AS name, LOWER(state) AS state, TRIM(city) AS city, CHAR_LENGTH(city) AS n FROM person
--! concat_pipes
SELECT name || ' <' || emailAddress || '>' AS contact FROM person WHERE name IS NOT NULL;
--! concat_functions
SELECT CONCAT(symbol, '-', CAST(volume AS STRING)) AS k, CONCAT_WS('/', symbol, 'x', CAST(volume AS STRING)) AS path FROM ticker
--! substring_forms
SELECT SUBSTRING(creditCard FROM 1 FOR 4) AS head, SUBSTRING(creditCard, 6) AS tail, SUBSTR(creditCard, -4) AS last4, LEFT(creditCard, 4) AS l, RIGHT(creditCard, 4) AS r FROM person
--! mask_card
select id, regexp_replace(creditCard, '[0-9]{4} ', '**** ') as masked from person
--! replace_position
SELECT url, REPLACE(url, 'https://', '') AS bare, POSITION('/' IN url) AS slash, LOCATE('item', url) AS item_at, INSTR(url, '?') AS q FROM clicks
--! pads
SELECT LPAD(CAST(tx_id AS STRING), 8, '0') AS padded, RPAD(country, 4, '.') AS c FROM transactions
--! regexp_filter
SELECT host, message FROM logs WHERE REGEXP(message, 'GET /[a-z]+ [45]\d\d')
--! similar_to
SELECT host, message FROM logs WHERE message SIMILAR TO 'GET%'
--! regexp_extract
SELECT host, REGEXP_EXTRACT(message, 'GET (/\w+) (\d+)', 1) AS path, REGEXP_EXTRACT(message, 'GET (/\w+) (\d+)', 2) AS code FROM logs
--! round_numbers
SELECT sensor_id, ROUND(temperature, 1) AS t1, ROUND(temperature) AS t0, FLOOR(temperature) AS lo, CEIL(temperature) AS hi, TRUNCATE(humidity, 1) AS h FROM sensor_readings
--! fahrenheit
SELECT sensor_id, (temperature - 32) * 5 / 9 AS celsius, reading_time FROM sensor_readings WHERE humidity IS NOT NULL
--! decimals
SELECT order_id, price * 1.19 AS gross, price / quantity AS unit, CAST(price * quantity AS DECIMAL(12, 1)) AS rounded FROM orders
--! integer_division
SELECT auction, price / 7 AS q, price % 7 AS r, -price AS neg, ABS(price - 2000) AS dist FROM bid
--! math_functions
SELECT SQRT(amount) AS root, POWER(amount, 2) AS sq, LN(amount) AS log_e, LOG10(amount) AS lg, EXP(0.1e0 * amount) AS e, SIGN(amount - 50) AS s FROM transactions
--! greatest_least
SELECT GREATEST(temperature, humidity) AS hi, LEAST(temperature, humidity) AS lo FROM sensor_readings
--! booleans
SELECT user_id, success AND ip <> '10.0.0.1' AS ok, NOT success AS failed, success IS NOT TRUE AS unsure FROM logins
--! boolean_filter
select rideId, taxiId from rides where isStart and psgCnt > 2
--! is_distinct
SELECT order_id FROM orders WHERE status IS DISTINCT FROM 'paid' AND currency IS NOT DISTINCT FROM 'EUR'
