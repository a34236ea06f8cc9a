"""DuckDB: loads the rows, sorts them into a table or into Parquet, makes its index."""

import duckdb

SORTED = f"SELECT {key}, rowid AS row_id FROM {table} ORDER BY {key}"
TYPES = {
    "date": "DATE NOT NULL", "integer": "INTEGER NOT NULL", "amount": "DECIMAL(38,2) NOT NULL",
    # Compared by bytes unless another collation is asked for.
    "text": "VARCHAR NOT NULL",
}

directory = job["directory"]
connection = duckdb.connect(os.path.join(directory, "rows.db"))
connection.execute(f"SET threads = {job['degree']}")
# An ORDER BY is kept all the same, as the checks prove; it saves memory.
connection.execute("SET preserve_insertion_order = false")
connection.execute(f"SET temp_directory = '{os.path.join(directory, 'temp')}'")


def load():
    connection.execute(f"CREATE TABLE {table} ({columns(TYPES)})")
    connection.execute(f"COPY {table} FROM '{job['csv']}' (FORMAT csv, HEADER false)")
    connection.execute("CHECKPOINT")
    answer({"version": duckdb.__version__})


def into_table():
    """A database of its own, so that its size is that of the sorted copy."""
    output = os.path.join(directory, "sorted.db")
    connection.execute(f"ATTACH '{output}' AS output")
    measured = measure(lambda: connection.execute(f"CREATE TABLE output.sorted AS {SORTED}"))
    connection.execute("CHECKPOINT output")
    connection.execute("SET preserve_insertion_order = true")
    reader = connection.execute("SELECT * FROM output.sorted").to_arrow_reader(100_000)
    facts = key_facts(reader)
    answer(measured, facts, {"output_bytes": os.path.getsize(output)})


def into_parquet():
    output = os.path.join(directory, "sorted.parquet")
    measured = measure(lambda: connection.execute(f"COPY ({SORTED}) TO '{output}' (FORMAT parquet)"), output)
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(output) as file:
        facts = key_facts(file.iter_batches(100_000))
    answer(measured, facts, {"output_bytes": os.path.getsize(output)})


def blocks_in_use():
    row = "SELECT used_blocks * block_size FROM pragma_database_size() WHERE database_name = 'rows'"
    return connection.execute(row).fetchone()[0]


def drop_index():
    connection.execute(f"DROP INDEX IF EXISTS {index_name}")
    connection.execute("CHECKPOINT")


def index():
    # Of a run that was ended before it dropped its own.
    drop_index()
    before = blocks_in_use()
    measured = measure(lambda: connection.execute(f"CREATE INDEX {index_name} ON {table} ({key})"))
    listed = connection.execute(f"SELECT count(*) FROM duckdb_indexes() WHERE index_name = '{index_name}'")
    if listed.fetchone()[0] != 1:
        raise RuntimeError("the index is not listed")
    connection.execute("CHECKPOINT")
    size = max(blocks_in_use() - before, 0)
    drop_index()
    answer(measured, {"output_bytes": size})


if job["action"] == "load":
    load()
else:
    connection.execute(f"SET memory_limit = '{job['memory']}B'")
    {"table": into_table, "parquet": into_parquet, "index": index}[job["action"]]()
