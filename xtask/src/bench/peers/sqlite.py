"""SQLite: loads the sales, makes the index with worker threads."""

import apsw
import csv

INTEGER, AMOUNT = "INTEGER NOT NULL", "NUMERIC NOT NULL"

directory = job["directory"]
path = os.path.join(directory, "sales.db")
os.environ["SQLITE_TMPDIR"] = directory
connection = apsw.Connection(path)


def load():
    for pragma in ("page_size = 8192", "journal_mode = OFF", "synchronous = OFF"):
        connection.execute(f"PRAGMA {pragma}")
    connection.execute(
        f"""CREATE TABLE sales (sales_date TEXT NOT NULL, store_id {INTEGER}, prod_id {INTEGER},
        regular_qty {INTEGER}, regular_amt {AMOUNT}, discount_qty {INTEGER}, discount_amt {AMOUNT},
        promo_qty {INTEGER}, promo_amt {AMOUNT})"""
    )
    with open(job["csv"], newline="") as file, connection:
        connection.executemany("INSERT INTO sales VALUES (?,?,?,?,?,?,?,?,?)", csv.reader(file))
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
    measured = measure(lambda: connection.execute("CREATE INDEX sales_store_prod ON sales (store_id, prod_id)"))
    pages = connection.execute("PRAGMA page_count").fetchone()[0] - before
    pages += free - connection.execute("PRAGMA freelist_count").fetchone()[0]
    rows, key_sum = connection.execute(
        f"SELECT count(*), sum(store_id * {job['key_factor']} + prod_id) FROM sales INDEXED BY sales_store_prod"
    ).fetchone()
    connection.execute("DROP INDEX sales_store_prod")
    note = "" if granted == workers else f"{granted} worker threads granted"
    answer(measured, {"rows": rows, "key_sum": key_sum, "output_bytes": pages * 8192, "note": note})


{"load": load, "index": index}[job["action"]]()
