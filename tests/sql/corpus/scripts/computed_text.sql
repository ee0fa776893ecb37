CREATE TABLE people (
  first_name STRING,
  last_name STRING,
  full_name AS first_name || ' ' || last_name,
  birthday DATE
) COMMENT 'people of the CRM' WITH ('connector' = 'filesystem', 'path' = '/people', 'format' = 'csv');
CREATE TABLE names (full_name STRING, first_letter STRING) WITH ('connector' = 'print');
INSERT INTO names SELECT full_name, SUBSTRING(full_name, 1, 1) FROM people WHERE birthday >= DATE '2026-02-01';
