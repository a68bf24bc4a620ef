"""SQLAlchemy: tables made from metadata, rows in and out, everything reflected again. The PG* variables name the server."""

import datetime as dt
import decimal
import os

import sqlalchemy as sa

url = "postgresql+psycopg://{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}".format(**os.environ)
engine = sa.create_engine(url)
metadata = sa.MetaData(schema="sqlalchemy_client")
customers = sa.Table(
    "customers",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(40), nullable=False, comment="as on the invoice"),
    sa.Column("balance", sa.Numeric(12, 2), server_default=sa.text("0")),
    sa.Column("born", sa.Date),
    sa.Column("seen", sa.DateTime(timezone=True)),
    sa.Column("active", sa.Boolean, server_default=sa.true()),
    sa.Column("tags", sa.ARRAY(sa.Text)),
    sa.Column("extra", sa.dialects.postgresql.JSONB),
    sa.UniqueConstraint("name", name="customers_name_key"),
    sa.CheckConstraint("balance > -1000", name="customers_balance_check"),
    comment="who buys",
)
orders = sa.Table(
    "orders",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("line", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("customer", sa.BigInteger, sa.ForeignKey(customers.c.id, name="orders_customer_fkey")),
    sa.Column("price", sa.Float(53)),
)

with engine.begin() as connection:
    connection.execute(sa.text("DROP SCHEMA IF EXISTS sqlalchemy_client CASCADE"))
    connection.execute(sa.schema.CreateSchema("sqlalchemy_client"))
metadata.create_all(engine)
metadata.create_all(engine)  # Finds them there.
with engine.begin() as connection:
    connection.execute(sa.text("CREATE VIEW sqlalchemy_client.actives AS SELECT id, name FROM sqlalchemy_client.customers"))
print("created", flush=True)

rows = [
    {"id": n, "name": f"name {n}", "balance": decimal.Decimal(n) / 4, "born": dt.date(2000, 1, 1), "tags": ["a", None]}
    for n in range(1, 301)
]
with engine.begin() as connection:
    connection.execute(customers.insert(), rows)
    connection.execute(orders.insert().values(id=1, line=1, customer=1, price=1.5))
with engine.connect() as connection:
    query = (
        sa.select(customers.c.name, customers.c.balance, customers.c.active, orders.c.price)
        .join(orders, orders.c.customer == customers.c.id)
        .where(customers.c.born == dt.date(2000, 1, 1))
    )
    assert connection.execute(query).all() == [("name 1", decimal.Decimal("0.25"), True, 1.5)]
    total = sa.select(sa.func.count(), sa.func.sum(customers.c.balance)).select_from(customers)
    assert connection.execute(total).one() == (300, decimal.Decimal("11287.50"))
    streamed = connection.execution_options(stream_results=True, max_row_buffer=50).execute(sa.select(customers.c.id))
    assert len(streamed.all()) == 300
try:
    with engine.begin() as connection:
        connection.execute(orders.insert().values(id=2, line=1, customer=1, price=1))
        connection.execute(sa.text("SELECT 1/0"))
    raise AssertionError("1/0")
except sa.exc.DataError as error:
    assert error.orig.sqlstate == "22012"
with engine.connect() as connection:
    assert connection.scalar(sa.select(sa.func.count()).select_from(orders)) == 1
print("rows", flush=True)

inspector = sa.inspect(engine)
where = {"schema": "sqlalchemy_client"}
assert "sqlalchemy_client" in inspector.get_schema_names()
assert sorted(inspector.get_table_names(**where)) == ["customers", "orders"]
assert inspector.get_view_names(**where) == ["actives"]
assert "name" in inspector.get_view_definition("actives", **where)
assert inspector.has_table("customers", **where) and not inspector.has_table("missing", **where)
columns = {column["name"]: column for column in inspector.get_columns("customers", **where)}
described = {name: (str(column["type"]), column["nullable"], column["comment"]) for name, column in columns.items()}
assert described == {
    "id": ("BIGINT", False, None),
    "name": ("VARCHAR(40)", False, "as on the invoice"),
    "balance": ("NUMERIC(12, 2)", True, None),
    "born": ("DATE", True, None),
    "seen": ("TIMESTAMP", True, None),
    "active": ("BOOLEAN", True, None),
    "tags": ("ARRAY", True, None),
    "extra": ("JSONB", True, None),
}, described
assert columns["seen"]["type"].timezone and columns["active"]["default"] == "true", columns
key = inspector.get_pk_constraint("orders", **where)
assert (key["name"], key["constrained_columns"]) == ("orders_pkey", ["id", "line"]), key
(foreign,) = inspector.get_foreign_keys("orders", **where)
assert foreign["name"] == "orders_customer_fkey" and foreign["referred_table"] == "customers", foreign
(unique,) = inspector.get_unique_constraints("customers", **where)
assert (unique["name"], unique["column_names"]) == ("customers_name_key", ["name"]), unique
(check,) = inspector.get_check_constraints("customers", **where)
assert check["name"] == "customers_balance_check" and "balance" in check["sqltext"], check
assert inspector.get_table_comment("customers", **where)["text"] == "who buys"
assert [index["name"] for index in inspector.get_indexes("customers", **where)] == ["customers_name_key"]
reflected = sa.MetaData(schema="sqlalchemy_client")
reflected.reflect(engine, views=True)
assert len(reflected.tables) == 3
with engine.connect() as connection:
    table = reflected.tables["sqlalchemy_client.customers"]
    assert connection.execute(sa.select(table.c.tags).where(table.c.id == 7)).scalar() == ["a", None]
print("reflected", flush=True)

reflected.drop_all(engine, tables=[reflected.tables["sqlalchemy_client.orders"]])
with engine.begin() as connection:
    connection.execute(sa.schema.DropSchema("sqlalchemy_client", cascade=True))
print("done")
