"""ADBC: Arrow in and out through COPY in format binary. The PG* variables name the server."""

import os

import adbc_driver_postgresql.dbapi as dbapi
import pyarrow as pa

uri = "postgresql://{PGUSER}@{PGHOST}:{PGPORT}/{PGDATABASE}".format(**os.environ)
table = pa.table(
    {
        "n": pa.array([1, None, 3], pa.int64()),
        "small": pa.array([1, 2, None], pa.int16()),
        "real": pa.array([0.5, None, 1e300], pa.float64()),
        "word": pa.array(["a", "", None], pa.string()),
        "raw": pa.array([b"\0", None, b""], pa.binary()),
        "yes": pa.array([True, False, None], pa.bool_()),
        "day": pa.array([0, None, 20000], pa.int32()).cast(pa.date32()),
        "at": pa.array([0, 1, None], pa.timestamp("us")),
        "zoned": pa.array([0, 1, None], pa.timestamp("us", tz="UTC")),
        "amount": pa.array(["1.50", "-2.25", None], pa.string()),
    }
)

with dbapi.connect(uri) as connection:
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS adbc_client")
        connection.commit()
        cursor.adbc_ingest("adbc_client", table, mode="create")
        connection.commit()
        cursor.adbc_ingest("adbc_client", table, mode="append")
        connection.commit()
        print("ingested", flush=True)
        cursor.execute("SELECT count(*) FROM adbc_client")
        assert cursor.fetchone() == (6,)
        cursor.execute("SELECT * FROM adbc_client ORDER BY n, small")
        read = cursor.fetch_arrow_table()
        assert read.schema.names == table.schema.names
        assert read.slice(0, 1).to_pylist() == table.slice(0, 1).to_pylist(), read.to_pylist()
        types = {field.name: field.type for field in read.schema}
        assert types["n"] == pa.int64() and types["day"] == pa.date32() and types["zoned"] == pa.timestamp("us", tz="UTC")
        print("read", flush=True)
        cursor.execute("SELECT n, word FROM adbc_client WHERE n = $1", (3,))
        assert cursor.fetchall() == [(3, None), (3, None)]
        cursor.executemany("INSERT INTO adbc_client (n, word) VALUES ($1, $2)", [(10, "ten"), (11, "eleven")])
        connection.commit()
        cursor.execute("SELECT sum(n)::bigint, min(1.5::numeric(10,2)) FROM adbc_client WHERE n >= 10")
        assert cursor.fetchone() == (21, "1.50")
        print("parameters", flush=True)
        cursor.execute("SELECT n::int4 AS n, repeat('x', 100) AS pad FROM generate_series(1, 100000) AS n")
        count = 0
        for batch in cursor.fetch_record_batch():
            count += batch.num_rows
        assert count == 100000
        print("streamed", flush=True)
    assert "adbc_client" in {
        t["table_name"]
        for catalog in connection.adbc_get_objects(depth="tables").read_all().to_pylist()
        for schema in catalog["catalog_db_schemas"]
        for t in schema["db_schema_tables"]
    }
    schema = connection.adbc_get_table_schema("adbc_client")
    assert schema.names == table.schema.names, schema
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM missing")
            cursor.fetchall()
        raise AssertionError("there is no such table")
    except dbapi.ProgrammingError as error:
        assert error.sqlstate == "42P01", error.sqlstate
    connection.rollback()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE adbc_client")
    connection.commit()
print("done")
