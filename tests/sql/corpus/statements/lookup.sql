--! left_lookup
SELECT o.order_id, o.customer_id, c.full_name, c.city
FROM (SELECT *, PROCTIME() AS proc_time FROM orders) AS o
LEFT JOIN customers FOR SYSTEM_TIME AS OF o.proc_time AS c
ON o.customer_id = c.customer_id
--! inner_lookup
select o.order_id, c.tier from (select order_id, customer_id, proctime() as pt from orders) o join customers for system_time as of o.pt as c on o.customer_id = c.customer_id
--! with_lookup
WITH enriched AS (SELECT order_id, customer_id, price, PROCTIME() AS pt FROM orders WHERE status = 'paid')
SELECT e.order_id, e.price, c.full_name FROM enriched AS e LEFT JOIN customers FOR SYSTEM_TIME AS OF e.pt AS c ON e.customer_id = c.customer_id
--! lookup_filter
SELECT o.order_id, c.city FROM (SELECT *, PROCTIME() AS pt FROM orders) AS o JOIN customers FOR SYSTEM_TIME AS OF o.pt AS c ON o.customer_id = c.customer_id AND c.tier = 'gold' WHERE o.price > 20
--! lookup_expression
SELECT UPPER(c.full_name) AS customer, o.price * o.quantity AS total FROM (SELECT *, PROCTIME() AS pt FROM orders) AS o JOIN customers FOR SYSTEM_TIME AS OF o.pt AS c ON c.customer_id = o.customer_id
--! q13_side_input
SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.full_name AS `value`
FROM (SELECT *, PROCTIME() as p_time FROM bid) B
JOIN customers FOR SYSTEM_TIME AS OF B.p_time AS S
ON mod(B.auction, 10000) = S.customer_id;
