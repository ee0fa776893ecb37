CREATE TABLE src (id BIGINT, name STRING, score DOUBLE) WITH ('connector' = 'datagen');
CREATE TABLE dst (id BIGINT, score DOUBLE, name STRING, note STRING) WITH ('connector' = 'print');
INSERT INTO dst (name, id) SELECT UPPER(name), id FROM src WHERE id IS NOT NULL;
