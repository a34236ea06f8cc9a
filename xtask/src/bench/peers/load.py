"""DuckDB: a CSV file into a table of a new database, with the types that it finds."""

import duckdb

home = os.path.join(job["directory"], "loaded.db")


def load():
    connection = duckdb.connect(home)
    connection.execute(f"SET threads = {job['degree']}")
    # Rows may lie in any order, as in plumb's table.
    connection.execute("SET preserve_insertion_order = false")
    connection.execute(f"CREATE TABLE loaded AS SELECT * FROM read_csv('{job['csv']}')")
    connection.execute("CHECKPOINT")
    connection.close()


measured = measure(load)
size = os.path.getsize(home)
cents = "SELECT count(*), sum(CAST(round(amount * 100) AS BIGINT)) FROM loaded"
rows, key_sum = duckdb.connect(home, read_only=True).execute(cents).fetchone()
os.remove(home)
answer(measured, {"version": duckdb.__version__, "output_bytes": size, "rows": rows, "key_sum": int(key_sum)})
