"""psycopg 3, as an application uses it. The server is the one the PG* variables name."""

import datetime as dt
import decimal
import threading
import time
import uuid

import psycopg
from psycopg.types.json import Json, Jsonb

UTC = dt.timezone.utc
# Column, its type, a value.
TYPES = [
    ("b", "boolean", True),
    ("i2", "smallint", -7),
    ("i4", "integer", 2**31 - 1),
    ("i8", "bigint", -(2**63)),
    ("n", "numeric(30,10)", decimal.Decimal("12345678901234567890.0123456789")),
    ("f4", "real", 1.5),
    ("f8", "double precision", 1e308),
    ("t", "text", "naïve ☃\n\t'\\"),
    ("v", "varchar(20)", "twenty"),
    ("c", "char(4)", "ab  "),
    ("d", "date", dt.date(2024, 2, 29)),
    ("tm", "time", dt.time(23, 59, 59, 999999)),
    ("ts", "timestamp", dt.datetime(1999, 12, 31, 23, 59, 59, 1)),
    ("tz", "timestamptz", dt.datetime(2024, 6, 1, 12, 0, tzinfo=UTC)),
    ("iv", "interval", dt.timedelta(days=3, seconds=4, microseconds=5)),
    ("by", "bytea", b"\x00\xff'\\"),
    ("u", "uuid", uuid.UUID("12345678-1234-5678-1234-567812345678")),
    ("j", "json", {"a": [1, None, "x"]}),
    ("jb", "jsonb", {"b": {"c": 1.5}}),
    ("ai", "integer[]", [1, None, 3]),
    ("at", "text[]", ["a,b", 'q"', None, ""]),
]
ADAPTED = {"j": Json, "jb": Jsonb}


def adapted(values):
    return [ADAPTED.get(name, lambda value: value)(value) for (name, _, _), value in zip(TYPES, values)]


def fails(sqlstate, run, *arguments):
    """The error, which must have that SQLSTATE."""
    try:
        run(*arguments)
    except psycopg.Error as error:
        assert error.sqlstate == sqlstate, (error.sqlstate, str(error))
        return error
    raise AssertionError(f"expected {sqlstate}: {arguments}")


def types(connection):
    columns = ", ".join(f"{name} {sql_type}" for name, sql_type, _ in TYPES)
    connection.execute(f"CREATE TABLE every (id integer, {columns})")
    values = [value for _, _, value in TYPES]
    for number, mark in enumerate(["%t", "%b", "%s"]):
        marks = ", ".join([mark] * len(values))
        connection.execute(f"INSERT INTO every VALUES (%s, {marks})", [number, *adapted(values)])
    connection.execute("INSERT INTO every VALUES (3" + ", NULL" * len(values) + ")")
    for binary in [False, True]:
        with connection.cursor(binary=binary) as cursor:
            rows = cursor.execute("SELECT * FROM every ORDER BY id").fetchall()
            assert [list(row[1:]) for row in rows[:3]] == [values] * 3, rows
            assert set(rows[3][1:]) == {None}
    # As parameters of conditions, too, and back as they are.
    for name, sql_type, value in TYPES:
        parameter = ADAPTED.get(name, lambda value: value)(value)
        for mark in ["%t", "%b"]:
            row = connection.execute(f"SELECT {mark}::{sql_type}, {mark}::{sql_type} IS NULL", [parameter, None]).fetchone()
            assert row == (value, True), (name, row)
    described = connection.execute("SELECT n, v, i4, c, ts FROM every LIMIT 0").description
    assert [(d.name, d.type_code, d.precision, d.scale, d.display_size) for d in described] == [
        ("n", 1700, 30, 10, None),
        ("v", 1043, None, None, 20),
        ("i4", 23, None, None, None),
        ("c", 1042, None, None, 4),
        ("ts", 1114, None, None, None),
    ], described


def statements(connection):
    connection.execute("CREATE TABLE numbers (n integer NOT NULL, t text DEFAULT 'none', CHECK (n < 1000))")
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO numbers VALUES (%s, %s)", [(n, str(n)) for n in range(20)])
        assert cursor.rowcount == 20
        cursor.execute("INSERT INTO numbers (n) SELECT 20")
        assert (cursor.rowcount, cursor.statusmessage) == (1, "INSERT 0 1")
    for n in range(21):
        query = "SELECT t FROM numbers WHERE n = %s"
        assert connection.execute(query, [n], prepare=True).fetchone() == (str(n) if n < 20 else "none",)
    # A statement prepared before follows the table as it is now, or says that it cannot.
    with connection.pipeline():
        results = [connection.execute("SELECT %s::int + 1", [n]) for n in range(50)]
    assert [result.fetchone()[0] for result in results] == list(range(1, 51))
    several = connection.execute("SELECT 1 AS a; SELECT 2 AS b")
    assert [cursor.fetchall() for cursor in several.results()] == [[(1,)], [(2,)]]
    assert connection.execute("SELECT %s || %s", ["a", "b"]).fetchone() == ("ab",)
    assert connection.execute("SELECT * FROM numbers WHERE n = ANY(%s) ORDER BY n", [[3, 5]]).fetchall() == [(3, "3"), (5, "5")]


def copies(connection):
    rows = [(n, f"line\t{n}\n\\" if n % 3 else None) for n in range(1000)]
    connection.execute("CREATE TABLE copied (n bigint, t text)")
    with connection.cursor() as cursor:
        with cursor.copy("COPY copied FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        assert cursor.rowcount == 1000 and cursor.statusmessage == "COPY 1000"
        with cursor.copy("COPY copied (n, t) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int8", "text"])
            for row in rows:
                copy.write_row(row)
        with cursor.copy("COPY copied FROM STDIN (FORMAT csv, HEADER)") as copy:
            copy.write('n,t\n1,"a ""quoted"" word"\n2,\n3,""\n')
        with cursor.copy("COPY (SELECT n, t FROM copied WHERE n < 500 ORDER BY n) TO STDOUT") as copy:
            copy.set_types(["int8", "text"])
            text = list(copy.rows())
        with cursor.copy("COPY (SELECT n, t FROM copied WHERE n < 500 ORDER BY n) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int8", "text"])
            binary = list(copy.rows())
        assert sorted(text, key=str) == sorted(binary, key=str) and len(text) == 1003, len(text)
        with cursor.copy("COPY (SELECT 1 AS a, NULL AS b, 'x,y' AS c) TO STDOUT (FORMAT csv, HEADER)") as copy:
            assert b"".join(copy) == b'a,b,c\n1,,"x,y"\n'
        assert cursor.execute("SELECT count(*), count(t) FROM copied").fetchone() == (2003, 1334)

        def broken():
            with cursor.copy("COPY copied FROM STDIN") as copy:
                copy.write("1\ta\nx\tb\n")

        error = fails("22P02", broken)
        assert error.diag.context.startswith("COPY copied, line 2, column n"), error.diag.context

        def given_up():
            with cursor.copy("COPY copied FROM STDIN") as copy:
                copy.write("1\ta\n")
                raise ValueError("changed my mind")

        try:
            given_up()
        except ValueError:
            pass
        assert cursor.execute("SELECT count(*) FROM copied").fetchone() == (2003,)


def transactions(connection):
    connection.execute("CREATE TABLE kept (n integer)")
    connection.autocommit = False
    connection.execute("INSERT INTO kept VALUES (1)")
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (1,)
    connection.rollback()
    connection.execute("INSERT INTO kept VALUES (2)")
    connection.commit()
    assert connection.execute("SELECT n FROM kept").fetchall() == [(2,)]
    fails("22012", connection.execute, "SELECT 1/0")
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
    fails("25P02", connection.execute, "SELECT 1")
    connection.rollback()
    connection.autocommit = True
    with connection.transaction():
        connection.execute("INSERT INTO kept VALUES (3)")
        try:
            with connection.transaction():
                connection.execute("SELECT 'x'::integer")
        except psycopg.errors.InvalidTextRepresentation:
            pass
    assert connection.execute("SELECT count(*) FROM kept").fetchone() == (2,)
    connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    with connection.transaction():
        fails("25006", connection.execute, "INSERT INTO kept VALUES (4)")
        raise psycopg.Rollback
    connection.isolation_level = connection.read_only = None


def cursors(connection):
    with connection.transaction():
        with connection.cursor("named") as cursor:
            cursor.itersize = 10
            cursor.execute("SELECT n FROM numbers ORDER BY n")
            assert cursor.fetchone() == (0,)
            assert cursor.fetchmany(3) == [(1,), (2,), (3,)]
            assert len(cursor.fetchall()) == 17
            assert cursor.fetchone() is None
        with connection.cursor("again") as cursor:
            cursor.itersize = 7
            cursor.execute("SELECT n FROM numbers WHERE n < %s ORDER BY n", [15])
            assert [n for (n,) in cursor] == list(range(15))
    with connection.cursor("held", withhold=True) as cursor:
        cursor.execute("SELECT n FROM numbers ORDER BY n")
        assert len(cursor.fetchall()) == 21
    assert [row[0] for row in connection.cursor().stream("SELECT n FROM numbers ORDER BY n")] == list(range(21))


def errors(connection):
    error = fails("42P01", connection.execute, "SELECT * FROM missing")
    assert error.diag.message_primary == 'relation "missing" does not exist' and error.diag.statement_position == "15"
    error = fails("42601", connection.execute, "SELECT * FORM numbers")
    assert error.diag.statement_position is not None and error.diag.severity_nonlocalized == "ERROR"
    error = fails("42703", connection.execute, "SELECT nn FROM numbers")
    assert error.diag.statement_position == "8"
    fails("22012", connection.execute, "SELECT 1/0")
    fails("22003", connection.execute, "SELECT 2147483647 + 1")
    fails("22P02", connection.execute, "SELECT 'x'::integer")
    fails("22007", connection.execute, "SELECT 'x'::date")
    fails("42883", connection.execute, "SELECT no_such_function(1)")
    fails("42P07", connection.execute, "CREATE TABLE numbers (n integer)")
    error = fails("23502", connection.execute, "INSERT INTO numbers VALUES (NULL)")
    assert (error.diag.table_name, error.diag.column_name) == ("numbers", "n")
    error = fails("23514", connection.execute, "INSERT INTO numbers VALUES (1000)")
    assert error.diag.constraint_name == "numbers_n_check"
    notices = []
    connection.add_notice_handler(lambda diagnostic: notices.append(diagnostic.message_primary))
    connection.execute("DROP TABLE IF EXISTS missing")
    assert notices == ['table "missing" does not exist, skipping'], notices


def cancelling(connection):
    long = "SELECT count(*) FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000) AS b"
    timer = threading.Timer(0.5, connection.cancel_safe)
    timer.start()
    started = time.monotonic()
    fails("57014", connection.execute, long)
    assert time.monotonic() - started < 5
    timer.join()
    connection.execute("SET statement_timeout = '200ms'")
    fails("57014", connection.execute, long)
    connection.execute("RESET statement_timeout")
    with psycopg.connect(autocommit=True) as other:
        timer = threading.Timer(0.5, lambda: other.execute("SELECT pg_cancel_backend(%s)", [connection.info.backend_pid]))
        timer.start()
        fails("57014", connection.execute, long)
        timer.join()


def session(connection):
    connection.execute("SET TIME ZONE 'Europe/Rome'")
    assert connection.info.parameter_status("TimeZone") == "Europe/Rome"
    shown = connection.execute("SELECT '2024-06-01 12:00+00'::timestamptz::text").fetchone()
    assert shown == ("2024-06-01 14:00:00+02",), shown
    assert connection.execute("SHOW timezone").fetchone() == ("Europe/Rome",)
    connection.execute("RESET timezone")
    connection.execute("SELECT set_config('application_name', 'renamed', false)")
    activity = "SELECT application_name, state FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    assert connection.execute(activity).fetchone() == ("renamed", "active")
    connection.execute("CREATE SCHEMA other; CREATE TABLE other.here (n integer)")
    fails("42P01", connection.execute, "SELECT * FROM here")
    connection.execute("SET search_path = other, public")
    assert connection.execute("SELECT count(*) FROM here").fetchone() == (0,)
    connection.execute("DISCARD ALL")
    fails("42P01", connection.execute, "SELECT * FROM here")


with psycopg.connect(autocommit=True) as connection:
    assert connection.info.server_version >= 150000
    connection.execute("DROP SCHEMA IF EXISTS psycopg_client CASCADE; CREATE SCHEMA psycopg_client")
    connection.execute("SET search_path = psycopg_client, public; SET timezone = 'UTC'")
    for part in [types, statements, copies, transactions, cursors, errors, cancelling, session]:
        part(connection)
        print(part.__name__, flush=True)
with psycopg.connect(autocommit=True) as connection:
    connection.execute("DROP SCHEMA psycopg_client CASCADE; DROP SCHEMA other CASCADE")
print("done")
