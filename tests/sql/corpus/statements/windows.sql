--! tumble_sum
SELECT window_start, window_end, SUM(price) AS total_price
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' MINUTES))
GROUP BY window_start, window_end;
--! tumble_keyed
SELECT sensor_id, window_start, window_end, AVG(temperature) AS avg_temp, MAX(temperature) AS max_temp, MIN(temperature) AS min_temp, COUNT(*) AS readings
FROM TABLE(
  TUMBLE(TABLE sensor_readings, DESCRIPTOR(reading_time), INTERVAL '1' MINUTE))
GROUP BY sensor_id, window_start, window_end
--! hop_sum
SELECT window_start, window_end, SUM(price) AS total_price
  FROM TABLE(
    HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))
  GROUP BY window_start, window_end;
--! cumulate_sum
SELECT window_start, window_end, SUM(price) AS total_price
  FROM TABLE(
    CUMULATE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES))
  GROUP BY window_start, window_end;
--! session_keyed
SELECT user_id, window_start, window_end, COUNT(*) AS n_clicks
FROM TABLE(SESSION(TABLE clicks PARTITION BY user_id, DESCRIPTOR(click_time), INTERVAL '5' MINUTES))
GROUP BY user_id, window_start, window_end
--! session_global
select window_start, window_end, count(*) as cnt from table(session(table logins, descriptor(login_time), interval '2' minutes)) group by window_start, window_end
--! named_arguments
SELECT window_start, window_end, COUNT(*) AS cnt
FROM TABLE(
  TUMBLE(
    DATA => TABLE orders,
    TIMECOL => DESCRIPTOR(order_time),
    SIZE => INTERVAL '1' HOUR))
GROUP BY window_start, window_end
--! with_offset
SELECT window_start, window_end, COUNT(order_id) AS cnt
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' HOUR, INTERVAL '15' MINUTES))
GROUP BY window_start, window_end
--! daily
SELECT DATE_FORMAT(window_start, 'yyyy-MM-dd') AS `day`, COUNT(*) AS total_orders, SUM(price * quantity) AS revenue
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '1' DAY))
GROUP BY window_start, window_end
--! q7_highest_bid
SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra
FROM bid B
JOIN (
  SELECT MAX(price) AS maxprice, window_end AS `dateTime`
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) B1
ON B.price = B1.maxprice
WHERE B.`dateTime` BETWEEN B1.`dateTime` - INTERVAL '10' SECOND AND B1.`dateTime`
--! q5_hot_items
SELECT AuctionBids.auction, AuctionBids.num
 FROM (
   SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
     FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
     GROUP BY auction, window_start, window_end
 ) AS AuctionBids
 JOIN (
   SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
   FROM (
     SELECT count(*) AS num, window_start AS starttime, window_end AS endtime
     FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
     GROUP BY auction, window_start, window_end
     ) AS CountBids
   GROUP BY CountBids.starttime, CountBids.endtime
 ) AS MaxBids
 ON AuctionBids.starttime = MaxBids.starttime AND
    AuctionBids.endtime = MaxBids.endtime AND
    AuctionBids.num >= MaxBids.maxn;
--! filter_aggregates
SELECT
  window_start,
  COUNT(*) AS total_bids,
  COUNT(*) FILTER (WHERE price < 1000) AS rank1_bids,
  COUNT(*) FILTER (WHERE price >= 1000 AND price < 3000) AS rank2_bids,
  COUNT(*) FILTER (WHERE price >= 3000) AS rank3_bids,
  COUNT(DISTINCT bidder) AS total_bidders,
  COUNT(DISTINCT bidder) FILTER (WHERE price < 1000) AS rank1_bidders
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '1' HOUR))
GROUP BY window_start, window_end
--! having
SELECT user_id, window_start, COUNT(*) AS failures
FROM TABLE(TUMBLE(TABLE logins, DESCRIPTOR(login_time), INTERVAL '10' MINUTE))
WHERE NOT success
GROUP BY user_id, window_start, window_end
HAVING COUNT(*) >= 2
--! subquery_input
SELECT window_start, window_end, country, SUM(amount) AS total
FROM TABLE(TUMBLE(
  (SELECT * FROM transactions), DESCRIPTOR(tx_time), INTERVAL '30' MINUTE))
GROUP BY window_start, window_end, country
--! with_input
WITH paid AS (SELECT * FROM orders WHERE status IN ('paid', 'shipped'))
SELECT window_start, window_end, SUM(price) AS revenue
FROM TABLE(TUMBLE(TABLE paid, DESCRIPTOR(order_time), INTERVAL '10' MINUTE))
GROUP BY window_start, window_end
--! without_table_keyword
SELECT symbol, window_end, MAX(price) - MIN(price) AS spread
FROM TUMBLE(TABLE ticker, DESCRIPTOR(rowtime), INTERVAL '5' MINUTE)
GROUP BY symbol, window_start, window_end
--! candles
SELECT
  symbol, window_start,
  FIRST_VALUE(price) AS open_price,
  MAX(price) AS high_price,
  MIN(price) AS low_price,
  LAST_VALUE(price) AS close_price,
  SUM(volume) AS total_volume
FROM TABLE(TUMBLE(TABLE ticker, DESCRIPTOR(rowtime), INTERVAL '15' MINUTES))
WHERE price IS NOT NULL
GROUP BY symbol, window_start, window_end
--! rows_of_windows
SELECT * FROM TABLE(TUMBLE(TABLE ticker, DESCRIPTOR(rowtime), INTERVAL '10' MINUTES))
--! hop_rows
SELECT sensor_id, temperature, window_start, window_end FROM TABLE(HOP(TABLE sensor_readings, DESCRIPTOR(reading_time), INTERVAL '30' SECONDS, INTERVAL '1' MINUTES)) WHERE temperature > 80
--! grouping_sets
SELECT window_start, window_end, supplier_country, carrier_online, SUM(amount) AS total
FROM (SELECT window_start, window_end, country AS supplier_country, is_online AS carrier_online, amount
      FROM TABLE(TUMBLE(TABLE transactions, DESCRIPTOR(tx_time), INTERVAL '10' MINUTES)))
GROUP BY window_start, window_end, GROUPING SETS ((supplier_country, carrier_online), (supplier_country), ())
--! rollup
SELECT window_start, window_end, location, sensor_id, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE sensor_readings, DESCRIPTOR(reading_time), INTERVAL '10' MINUTES))
GROUP BY window_start, window_end, ROLLUP (location, sensor_id)
--! cube
SELECT window_start, window_end, channel, auction, SUM(price) AS price
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, CUBE (channel, auction)
--! cascade_window_time
WITH tumbled AS (
  SELECT window_time AS rowtime, SUM(amount) AS partial
  FROM TABLE(TUMBLE(TABLE transactions, DESCRIPTOR(tx_time), INTERVAL '5' MINUTES))
  GROUP BY account_id, window_start, window_end, window_time
)
SELECT window_start, window_end, SUM(partial) AS total
FROM TABLE(TUMBLE(TABLE tumbled, DESCRIPTOR(rowtime), INTERVAL '10' MINUTES))
GROUP BY window_start, window_end
--! window_time_selected
select window_time, count(*) as c from table(tumble(table clicks, descriptor(click_time), interval '1' hours)) group by window_start, window_end, window_time
--! expression_keys
SELECT window_start, window_end, UPPER(channel) AS ch, MOD(auction, 2) AS half, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, UPPER(channel), MOD(auction, 2)
--! case_sum
SELECT window_start, window_end,
  SUM(CASE WHEN event_type = 'purchase' THEN 1 ELSE 0 END) AS purchases,
  COUNT(CASE WHEN event_type = 'view' THEN 1 END) AS `views`,
  CAST(SUM(CASE WHEN event_type = 'purchase' THEN 1 ELSE 0 END) AS DOUBLE) / COUNT(*) AS conversion
FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '30' MINUTES))
GROUP BY window_start, window_end
--! json_keys
SELECT window_start, JSON_VALUE(payload, '$.user.id') AS uid, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY window_start, window_end, JSON_VALUE(payload, '$.user.id')
--! listagg
SELECT user_id, window_start, LISTAGG(device, ',') AS devices
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(click_time), INTERVAL '1' MINUTE))
GROUP BY user_id, window_start, window_end
--! stddev
SELECT sensor_id, window_end, STDDEV_POP(temperature) AS sd, VAR_SAMP(temperature) AS v, AVG(humidity) AS h
FROM TABLE(HOP(TABLE sensor_readings, DESCRIPTOR(reading_time), INTERVAL '5' MINUTES, INTERVAL '1' HOURS))
GROUP BY sensor_id, window_start, window_end
--! avg_integers | average
SELECT auction, window_end, AVG(price) AS avg_price FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '1' HOUR)) GROUP BY auction, window_start, window_end
--! union_of_streams
WITH seen AS (
  SELECT user_id, click_time AS ts FROM clicks UNION ALL SELECT user_id, impression_time FROM impressions
)
SELECT window_start, window_end, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE seen, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end
--! q12_like_epoch
SELECT window_start, COUNT(*) AS n, MAX(dwell_ms) AS longest, SUM(dwell_ms) AS total FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(click_time), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
--! window_of_window_same
SELECT window_start, window_end, MAX(n) AS busiest FROM (
  SELECT user_id, window_start, window_end, COUNT(*) AS n
  FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(click_time), INTERVAL '10' MINUTES))
  GROUP BY user_id, window_start, window_end)
GROUP BY window_start, window_end
--! functions_of_aggregates
SELECT window_start, COALESCE(SUM(amount), 0e0) AS total, ROUND(AVG(amount), 2) AS mean, UPPER(MAX(merchant)) AS last_merchant,
  CASE WHEN COUNT(*) > 3 THEN 'busy' ELSE 'calm' END AS label
FROM TABLE(TUMBLE(TABLE transactions, DESCRIPTOR(tx_time), INTERVAL '10' MINUTES))
GROUP BY window_start, window_end
--! open_and_close_with_nulls
SELECT symbol, window_start, FIRST_VALUE(price) AS o, MAX(price) h, MIN(price) l, LAST_VALUE(price) c, FIRST_VALUE(volume) v
FROM TABLE(TUMBLE(TABLE ticker, DESCRIPTOR(rowtime), INTERVAL '5' MINUTE))
GROUP BY symbol, window_start, window_end
--! rollup_distinct
SELECT window_start, channel, bidder, COUNT(DISTINCT auction) AS auctions, COUNT(*) AS n
FROM TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)
GROUP BY window_start, window_end, ROLLUP (channel, bidder)
--! cube_distinct_of_a_key
SELECT window_end, channel, bidder, COUNT(DISTINCT channel) AS channels, COUNT(DISTINCT price) AS prices,
  GROUPING(channel) AS gc, GROUPING(bidder) AS gb, GROUPING_ID(channel, bidder) AS g
FROM HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '5' SECOND, INTERVAL '10' SECOND)
GROUP BY window_start, window_end, CUBE (channel, bidder)
--! grouping_sets_distinct_filter
SELECT window_start, channel, COUNT(DISTINCT bidder) FILTER (WHERE price > 100) AS rich, COUNT(DISTINCT bidder) AS bidders, AVG(DISTINCT CAST(price AS DOUBLE)) AS mean
FROM CUMULATE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '5' SECOND, INTERVAL '20' SECOND)
GROUP BY window_start, window_end, GROUPING SETS ((channel), ())
HAVING COUNT(DISTINCT bidder) > 1
