CREATE SCHEMA shop;
SET search_path = shop;
COMMENT ON SCHEMA shop IS 'what is sold';
CREATE TABLE customer (
    id bigint PRIMARY KEY,
    name varchar(40) NOT NULL,
    email text UNIQUE,
    balance numeric(12,2) DEFAULT 0 CHECK (id > 0),
    born date,
    active boolean DEFAULT true NOT NULL,
    tags text[],
    note char(10) DEFAULT 'none',
    made timestamptz DEFAULT now(),
    rate numeric,
    ratio double precision DEFAULT -1.5
);
COMMENT ON TABLE customer IS 'who buys';
COMMENT ON COLUMN customer.email IS 'where to write';
CREATE TABLE purchase (
    id bigint,
    customer bigint NOT NULL REFERENCES customer ON DELETE CASCADE,
    placed timestamp,
    PRIMARY KEY (id, customer)
);
CREATE TABLE "Odd Name" ("select" int, "Mixed" text);
CREATE VIEW rich AS SELECT id, name FROM customer WHERE id > 1000;
CREATE VIEW counts AS SELECT c.name, count(*) AS purchases FROM customer c JOIN purchase p ON p.customer = c.id GROUP BY c.name ORDER BY c.name LIMIT 10;
COMMENT ON VIEW rich IS 'the rich';
CREATE ROLE clerk LOGIN CREATEDB;
