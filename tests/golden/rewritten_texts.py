"""The statements of `generate_rewrites`, by name: over the table T, or over L and R."""

from __future__ import annotations

_TUMBLE = "TUMBLE(TABLE {}, DESCRIPTOR(rt), INTERVAL '5' SECOND)"
_T, _L, _R = (_TUMBLE.format(name) for name in "TLR")
_HOP = "HOP(TABLE T, DESCRIPTOR(rt), INTERVAL '2' SECOND, INTERVAL '6' SECOND)"
_CUMULATE = "CUMULATE(TABLE T, DESCRIPTOR(rt), INTERVAL '2' SECOND, INTERVAL '6' SECOND)"
_PAIR = "SELECT L.idx AS l, R.idx AS r FROM"
_SAME = "L.window_start = R.window_start AND L.window_end = R.window_end"
_BY = "GROUP BY window_start, window_end"
_COUNTS = f"SELECT `key`, window_start, window_end, COUNT(*) AS n FROM {{}} {_BY}, `key`"
_FIRST = """SELECT `key`, rt, `value`, idx FROM (SELECT *, ROW_NUMBER() OVER (
    PARTITION BY `key`, FLOOR(`value`) ORDER BY rt) AS rn FROM T) WHERE rn = 1"""

_INTERVAL_JOINS = {
    "interval_where_between": f"""{_PAIR} L JOIN R ON L.`key` = R.`key`
        WHERE R.rt BETWEEN L.rt - INTERVAL '2' SECOND AND L.rt + INTERVAL '1' SECOND""",
    "interval_where_compared": f"""{_PAIR} L JOIN R ON L.`key` = R.`key`
        WHERE L.rt < R.rt + INTERVAL '2' SECOND AND L.rt >= R.rt - INTERVAL '3' SECOND
        AND L.`value` > R.`value`""",
    "interval_where_reversed": f"""{_PAIR} L JOIN R ON R.`key` = L.`key`
        WHERE (R.rt - INTERVAL '1' SECOND <= L.rt) AND (R.rt > L.rt - INTERVAL '2' SECOND)
        AND L.`value` + R.`value` > 3""",
    "interval_comma": f"""{_PAIR} L, R WHERE L.`key` = R.`key`
        AND L.rt BETWEEN R.rt AND R.rt + INTERVAL '4' SECOND AND (L.idx > 9 OR R.idx > 9)""",
    "interval_split": f"""{_PAIR} L INNER JOIN R ON L.`key` = R.`key` AND L.rt <= R.rt
        WHERE R.rt <= L.rt + INTERVAL '3' SECOND AND R.`value` IS NOT NULL""",
    "interval_left_where": f"""{_PAIR} L LEFT JOIN R ON L.`key` = R.`key`
        WHERE R.rt BETWEEN L.rt AND L.rt + INTERVAL '3' SECOND""",
    "interval_left_none": """SELECT L.idx AS l FROM L LEFT JOIN R ON L.`key` = R.`key`
        AND R.rt BETWEEN L.rt AND L.rt + INTERVAL '1' SECOND WHERE R.idx IS NULL""",
    "interval_cross": f"""{_PAIR} L CROSS JOIN R
        WHERE L.`key` = R.`key` AND L.rt >= R.rt + INTERVAL '1' SECOND
        AND L.rt <= R.rt + INTERVAL '2' SECOND""",
    "interval_null_keys": f"""{_PAIR} L JOIN R ON NULLIF(L.`key`, 'a') = NULLIF(R.`key`, 'a')
        WHERE L.rt BETWEEN R.rt AND R.rt + INTERVAL '4' SECOND""",
    "interval_cast_where": f"""{_PAIR} L JOIN R ON L.`key` = R.`key` AND L.idx > 3
        WHERE NOT (R.rt < L.rt) AND R.rt - INTERVAL '3' SECOND < L.rt""",
}
_AGAIN = {
    "hop_again": f"""SELECT window_start, window_end, MAX(n) AS m, COUNT(*) AS c
        FROM ({_COUNTS.format(_HOP)}) {_BY}""",
    "hop_again_of_keys": f"""SELECT k, window_start AS s, window_end AS e, SUM(n) AS n FROM (
        SELECT UPPER(`key`) AS k, `value`, window_start, window_end, COUNT(*) AS n FROM {_HOP}
        GROUP BY `key`, `value`, window_start, window_end) GROUP BY k, window_start, window_end""",
    "hop_again_in_time": f"""SELECT window_start, window_end, window_time, SUM(n) AS n FROM (
        SELECT `key`, window_start, window_end, window_time, COUNT(*) AS n FROM {_HOP}
        GROUP BY `key`, window_start, window_end, window_time)
        GROUP BY window_start, window_end, window_time""",
    "hop_again_joined": f"""SELECT a.`key`, a.n, a.window_start AS s, a.window_end AS e FROM
        ({_COUNTS.format(_HOP)}) AS a JOIN (SELECT MAX(n) AS m, window_start, window_end FROM
        ({_COUNTS.format(_HOP)}) {_BY}) AS b
        ON a.window_start = b.window_start AND a.window_end = b.window_end AND a.n >= b.m""",
    "hop_again_top": f"""SELECT `key`, n, window_start, window_end FROM (SELECT *, ROW_NUMBER() OVER
        (PARTITION BY window_start, window_end ORDER BY n DESC, `key`) AS rn FROM (
        SELECT `key`, SUM(n) AS n, window_start, window_end FROM ({_COUNTS.format(_HOP)})
        {_BY}, `key`)) WHERE rn <= 2""",
    "cumulate_again": f"""SELECT window_start, window_end, MAX(n) AS m, COUNT(*) AS c
        FROM ({_COUNTS.format(_CUMULATE)}) {_BY}""",
    "cumulate_again_renamed": f"""SELECT s, e, MAX(n) AS m FROM (SELECT `key`, window_start AS s,
        window_end AS e, COUNT(*) AS n FROM {_CUMULATE} {_BY}, `key`) WHERE n > 1 GROUP BY s, e""",
    "hop_offset_again": f"""SELECT window_start, window_end, MAX(n) AS m
        FROM ({_COUNTS.format(_HOP.replace("'6' SECOND", "'6' SECOND, INTERVAL '1' SECOND"))})
        {_BY} HAVING COUNT(*) > 1""",
}
_SIDES = f"SELECT L.* FROM (SELECT * FROM {_L}) L WHERE"
_SEMI = {
    "window_in": f"""SELECT L.idx, L.window_start FROM (SELECT * FROM {_L}) L WHERE L.`key` IN (
        SELECT `key` FROM (SELECT * FROM {_R}) R WHERE {_SAME})""",
    "window_not_in": f"""SELECT L.idx, L.window_start FROM (SELECT * FROM {_L}) L
        WHERE L.`key` NOT IN (SELECT `key` FROM (SELECT * FROM {_R}) R WHERE {_SAME})""",
    "window_not_in_null_right": f"""SELECT L.idx FROM (SELECT * FROM {_L}) L WHERE L.`key` NOT IN (
        SELECT NULLIF(`key`, 'a') FROM (SELECT * FROM {_R}) R WHERE {_SAME})""",
    "window_not_in_null_left": f"""SELECT L.idx FROM (SELECT * FROM {_L}) L
        WHERE NULLIF(L.`key`, 'a') NOT IN (SELECT `key` FROM (SELECT * FROM {_R}) R WHERE {_SAME})
        """,
    "window_in_null": f"""SELECT L.idx FROM (SELECT * FROM {_L}) L WHERE NULLIF(L.`key`, 'a') IN (
        SELECT NULLIF(`key`, 'a') FROM (SELECT * FROM {_R}) R WHERE {_SAME})""",
    "window_exists": f"""SELECT idx, window_start FROM (SELECT * FROM {_L}) L WHERE EXISTS (
        SELECT * FROM (SELECT * FROM {_R}) R WHERE L.`key` = R.`key` AND {_SAME})
        AND `value` > 0""",
    "window_not_exists": f"""SELECT idx, window_start FROM (SELECT * FROM {_L}) L WHERE NOT EXISTS (
        SELECT 1 FROM (SELECT * FROM {_R}) R WHERE L.`key` = R.`key` AND {_SAME}
        AND R.`value` > L.`value` AND R.`value` > 1)""",
    "window_in_grouped": f"""SELECT L.idx, L.window_end FROM (SELECT * FROM {_L}) L
        WHERE L.`key` IN (SELECT `key` FROM ({_COUNTS.format(_R)}) R WHERE {_SAME} AND R.n > 1)""",
}
_WINDOWS = {
    "where_window_start": f"""SELECT `key`, window_start, COUNT(*) AS n FROM {_T}
        WHERE window_start >= TIMESTAMP '1970-01-01 00:00:15' AND `value` > 0
        GROUP BY `key`, window_start, window_end""",
    "where_window_end_in_subquery": f"""SELECT window_start, window_end, COUNT(*) AS n FROM (
        SELECT * FROM {_T} WHERE window_end < TIMESTAMP '1970-01-01 00:00:30') {_BY}""",
    "having_window_start": f"""SELECT `key`, window_end, SUM(`value`) AS s FROM {_T}
        GROUP BY `key`, window_start, window_end
        HAVING window_start > TIMESTAMP '1970-01-01 00:00:15' AND COUNT(*) > 1""",
    "where_window_around": f"""SELECT * FROM ({_COUNTS.format(_T)})
        WHERE window_end <= TIMESTAMP '1970-01-01 00:00:20' OR n > 4""",
    "where_window_top": f"""SELECT idx, rn, window_start FROM (SELECT *, ROW_NUMBER() OVER (
        PARTITION BY window_start, window_end ORDER BY `value` DESC, idx) AS rn FROM {_T}
        WHERE window_start <> TIMESTAMP '1970-01-01 00:00:15') WHERE rn <= 2""",
    "where_window_top_of_groups": f"""SELECT * FROM (SELECT *, ROW_NUMBER() OVER (
        PARTITION BY window_start, window_end ORDER BY n DESC, `key`) AS rn FROM (
        SELECT `key`, window_start, window_end, COUNT(*) AS n FROM {_T}
        WHERE window_start <> TIMESTAMP '1970-01-01 00:00:15'
        GROUP BY `key`, window_start, window_end)) WHERE rn = 1""",
    "where_window_join": f"""SELECT L.idx AS l, R.idx AS r FROM (SELECT * FROM {_L}
        WHERE window_start > TIMESTAMP '1970-01-01 00:00:10') L
        JOIN (SELECT * FROM {_R}) R ON L.`key` = R.`key` AND {_SAME}""",
}
_NEAR = "L.`key` = R.`key` AND R.rt BETWEEN L.rt AND L.rt + INTERVAL '3' SECOND"
_OF_JOINS = {
    "group_by_of_join": f"""SELECT L.`key`, TUMBLE_START(R.rt, INTERVAL '10' SECOND) AS s,
        COUNT(*) AS n, SUM(R.`value`) AS v FROM L JOIN R ON {_NEAR} WHERE L.`value` < 4
        GROUP BY L.`key`, TUMBLE(R.rt, INTERVAL '10' SECOND)""",
    "group_by_of_comma_join": f"""SELECT COUNT(DISTINCT L.idx) AS n,
        TUMBLE_END(R.rt, INTERVAL '10' SECOND) AS e FROM L, R
        WHERE {_NEAR} GROUP BY TUMBLE(R.rt, INTERVAL '10' SECOND) HAVING COUNT(*) > 2""",
    "group_by_of_window_join": f"""SELECT L.window_start, L.window_end, COUNT(*) AS n
        FROM (SELECT * FROM {_L}) L JOIN (SELECT * FROM {_R}) R ON L.`key` = R.`key` AND {_SAME}
        GROUP BY L.window_start, L.window_end""",
    "over_of_join": f"""SELECT L.idx AS l, R.idx AS r, SUM(R.`value`) OVER (PARTITION BY L.`key`
        ORDER BY R.rt ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM L JOIN R ON {_NEAR}
        AND L.idx > 20""",
    "first_of_join": f"""SELECT l, r, rn FROM (SELECT L.idx AS l, R.idx AS r, ROW_NUMBER() OVER (
        PARTITION BY L.window_start, L.window_end ORDER BY R.`value` DESC, R.idx, L.idx) AS rn
        FROM (SELECT * FROM {_L}) L JOIN (SELECT * FROM {_R}) R ON L.`key` = R.`key` AND {_SAME})
        WHERE rn <= 2""",
    "group_by_of_semi_join": f"""SELECT window_start, window_end, COUNT(*) AS n
        FROM (SELECT * FROM {_L}) L WHERE L.`key` IN (SELECT `key` FROM (SELECT * FROM {_R}) R
        WHERE {_SAME}) GROUP BY window_start, window_end""",
    "group_by_of_expressions": f"""SELECT UPPER(L.`key`), COUNT(*), SUM(L.`value` + R.`value`),
        TUMBLE_END(R.rt, INTERVAL '5' SECOND) FROM L JOIN R ON {_NEAR}
        GROUP BY UPPER(L.`key`), TUMBLE(R.rt, INTERVAL '5' SECOND) HAVING COUNT(*) > 1""",
}
_NAMES = {
    "names_of_two_stars": f"""SELECT R.*, 1, L.* FROM ({_COUNTS.format(_L)}) L
        JOIN ({_COUNTS.format(_R)}) R ON L.`key` = R.`key` AND {_SAME}""",
    "names_of_star": f"""SELECT *, L.n + R.n FROM ({_COUNTS.format(_L)}) L
        JOIN ({_COUNTS.format(_R)}) R ON L.`key` = R.`key` AND {_SAME}""",
    "names_twice": f"SELECT `key`, `key`, idx, idx AS `key`, idx AS key0, `value` AS idx FROM {_T}",
    "names_without_as": f"""SELECT `key`, COUNT(*), SUM(`value`), MAX(idx) + 1, window_end, 1
        FROM {_T} GROUP BY `key`, window_start, window_end""",
    "names_without_as_twice": f"""SELECT `key`, `key`, `value` + 1, idx + 1, idx, UPPER(`key`)
        FROM {_T}""",
    "names_of_expressions": f"""SELECT (`key`), CAST(idx AS BIGINT), idx, -idx, window_start,
        window_start, (`value` + 1) FROM {_T}""",
    "names_of_subquery": f"""SELECT EXPR$1, EXPR$2 + 1, `key` FROM (SELECT `key`, COUNT(*),
        SUM(`value`) FROM {_T} GROUP BY `key`, window_start, window_end)""",
    "names_of_over": """SELECT idx, COUNT(*) OVER (PARTITION BY `key` ORDER BY rt) FROM T""",
}
_DEDUP = {
    "first_rows_tumble": f"""SELECT window_start, window_end, COUNT(*) AS n, SUM(`value`) AS s
        FROM TUMBLE(TABLE q, DESCRIPTOR(rt), INTERVAL '10' SECOND) {_BY}""",
    "first_rows_hop": f"""SELECT `key`, window_end, COUNT(*) AS n FROM
        HOP(TABLE q, DESCRIPTOR(rt), INTERVAL '5' SECOND, INTERVAL '10' SECOND)
        WHERE `value` > 0 {_BY}, `key`""",
    "first_rows_group_window": """SELECT `key`, COUNT(*) AS n,
        TUMBLE_START(rt, INTERVAL '10' SECOND) AS s FROM q
        GROUP BY `key`, TUMBLE(rt, INTERVAL '10' SECOND)""",
}
_TOP = "SELECT idx, rn, window_end FROM (SELECT *, ROW_NUMBER() OVER ("
_RANKED = f"PARTITION BY window_start, window_end ORDER BY `value` DESC, idx) AS rn FROM {_T})"
_NUMBERS = {
    "number_two": f"{_TOP}{_RANKED} WHERE rn = 2",
    "number_between": f"{_TOP}{_RANKED} WHERE rn BETWEEN 2 AND 3 AND `value` > 0",
}
_MORE = {
    "listagg": f"""SELECT window_start, LISTAGG(`key`) AS a, LISTAGG(CAST(idx AS STRING), '-') AS b
        FROM {_T} {_BY}""",
    "listagg_null": f"""SELECT window_start, LISTAGG(NULLIF(`key`, 'a'), '') AS a
        FROM {_T} {_BY}""",
    "listagg_none": f"""SELECT window_start, `key`, LISTAGG(NULLIF(`key`, 'a')) AS a FROM {_T}
        {_BY}, `key`""",
    "listagg_distinct": f"""SELECT window_start, COUNT(*) AS n,
        ARRAY_JOIN(ARRAY_SORT(SPLIT(LISTAGG(DISTINCT `key`), ',')), ',') AS a,
        CHAR_LENGTH(LISTAGG(DISTINCT `key`, '--') FILTER (WHERE `value` > 3)) AS b
        FROM {_T} {_BY}""",
}
STATEMENTS = {
    **_INTERVAL_JOINS,
    **_AGAIN,
    **_SEMI,
    **_WINDOWS,
    **_OF_JOINS,
    **_NAMES,
    **{name: f"WITH q AS ({_FIRST}) {sql}" for name, sql in _DEDUP.items()},
    **_NUMBERS,
    **_MORE,
}
