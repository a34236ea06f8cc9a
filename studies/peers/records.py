"""Random records of 100 bytes with keys of 10: a file sorted by plumb, a table of key and payload by
DuckDB.

    records.py load PATH RECORDS PLUMB
    records.py run PATH plumb|table|parquet MEMORY      plumb makes its own file before, and judges it
    records.py verify PATH plumb|table|parquet
"""

import json
import os
import pathlib
import sys

from peers import answer, plumb, require, timed

RECORD, KEY = 100, 10
ORDERED = "SELECT key, payload FROM records ORDER BY key"


def connect(room, memory=None):
    import duckdb

    connection = duckdb.connect(str(room / "records.db"))
    connection.execute("SET threads = 2")
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"SET temp_directory = '{room / 'temp'}'")
    if memory:
        connection.execute(f"SET memory_limit = '{memory}iB'")
    return connection


def load(room, records, program):
    import pyarrow
    import pyarrow.compute as compute

    room.mkdir()
    (room / "plumb").symlink_to(os.path.realpath(program))
    (room / "records").write_text(records)
    schema = pyarrow.schema([("key", pyarrow.binary()), ("payload", pyarrow.binary())])

    def batches():
        left = int(records)
        while left:
            count = min(left, 100_000)
            left -= count
            data = pyarrow.py_buffer(os.urandom(RECORD * count))
            whole = pyarrow.FixedSizeBinaryArray.from_buffers(pyarrow.binary(RECORD), count, [None, data])
            key = compute.binary_slice(whole, 0, KEY).cast(pyarrow.binary())
            payload = compute.binary_slice(whole, KEY, RECORD).cast(pyarrow.binary())
            yield pyarrow.record_batch([key, payload], schema=schema)

    connection = connect(room)
    connection.execute("CREATE TABLE records (key BLOB NOT NULL, payload BLOB NOT NULL)")
    rows = pyarrow.RecordBatchReader.from_batches(schema, batches())
    connection.execute("INSERT INTO records SELECT key, payload FROM rows")
    connection.execute("CHECKPOINT")


# Memory that plumb uses besides its two sort areas, in MB.
OVERHEAD = 24


def by_plumb(room, memory):
    area = (int(memory.removesuffix("M")) - OVERHEAD) * 1024 // 2
    given = [f"sort_area_size={area}K", "parallel_degree=2", "db_cache_size=1M"]
    settings = [word for setting in given for word in ("--set", setting)]
    record = plumb(room / "plumb", "run", "record-sort", "--rows", (room / "records").read_text(),
                   "--form", "random", "--path", room, "--json", *settings)
    answer(seconds=json.loads(record)["header"]["elapsed_ns"] / 1e9)


def run(room, work, memory):
    if work == "plumb":
        return by_plumb(room, memory)
    connection = connect(room, memory)
    if work == "table":
        connection.execute(f"ATTACH '{room / 'sorted.db'}' AS output")
        return answer(**timed(lambda: connection.execute(f"CREATE TABLE output.sorted AS {ORDERED}")))
    output = room / "sorted.parquet"
    return answer(**timed(lambda: connection.execute(f"COPY ({ORDERED}) TO '{output}' (FORMAT parquet)"), output))


def verify(room, work):
    if work == "plumb":
        return
    connection = connect(room)
    connection.execute("SET preserve_insertion_order = true")
    source = f"read_parquet('{room / 'sorted.parquet'}')"
    if work == "table":
        connection.execute(f"ATTACH '{room / 'sorted.db'}' AS output")
        source = "output.sorted"
    rows, last = 0, b""
    for batch in connection.sql(f"SELECT key FROM {source}").to_arrow_reader(100_000):
        for key in batch.column(0).to_pylist():
            require(last <= key, f"a key is behind a larger one after {rows} rows")
            last, rows = key, rows + 1
    expected = int((room / "records").read_text())
    require(rows == expected, f"{rows} rows of {expected}")
    for file in room.glob("sorted.*"):
        file.unlink()


action, path, *rest = sys.argv[1:]
{"load": load, "run": run, "verify": verify}[action](pathlib.Path(path) / "plumb-peers", *rest)
