"""DuckDB: loads a file of records, and sorts them into a table or into Parquet."""

import duckdb

directory, key_bytes, record_bytes = job["directory"], job["key_bytes"], job["record_bytes"]
connection = duckdb.connect(os.path.join(directory, "records.db"))
connection.execute(f"SET threads = {job['degree']}")
connection.execute("SET preserve_insertion_order = false")
connection.execute(f"SET temp_directory = '{os.path.join(directory, 'temp')}'")

SORTED = "SELECT key, payload FROM records ORDER BY key"


def batches():
    """The records of the file as Arrow batches of a key and a payload."""
    import pyarrow
    import pyarrow.compute as compute

    schema = pyarrow.schema([("key", pyarrow.binary()), ("payload", pyarrow.binary())])

    def read():
        with open(job["input"], "rb") as file:
            while data := file.read(record_bytes * 100_000):
                count = len(data) // record_bytes
                whole = pyarrow.FixedSizeBinaryArray.from_buffers(
                    pyarrow.binary(record_bytes), count, [None, pyarrow.py_buffer(data)]
                )
                key = compute.binary_slice(whole, 0, key_bytes).cast(pyarrow.binary())
                payload = compute.binary_slice(whole, key_bytes, record_bytes).cast(pyarrow.binary())
                yield pyarrow.record_batch([key, payload], schema=schema)

    return pyarrow.RecordBatchReader.from_batches(schema, read())


def load():
    connection.execute("CREATE TABLE records (key BLOB NOT NULL, payload BLOB NOT NULL)")
    rows = batches()
    connection.execute("INSERT INTO records SELECT key, payload FROM rows")
    connection.execute("CHECKPOINT")
    answer({"version": duckdb.__version__})


def check(reader):
    """Fails where rows are missing or keys descend."""
    import pyarrow.compute as compute

    rows, last = 0, None
    for batch in reader:
        keys = batch.column(0)
        if len(keys) == 0:
            continue
        ascend = last is None or last <= keys[0].as_py()
        if len(keys) > 1:
            ascend = ascend and compute.all(compute.less_equal(keys[:-1], keys[1:])).as_py()
        if not ascend:
            raise RuntimeError("the keys do not ascend")
        rows, last = rows + len(keys), keys[-1].as_py()
    if rows != job["records"]:
        raise RuntimeError(f"{rows} rows of {job['records']}")


def into_table():
    output = os.path.join(directory, "sorted.db")
    connection.execute(f"ATTACH '{output}' AS output")
    measured = measure(lambda: connection.execute(f"CREATE TABLE output.sorted AS {SORTED}"))
    connection.execute("CHECKPOINT output")
    connection.execute("SET preserve_insertion_order = true")
    check(connection.execute("SELECT key FROM output.sorted").to_arrow_reader(100_000))
    answer(measured, {"output_bytes": os.path.getsize(output)})


def into_parquet():
    output = os.path.join(directory, "sorted.parquet")
    measured = measure(lambda: connection.execute(f"COPY ({SORTED}) TO '{output}' (FORMAT parquet)"), output)
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(output) as file:
        check(file.iter_batches(100_000, columns=["key"]))
    answer(measured, {"output_bytes": os.path.getsize(output)})


if job["action"] == "load":
    load()
else:
    connection.execute(f"SET memory_limit = '{job['memory']}B'")
    {"table": into_table, "parquet": into_parquet}[job["action"]]()
