create table rates (currency string, rate decimal(10, 4)) with ('connector' = 'print');
insert into rates values ('EUR', 1.0), ('USD', 1.1), ('GBP', cast(null as decimal(10, 4)));
