"""asyncpg: everything in binary, prepared, with types looked up in pg_catalog. The PG* variables name the server."""

import asyncio
import datetime as dt
import decimal
import io
import json
import uuid

import asyncpg

UTC = dt.timezone.utc
VALUES = {
    "boolean": True,
    "smallint": -32768,
    "integer": 7,
    "bigint": 2**63 - 1,
    "numeric(20,4)": decimal.Decimal("-1234567890123456.7891"),
    "real": 0.5,
    "double precision": -1.25e-300,
    "text": "naïve ☃",
    "varchar(10)": "ten",
    "char(5)": "ab   ",
    "date": dt.date(1, 1, 2),
    "time": dt.time(1, 2, 3, 4),
    "timestamp": dt.datetime(9999, 12, 30, 23, 59, 59, 999999),
    "timestamptz": dt.datetime(2024, 6, 1, 12, 0, tzinfo=UTC),
    "interval": dt.timedelta(days=-3, hours=4, microseconds=5),
    "bytea": bytes(range(256)),
    "uuid": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "json": '{"a": 1}',
    "jsonb": '{"a": 1}',
    "integer[]": [1, None, -3],
    "text[]": ["a,b", "", None],
    "numeric(10,2)[]": [decimal.Decimal("1.50"), None],
    "timestamptz[]": [dt.datetime(2024, 6, 1, tzinfo=UTC)],
}


async def fails(sqlstate, awaitable):
    try:
        await awaitable
    except asyncpg.PostgresError as error:
        assert error.sqlstate == sqlstate, (error.sqlstate, str(error))
        return error
    raise AssertionError(f"expected {sqlstate}")


async def types(connection):
    for sql_type, value in VALUES.items():
        row = await connection.fetchrow(f"SELECT $1::{sql_type} AS value, $2::{sql_type} AS nothing", value, None)
        assert tuple(row) == (value, None), (sql_type, row)
    columns = ", ".join(f"c{number} {sql_type}" for number, sql_type in enumerate(VALUES))
    await connection.execute(f"CREATE TABLE every ({columns})")
    marks = ", ".join(f"${number + 1}" for number in range(len(VALUES)))
    await connection.executemany(f"INSERT INTO every VALUES ({marks})", [list(VALUES.values())] * 3)
    rows = await connection.fetch("SELECT * FROM every")
    assert [list(row.values()) for row in rows] == [list(VALUES.values())] * 3, rows
    statement = await connection.prepare("SELECT c2, c4, c19 FROM every WHERE c2 = $1 AND c7 LIKE $2")
    assert [parameter.name for parameter in statement.get_parameters()] == ["int4", "text"]
    assert [(a.name, a.type.name) for a in statement.get_attributes()] == [("c2", "int4"), ("c4", "numeric"), ("c19", "int4[]")]
    assert len(await statement.fetch(7, "na%")) == 3


async def copies(connection):
    await connection.execute("CREATE TABLE copied (n bigint, t text, at timestamptz, amount numeric(12,2))")
    records = [
        (n, None if n % 7 == 0 else f"row {n}", dt.datetime(2024, 1, 1, tzinfo=UTC), decimal.Decimal(n) / 4)
        for n in range(5000)
    ]
    status = await connection.copy_records_to_table("copied", records=records)
    assert status == "COPY 5000", status
    rows = await connection.fetch("SELECT * FROM copied ORDER BY n")
    assert [tuple(row) for row in rows] == records
    out = io.BytesIO()
    status = await connection.copy_from_query("SELECT n, t FROM copied WHERE n < $1 ORDER BY n", 2, output=out, format="csv")
    assert (status, out.getvalue()) == ("COPY 2", b"0,\n1,row 1\n"), out.getvalue()
    out = io.BytesIO(b"n;t\n6000;x\n6001;\n")
    await connection.copy_to_table("copied", source=out, columns=["n", "t"], format="csv", header=True, delimiter=";")
    assert await connection.fetchval("SELECT count(*) FROM copied WHERE n >= 6000 AND at IS NULL") == 2
    out = io.BytesIO()
    await connection.copy_from_table("copied", output=out, format="binary", columns=["n"])
    assert out.getvalue().startswith(b"PGCOPY\n\xff\r\n\0")


async def transactions(connection):
    await connection.execute("CREATE TABLE kept (n integer)")
    async with connection.transaction():
        await connection.execute("INSERT INTO kept VALUES (1)")
    try:
        async with connection.transaction():
            await connection.execute("INSERT INTO kept VALUES (2)")
            raise KeyError
    except KeyError:
        pass
    assert await connection.fetch("SELECT n FROM kept") == [(1,)]
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        await fails("25006", connection.execute("INSERT INTO kept VALUES (3)"))
    async with connection.transaction():
        cursor = await connection.cursor("SELECT * FROM generate_series(1, 100) AS n ORDER BY n")
        assert [row["n"] for row in await cursor.fetch(3)] == [1, 2, 3]
        assert await cursor.forward(10) == 10
        assert (await cursor.fetchrow())["n"] == 14
        seen = [row["n"] async for row in connection.cursor("SELECT * FROM generate_series(1, $1) AS n", 120, prefetch=50)]
        assert seen == list(range(1, 121))


async def errors(connection):
    error = await fails("42P01", connection.fetch("SELECT * FROM missing"))
    assert error.position == "15"
    await fails("42601", connection.fetch("SELEC 1"))
    await fails("22012", connection.fetch("SELECT 1 / $1::int", 0))
    await fails("22003", connection.fetch("SELECT $1::bigint * $1::bigint", 2**62))
    await fails("42804", connection.fetch("SELECT CASE WHEN true THEN 1 ELSE true END"))
    long = "SELECT count(*) FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b"
    try:
        await connection.fetch(long, timeout=0.5)
        raise AssertionError("not stopped")
    except asyncio.TimeoutError:
        pass
    assert await connection.fetchval("SELECT 1") == 1


async def pooled():
    async with asyncpg.create_pool(min_size=2, max_size=4, server_settings={"application_name": "pooled"}) as pool:
        await pool.execute("CREATE TABLE IF NOT EXISTS asyncpg_pool (n integer)")
        await asyncio.gather(*(pool.execute("INSERT INTO asyncpg_pool VALUES ($1)", n) for n in range(20)))
        total = await pool.fetchrow("SELECT count(*), sum(n), current_setting('application_name') FROM asyncpg_pool")
        assert tuple(total) == (20, 190, "pooled"), total
        await pool.execute("DROP TABLE asyncpg_pool")


async def codecs(connection):
    await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
    assert await connection.fetchval("SELECT $1::jsonb", {"a": [1, 2]}) == {"a": [1, 2]}


async def main():
    connection = await asyncpg.connect()
    await connection.execute("DROP SCHEMA IF EXISTS asyncpg_client CASCADE")
    await connection.execute("CREATE SCHEMA asyncpg_client; SET search_path = asyncpg_client, public; SET timezone = 'UTC'")
    for part in [types, copies, transactions, errors, codecs]:
        await part(connection)
        print(part.__name__, flush=True)
    await connection.execute("DROP SCHEMA asyncpg_client CASCADE")
    await connection.close()
    await pooled()
    print("pooled")


asyncio.run(main())
print("done")
