create table base_events (id string, v double, ts timestamp(3)) with ('connector' = 'kafka', 'topic' = 'a', 'format' = 'json');
create table sink_events with ('connector' = 'print') like base_events (excluding all);
insert into sink_events select id, v * 2, ts from base_events;
