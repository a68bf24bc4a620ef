"""Runs one peer: loads Parquet tables, then answers one JSON request a line with times and rows."""
import json
import sys
import time

name, folder, tables = sys.argv[1], sys.argv[2], sys.argv[3:]


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
        # A file of its own, as users keep it: memory tables would not be compressed.
        self.connection = duckdb.connect(f"{folder}/peer.duckdb")
        # Standard output carries answers.
        self.connection.execute("SET enable_progress_bar = false")
        for table in tables:
            self.connection.execute(f"CREATE OR REPLACE TABLE {table} AS FROM '{folder}/{table}.parquet'")
        self.connection.execute("CHECKPOINT")

    def query(self, sql):
        return self.connection.execute(sql).fetchall()


class DataFusion:
    def __init__(self):
        import datafusion

        self.version = datafusion.__version__
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


start = time.perf_counter()
peer = {"duckdb": DuckDb, "datafusion": DataFusion, "clickhouse": ClickHouse}[name]()
print(json.dumps({"version": peer.version, "load": time.perf_counter() - start}), flush=True)

for line in sys.stdin:
    request = json.loads(line)
    seconds, rows, error = [], [], None
    try:
        peer.query(request["sql"])  # the warming run
        for _ in range(request["runs"]):
            start = time.perf_counter()
            rows = peer.query(request["sql"])
            seconds.append(time.perf_counter() - start)
    except Exception as problem:
        error = str(problem).splitlines()[0] if str(problem) else repr(problem)
    print(json.dumps({"seconds": seconds, "rows": [[text(value) for value in row] for row in rows], "error": error}), flush=True)
