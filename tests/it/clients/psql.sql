-- What people do in psql. Nothing here may show what differs between servers: sizes, access methods, other objects.
\set QUIET on
\pset pager off
\set SHOW_CONTEXT never
DROP SCHEMA IF EXISTS shop CASCADE;
CREATE SCHEMA shop;
SET search_path = shop;
SET timezone = 'UTC';
CREATE TABLE customers (
    id bigint PRIMARY KEY,
    name varchar(40) NOT NULL UNIQUE,
    balance numeric(12,2) DEFAULT 0,
    born date,
    seen timestamptz,
    tags text[],
    CHECK (id > 0)
);
CREATE TABLE orders (
    id integer,
    line integer,
    customer bigint REFERENCES customers (id),
    note text DEFAULT 'none',
    PRIMARY KEY (id, line)
);
CREATE VIEW rich AS SELECT id, name FROM customers WHERE balance > 100;
COMMENT ON TABLE customers IS 'who buys';
COMMENT ON COLUMN customers.name IS 'as on the invoice';
\d
\dt
\dv
\dt shop.*
\d customers
\d orders
\d rich
\dn shop
\dt nothing*
\d nothing
\echo :AUTOCOMMIT :ENCODING
\copy customers (id, name, balance, tags) from stdin with (format csv)
1,Ada,1.5,{a}
2,Bob,,
3,"C, D",250.25,"{x,""y z""}"
\.
SELECT * FROM customers ORDER BY id;
\x on
SELECT id, name, seen FROM customers WHERE id = 1;
\x off
\copy (SELECT id, name FROM customers ORDER BY id) to stdout with (format csv, header)
COPY customers (id, name) FROM stdin;
7	seven
8	eight\tand more
\.
COPY customers (id, name) FROM stdin;
nine	x
\.
SELECT count(*) AS "customers" FROM rich \gset
\echo :customers
SELECT 1 AS one, 'x'::varchar(3) AS word, 1.5::numeric(4,2), now() IS NULL \gdesc
\set FETCH_COUNT 2
SELECT id FROM customers ORDER BY id;
\unset FETCH_COUNT
SELECT 'SELECT ' || id FROM customers ORDER BY id LIMIT 2 \gexec
SELECT * FROM nothing;
SELECT 1/0;
SELECT name FROM customers WHERE zzz = 1;
SELECT 1,
  2 FORM customers;
BEGIN;
INSERT INTO orders VALUES (1, 1, 1);
SELECT 1/0;
SELECT 1;
COMMIT;
SELECT count(*) FROM orders;
BEGIN;
SAVEPOINT here;
INSERT INTO orders VALUES (1, 1, 1);
ROLLBACK TO here;
INSERT INTO orders VALUES (2, 1, 1);
COMMIT;
SELECT id FROM orders;
PREPARE by_id (bigint) AS SELECT name FROM customers WHERE id = $1;
EXECUTE by_id (1);
DEALLOCATE by_id;
SHOW search_path;
SHOW timezone;
\encoding
DROP TABLE IF EXISTS nothing;
DROP TABLE customers;
DROP SCHEMA shop CASCADE;
