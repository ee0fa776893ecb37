CREATE TABLE auctions_bids (auction BIGINT, price DOUBLE, bid_time TIMESTAMP(3), WATERMARK FOR bid_time AS bid_time - INTERVAL '4' SECOND) WITH ('connector' = 'kafka', 'topic' = 'bids', 'format' = 'json');
CREATE TABLE top_bids (auction BIGINT, price DOUBLE, rank_num BIGINT, PRIMARY KEY (auction, rank_num) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'top', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO top_bids
SELECT auction, price, rank_num FROM (
  SELECT auction, price, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_num FROM auctions_bids WHERE auction IS NOT NULL AND price IS NOT NULL
) WHERE rank_num <= 3;
