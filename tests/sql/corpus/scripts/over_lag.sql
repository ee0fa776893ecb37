CREATE TABLE quotes (sym STRING, px DOUBLE, qt TIMESTAMP(3), WATERMARK FOR qt AS qt - INTERVAL '0.001' SECOND) WITH ('connector' = 'kafka', 'topic' = 'quotes', 'format' = 'json');
CREATE TABLE moves (sym STRING, qt TIMESTAMP(3), px DOUBLE, total DOUBLE) WITH ('connector' = 'print');
INSERT INTO moves SELECT sym, qt, px, SUM(px) OVER (PARTITION BY sym ORDER BY qt ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM quotes;
