--! top3_suppliers
SELECT *
  FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC, account_id) as rownum
    FROM (
      SELECT window_start, window_end, account_id, SUM(amount) as total, COUNT(*) as cnt
      FROM TABLE(
        TUMBLE(TABLE transactions, DESCRIPTOR(tx_time), INTERVAL '1' HOUR))
      GROUP BY window_start, window_end, account_id
    )
  ) WHERE rownum <= 3;
--! top_rows
SELECT * FROM (
  SELECT auction, bidder, price, window_start, window_end, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS rownum
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' MINUTES)))
WHERE rownum <= 3
--! window_dedup
select * from (
  select event_id, user_id, ts, window_start, window_end, row_number() over (partition by window_start, window_end, event_id order by ts desc) as rownum
  from table(tumble(table events, descriptor(ts), interval '10' minutes)))
where rownum = 1
--! top_per_key_hop
SELECT window_end, location, sensor_id, temperature FROM (
  SELECT window_start, window_end, location, sensor_id, temperature, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, location ORDER BY temperature DESC) AS rn
  FROM TABLE(HOP(TABLE sensor_readings, DESCRIPTOR(reading_time), INTERVAL '5' MINUTES, INTERVAL '15' MINUTES)) WHERE temperature IS NOT NULL
) WHERE rn <= 2
--! top_count_with
WITH counts AS (
  SELECT url, window_start, window_end, COUNT(*) AS `views` FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(click_time), INTERVAL '30' MINUTES)) GROUP BY url, window_start, window_end
)
SELECT window_start, url, `views` FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY `views` DESC, url ASC) AS pos FROM counts) WHERE pos <= 1
--! rank_in_window
SELECT window_start, symbol, volume FROM (SELECT *, RANK() OVER (PARTITION BY window_start, window_end ORDER BY volume DESC) AS r FROM TABLE(TUMBLE(TABLE ticker, DESCRIPTOR(rowtime), INTERVAL '1' HOUR))) WHERE r <= 1
