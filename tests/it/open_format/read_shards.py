"""Prints the rows of a table's shard files as another Parquet reader sees them: one JSON list of texts a row, in PostgreSQL's
spelling; rows ordered by the first column. Usage: read_shards.py FOLDER"""

import decimal
import json
import pathlib
import struct
import sys

import pyarrow.parquet

INTERVAL_COLUMN = "iv"
SECONDS_PER_DAY = 86_400


def interval_seconds(stored: bytes) -> int:
    """Months, days and microseconds as seconds, by PostgreSQL's extract(epoch): a year has 365.25 days, a month 30."""
    months, days, microseconds = struct.unpack("<iiq", stored)
    years = int(months / 12)
    months -= 12 * years
    return years * (1_461 * SECONDS_PER_DAY // 4) + (months * 30 + days) * SECONDS_PER_DAY + int(microseconds / 1_000_000)


def text(column: str, value) -> str | None:
    if value is None:
        return None
    if column == INTERVAL_COLUMN:
        return str(interval_seconds(value))
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, list):
        return "{" + ",".join("NULL" if one is None else text(column, one) for one in value) + "}"
    return str(value).replace("+00:00", "+00")


def main() -> None:
    rows = []
    for file in sorted(pathlib.Path(sys.argv[1]).glob("*.parquet")):
        table = pyarrow.parquet.read_table(file)
        names = table.column_names
        rows += [[row[name] for name in names] for row in table.to_pylist()]
    for row in sorted(rows, key=lambda row: row[0]):
        print(json.dumps([text(name, value) for name, value in zip(names, row)]))


main()
