set 'pipeline.name' = 'ids';
set 'parallelism.default' = '1';
create table numbers (n bigint, txt string) with ('connector' = 'datagen', 'fields.n.kind' = 'sequence', 'fields.n.start' = '1', 'fields.n.end' = '100');
create table ids (id string, even boolean) with ('connector' = 'print');
insert into ids select concat('id-', cast(n as string)), mod(n, 2) = 0 from numbers where n is not null;
