"""Runs one peer: answers one JSON request a line with times and rows. With the mode "hot" it loads the Parquet tables first."""
import json
import os
import sys
import time

name, folder, mode, megabytes, tables = sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]


def text(value):
    if value is None:
        return None
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, bytes):
        return value.decode()
    return str(value)


class DuckDb:
    def __init__(self):
        import duckdb

        self.version = duckdb.__version__
        if mode == "hot":
            # A file of its own, as users keep it: memory tables would not be compressed.
            self.connection = self.connect(f"{folder}/peer.duckdb")
            for table in tables:
                self.connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM '{folder}/{table}.parquet'")
            self.connection.execute("CHECKPOINT")

    def connect(self, *file):
        import duckdb

        connection = duckdb.connect(*file)
        # Standard output carries answers.
        connection.execute("SET enable_progress_bar = false")
        if megabytes:
            connection.execute(f"SET memory_limit = '{megabytes}MiB'")
        return connection

    def query(self, sql):
        return self.connection.execute(sql).fetchall()

    def forget(self):
        # What a database remembers of files goes with it.
        self.connection = self.connect()
        for table in tables:
            self.connection.execute(f"CREATE VIEW {table} AS FROM '{folder}/{table}.parquet'")

    def load(self, format):
        file = f"{folder}/load.duckdb"
        if os.path.exists(file):
            os.remove(file)
        connection = self.connect(file)
        for table in tables:
            connection.execute(f"CREATE TABLE {table} AS FROM '{folder}/{table}.parquet' LIMIT 0")
        start = time.perf_counter()
        for table in tables:
            connection.execute(f"COPY {table} FROM '{folder}/{table}.{format}' (FORMAT {format})")
        connection.execute("CHECKPOINT")
        took = time.perf_counter() - start
        connection.close()
        os.remove(file)
        return took


class DataFusion:
    def __init__(self):
        import datafusion

        self.version = datafusion.__version__
        self.forget()

    def forget(self):
        import datafusion

        self.context = datafusion.SessionContext()
        for table in tables:
            self.context.register_parquet(table, f"{folder}/{table}.parquet")

    def query(self, sql):
        rows = []
        for batch in self.context.sql(sql.rstrip().rstrip(";")).collect():
            columns = [column.to_pylist() for column in batch.columns]
            rows.extend(zip(*columns))
        return rows


class ClickHouse:
    def __init__(self):
        import chdb
        from chdb import session

        self.version = chdb.__version__
        self.session = session.Session(f"{folder}/clickhouse")
        self.session.query("CREATE DATABASE IF NOT EXISTS bench")
        self.session.query("USE bench")
        for table in tables:
            self.session.query(f"DROP TABLE IF EXISTS {table}")
            self.session.query(
                f"CREATE TABLE {table} ENGINE = MergeTree ORDER BY tuple() AS SELECT * FROM file('{folder}/{table}.parquet')"
            )

    def query(self, sql):
        settings = "SETTINGS joined_subquery_requires_alias = 0, join_use_nulls = 1, max_execution_time = 120"
        answer = self.session.query(f"{sql.rstrip().rstrip(';')} {settings}", "JSONCompactEachRow")
        return [json.loads(line) for line in str(answer).splitlines()]


def refused(what):
    raise NotImplementedError(f"{name} has no {what} runs here")


start = time.perf_counter()
peer = {"duckdb": DuckDb, "datafusion": DataFusion, "clickhouse": ClickHouse}[name]()
print(json.dumps({"version": peer.version, "load": time.perf_counter() - start}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    seconds, rows, error = [], [], None
    try:
        if "load" in request:
            if not hasattr(peer, "load"):
                refused("load")
            seconds.append(peer.load(request["load"]))
        else:
            if mode == "hot":
                peer.query(request["sql"])  # the warming run
            elif not hasattr(peer, "forget"):
                refused("cold")
            for _ in range(request["runs"]):
                if mode == "cold":
                    peer.forget()
                start = time.perf_counter()
                rows = peer.query(request["sql"])
                seconds.append(time.perf_counter() - start)
    except Exception as problem:
        error = str(problem).splitlines()[0] if str(problem) else repr(problem)
    print(json.dumps({"seconds": seconds, "rows": [[text(value) for value in row] for row in rows], "error": error}), flush=True)
