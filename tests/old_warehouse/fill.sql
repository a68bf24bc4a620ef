create schema sales;
create role readers;
create role ana login password 'open sesame';
alter role ana set search_path = sales, public;
create sequence tickets start 100 increment 5;
create sequence circle minvalue 1 maxvalue 3 cycle;
create table sales.orders (
    id bigint primary key, customer int not null, day date, amount numeric(12,2), note text, tags text[], doc jsonb
) cluster on (day, id);
comment on table sales.orders is 'what was ordered';
comment on column sales.orders.customer is 'whose order';
insert into sales.orders
    select n, n % 97, date '2024-01-01' + (n % 60)::int, (n * 1.25)::numeric(12,2), 'order ' || n, array['a' || n % 3, null], ('{"n": ' || n || '}')::jsonb
    from generate_series(1, 3000) n;
vacuum sales.orders;
create table accounts (id int primary key enforced, owner text, balance numeric(10,2) default 0, check (balance >= -100)) with (storage = row);
insert into accounts select n, 'owner ' || n, n * 10 from generate_series(1, 40) n;
create unique index accounts_owner on accounts (owner);
create table items (
    id bigint generated always as identity (start with 10 increment by 2), number serial, name text, account int references accounts (id)
);
insert into items (name, account) values ('pen', 1), ('ink', 2), ('paper', null);
create table everything (
    n int, b boolean, s smallint, r real, d double precision, t timestamp, z timestamptz, i interval, u uuid, y bytea, c char(4), v varchar(9), m time
);
insert into everything values
    (1, true, -7, 1.5, 'NaN', '2024-02-29 12:34:56.789', '2024-02-29 12:34:56+02', '1 mon 2 days 03:04:05', '00112233-4455-6677-8899-aabbccddeeff', '\x00ff', 'ab', 'var', '23:59:59'),
    (2, null, null, null, null, null, null, null, null, null, null, null, null),
    (3, false, 32767, '-Infinity', -0.0, '0001-01-01', '9999-12-31 23:59:59.999999+00', '-1 year', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '', '', '', '00:00');
vacuum everything;
insert into everything (n) values (4);
create view sales.by_day as select day, count(*) as orders, sum(amount) as amount from sales.orders group by day;
create view big_accounts as select owner, balance from accounts where balance > 350;
create table moved (region text, n int) cluster on (region);
insert into moved select (array['north', 'south', 'west'])[1 + n % 3], n from generate_series(1, 1000) n;
vacuum moved;
insert into moved select 'east', n from generate_series(1, 10) n;
create table fresh (n bigint);
insert into fresh select generate_series(1, 50);
create table lost (id int primary key, name text);
insert into lost select n, 'lost ' || n from generate_series(1, 500) n;
vacuum lost;
insert into lost values (501, 'lost and fresh');
delete from lost where id = 3;
create cluster etl (node_count = 2, hardware_instance = 'local', auto_suspend = 600, auto_resume = true);
alter cluster etl suspend;
create cluster small (node_count = 1, hardware_instance = 'embedded');
grant usage on cluster small to readers;
select nextval('tickets'), nextval('tickets'), nextval('circle'), nextval('circle'), nextval('circle'), nextval('circle');
set kiln.statement_token = 'first order';
insert into sales.orders values (5001, 1, '2024-05-01', 1, 'by token', null, null);
set kiln.statement_token = 'pays';
update accounts set balance = balance + 1 where id = 1;
reset kiln.statement_token;
