"""SQLite: loads the rows, makes the index with worker threads."""

import apsw
import csv

TYPES = {
    "date": "TEXT NOT NULL", "integer": "INTEGER NOT NULL", "amount": "NUMERIC NOT NULL", "text": "TEXT NOT NULL",
}

directory = job["directory"]
path = os.path.join(directory, "rows.db")
os.environ["SQLITE_TMPDIR"] = directory
connection = apsw.Connection(path)


def load():
    for pragma in ("page_size = 8192", "journal_mode = OFF", "synchronous = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(f"CREATE TABLE {table} ({columns(TYPES)})")
    with open(job["csv"], newline="") as file, connection:
        places = ",".join("?" * len(data["columns"]))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", csv.reader(file))
    answer({"version": apsw.sqlite_lib_version()})


def index():
    workers = job["degree"] - 1
    # Every thread sorts as much as the cache may hold, so they share it.
    cache_kib = job["memory"] // 1024 // job["degree"]
    for pragma in (f"threads = {workers}", f"cache_size = -{cache_kib}", "journal_mode = DELETE",
                   "synchronous = FULL", "temp_store = FILE"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    granted = connection.execute("PRAGMA threads").fetchone()[0]
    before = connection.execute("PRAGMA page_count").fetchone()[0]
    free = connection.execute("PRAGMA freelist_count").fetchone()[0]
    measured = measure(lambda: connection.execute(f"CREATE INDEX {index_name} ON {table} ({key})"))
    pages = connection.execute("PRAGMA page_count").fetchone()[0] - before
    pages += free - connection.execute("PRAGMA freelist_count").fetchone()[0]
    weights = weight("unicode(substr({}, -1))", "unicode(substr({}, -5, 1))")
    rows, key_sum = connection.execute(
        f"SELECT count(*), sum({weights}) FROM {table} INDEXED BY {index_name}"
    ).fetchone()
    connection.execute(f"DROP INDEX {index_name}")
    note = "" if granted == workers else f"{granted} worker threads granted"
    answer(measured, {"rows": rows, "key_sum": key_sum, "output_bytes": pages * 8192, "note": note})


{"load": load, "index": index}[job["action"]]()
