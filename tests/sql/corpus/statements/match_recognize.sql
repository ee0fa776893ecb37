--! v_shape
SELECT *
FROM ticker
    MATCH_RECOGNIZE (
        PARTITION BY symbol
        ORDER BY rowtime
        MEASURES
            START_ROW.rowtime AS start_tstamp,
            LAST(PRICE_DOWN.rowtime) AS bottom_tstamp,
            LAST(PRICE_UP.rowtime) AS end_tstamp
        ONE ROW PER MATCH
        AFTER MATCH SKIP TO LAST PRICE_UP
        PATTERN (START_ROW PRICE_DOWN+ PRICE_UP)
        DEFINE
            PRICE_DOWN AS
                (LAST(PRICE_DOWN.price, 1) IS NULL AND PRICE_DOWN.price < START_ROW.price) OR
                    PRICE_DOWN.price < LAST(PRICE_DOWN.price, 1),
            PRICE_UP AS
                PRICE_UP.price > LAST(PRICE_DOWN.price, 1)
    ) MR;
--! three_failures
SELECT T.user_id, T.first_failure, T.last_failure
FROM logins
MATCH_RECOGNIZE (
  PARTITION BY user_id
  ORDER BY login_time
  MEASURES
    FIRST(F.login_time) AS first_failure,
    LAST(F.login_time) AS last_failure
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (F{2,} S)
  DEFINE
    F AS F.success = FALSE,
    S AS S.success = TRUE
) AS T
--! small_then_large
SELECT * FROM transactions MATCH_RECOGNIZE (
  PARTITION BY account_id ORDER BY tx_time
  MEASURES A.amount AS small_amount, B.amount AS large_amount, B.tx_time AS alert_time
  ONE ROW PER MATCH
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A B) WITHIN INTERVAL '10' MINUTE
  DEFINE A AS A.amount < 50, B AS B.amount > 80
)
--! average_below
SELECT *
FROM ticker
    MATCH_RECOGNIZE (
        PARTITION BY symbol
        ORDER BY rowtime
        MEASURES
            FIRST(A.rowtime) AS start_tstamp,
            LAST(A.rowtime) AS end_tstamp,
            AVG(A.price) AS avgPrice
        ONE ROW PER MATCH
        AFTER MATCH SKIP PAST LAST ROW
        PATTERN (A+ B)
        DEFINE
            A AS AVG(A.price) < 65
    ) MR;
--! temperature_rise
select * from sensor_readings match_recognize (
  partition by sensor_id
  order by reading_time
  measures first(r.temperature) as t0, last(r.temperature) as t1, count(r.temperature) as steps
  one row per match
  after match skip past last row
  pattern (s r{2,4} e)
  define e as e.temperature < last(r.temperature), r as last(r.temperature, 1) is null or r.temperature > last(r.temperature, 1)
)
--! order_paid_shipped
SELECT m.order_id, m.paid_at, m.shipped_at FROM orders MATCH_RECOGNIZE (
  PARTITION BY order_id ORDER BY order_time
  MEASURES P.order_time AS paid_at, S.order_time AS shipped_at
  PATTERN (P X*? S)
  DEFINE P AS P.status = 'paid', S AS S.status = 'shipped'
) m
--! no_partition
SELECT * FROM clicks MATCH_RECOGNIZE (
  ORDER BY click_time
  MEASURES A.user_id AS a_user, C.user_id AS c_user
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A B? C)
  DEFINE A AS A.device = 'mobile', B AS B.device = 'tablet', C AS C.device = 'desktop'
)
--! match_rowtime
SELECT account_id, n, ended_at FROM transactions MATCH_RECOGNIZE (
  PARTITION BY account_id ORDER BY tx_time
  MEASURES COUNT(A.tx_id) AS n, SUM(A.amount) AS total, MATCH_ROWTIME() AS ended_at
  PATTERN (A{2,} B) WITHIN INTERVAL '1' HOUR
  DEFINE A AS A.is_online, B AS NOT B.is_online
) WHERE n >= 2
--! skip_to_first
SELECT * FROM ticker MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY rowtime
  MEASURES A.price AS p0, LAST(B.price) AS p1, C.price AS p2
  AFTER MATCH SKIP TO FIRST B
  PATTERN (A B+ C)
  DEFINE B AS B.price > A.price, C AS C.price < A.price
)
--! from_subquery
SELECT * FROM (SELECT user_id, event_type, ts FROM events WHERE event_type IS NOT NULL) MATCH_RECOGNIZE (
  PARTITION BY user_id ORDER BY ts
  MEASURES V.ts AS viewed, P.ts AS purchased
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (V C* P)
  DEFINE V AS V.event_type = 'view', C AS C.event_type <> 'purchase', P AS P.event_type = 'purchase'
) AS f
--! expression_measures
SELECT symbol, gain, label FROM ticker MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY rowtime
  MEASURES (LAST(U.price) - S.price) / 2 AS gain, UPPER(S.symbol) AS label
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (S U{2})
  DEFINE U AS U.price > S.price
)
--! subset_window
SELECT TUMBLE_START(mt, INTERVAL '1' HOUR) AS ws, COUNT(*) AS alerts FROM (
  SELECT mt FROM logins MATCH_RECOGNIZE (
    PARTITION BY user_id ORDER BY login_time
    MEASURES MATCH_ROWTIME() AS mt
    AFTER MATCH SKIP PAST LAST ROW
    PATTERN (A B) DEFINE A AS NOT A.success, B AS NOT B.success))
GROUP BY TUMBLE(mt, INTERVAL '1' HOUR)
--! ride_end_missing
SELECT r.taxiId, r.started FROM rides MATCH_RECOGNIZE (
  PARTITION BY taxiId ORDER BY rideTime
  MEASURES S.rideTime AS started
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (S N{2,}? E)
  DEFINE S AS S.isStart = true, N AS N.isStart, E AS NOT E.isStart
) AS r
--! prev_function
SELECT * FROM ticker MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY rowtime
  MEASURES A.price AS a, B.price AS b
  PATTERN (A B) DEFINE B AS B.price > PREV(B.price)
)
