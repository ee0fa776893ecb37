-- The tables of the statements. Rows: inputs.py.
CREATE TABLE bid (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, extra STRING, `dateTime` TIMESTAMP(3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
);
CREATE TABLE auction (
  id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3),
  expires TIMESTAMP(3), seller BIGINT, category BIGINT,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
);
CREATE TABLE person (
  id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, `dateTime` TIMESTAMP(3),
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
);
CREATE TABLE orders (
  order_id STRING, customer_id BIGINT, product_id STRING, quantity INT, price DECIMAL(10, 2), currency STRING,
  status STRING, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
);
CREATE TABLE payments (
  payment_id STRING, order_id STRING, amount DECIMAL(10, 2), `method` STRING, pay_time TIMESTAMP(3),
  WATERMARK FOR pay_time AS pay_time - INTERVAL '5' SECOND
);
CREATE TABLE shipments (
  shipment_id STRING, order_id STRING, carrier STRING, ship_time TIMESTAMP(3),
  WATERMARK FOR ship_time AS ship_time - INTERVAL '5' SECOND
);
CREATE TABLE clicks (
  user_id STRING, url STRING, referrer STRING, device STRING, dwell_ms INT, click_time TIMESTAMP_LTZ(3),
  WATERMARK FOR click_time AS click_time - INTERVAL '5' SECOND
);
CREATE TABLE impressions (
  ad_id STRING, user_id STRING, cost DOUBLE, impression_time TIMESTAMP_LTZ(3),
  WATERMARK FOR impression_time AS impression_time - INTERVAL '5' SECOND
);
CREATE TABLE sensor_readings (
  sensor_id STRING, location STRING, temperature DOUBLE, humidity DOUBLE, reading_time TIMESTAMP(3),
  WATERMARK FOR reading_time AS reading_time - INTERVAL '10' SECOND
);
CREATE TABLE ticker (
  symbol STRING, price DOUBLE, volume BIGINT, rowtime TIMESTAMP(3),
  WATERMARK FOR rowtime AS rowtime - INTERVAL '1' SECOND
);
CREATE TABLE transactions (
  tx_id BIGINT, account_id STRING, merchant STRING, amount DOUBLE, country STRING, is_online BOOLEAN,
  tx_time TIMESTAMP(3), WATERMARK FOR tx_time AS tx_time - INTERVAL '5' SECOND
);
CREATE TABLE currency_rates (
  currency STRING, rate DECIMAL(10, 4), update_time TIMESTAMP(3),
  WATERMARK FOR update_time AS update_time - INTERVAL '15' SECOND, PRIMARY KEY (currency) NOT ENFORCED
);
CREATE TABLE products (
  product_id STRING, product_name STRING, category STRING, list_price DECIMAL(10, 2), update_time TIMESTAMP(3),
  WATERMARK FOR update_time AS update_time - INTERVAL '5' SECOND, PRIMARY KEY (product_id) NOT ENFORCED
);
CREATE TABLE customers (
  customer_id BIGINT, full_name STRING, city STRING, tier STRING, signup_date DATE,
  PRIMARY KEY (customer_id) NOT ENFORCED
);
CREATE TABLE logs (
  host STRING, level STRING, message STRING, tags ARRAY<STRING>, attributes MAP<STRING, STRING>,
  log_time TIMESTAMP_LTZ(3), WATERMARK FOR log_time AS log_time - INTERVAL '5' SECOND
);
CREATE TABLE carts (
  cart_id STRING, user_id STRING, items ARRAY<ROW<sku STRING, qty INT, unit_price DOUBLE>>, cart_time TIMESTAMP(3),
  WATERMARK FOR cart_time AS cart_time - INTERVAL '5' SECOND
);
CREATE TABLE rides (
  rideId BIGINT, taxiId BIGINT, isStart BOOLEAN, lon DOUBLE, lat DOUBLE, psgCnt INT, rideTime TIMESTAMP(3),
  WATERMARK FOR rideTime AS rideTime - INTERVAL '60' SECOND
);
CREATE TABLE logins (
  user_id STRING, ip STRING, success BOOLEAN, login_time TIMESTAMP(3),
  WATERMARK FOR login_time AS login_time - INTERVAL '3' SECOND
);
CREATE TABLE events (
  event_id STRING, user_id STRING, event_type STRING, payload STRING, epoch_ms BIGINT, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
);
