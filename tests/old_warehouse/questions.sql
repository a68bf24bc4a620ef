select name, state, node_count, hardware_instance, auto_resume, owner from sys.cluster order by name
select rolname, rolsuper, rolcanlogin, rolconfig from pg_roles where rolname in ('kiln', 'ana', 'readers') order by 1
select nspname from pg_namespace where nspname in ('public', 'sales') order by 1
select table_schema, table_name, table_type from information_schema.tables where table_schema in ('public', 'sales') order by 1, 2
select table_name, column_name, data_type, is_nullable, column_default, is_identity from information_schema.columns where table_schema in ('public', 'sales') order by 1, ordinal_position
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conname like 'orders%' or conname like 'accounts%' or conname like 'items%' order by 1
select indexname, indexdef from pg_indexes where schemaname in ('public', 'sales') order by 1
select obj_description('sales.orders'::regclass), col_description('sales.orders'::regclass, 2)
select count(*), sum(id), min(note), max(note), sum(amount), count(distinct day) from sales.orders
select id, customer, day, amount, note, tags, doc from sales.orders where id in (1, 7, 8, 100, 2999) order by id
select count(*), sum(length(note)) from sales.orders where note like 'changed%'
select * from accounts order by id
select * from items order by id
select * from everything order by n
select * from sales.by_day order by day limit 5
select * from big_accounts order by 1
select sequencename, data_type, start_value, increment_by, max_value, cycle from pg_sequences order by 1
select token, role_name, outcome, command_tag, rows, statements from sys.statement_outcome order by token
select count(*) from moved
select region, count(*), sum(n) from moved group by 1 order by 1
select count(*), sum(n) from fresh
