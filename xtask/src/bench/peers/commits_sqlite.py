"""SQLite: rows into an empty table, so many a transaction, each durable."""

import apsw

path = os.path.join(job["directory"], "commits.db")
connection = apsw.Connection(path)
for pragma in ("page_size = 8192", "journal_mode = WAL", "synchronous = FULL"):
    connection.execute(f"PRAGMA {pragma}").fetchall()
connection.execute("CREATE TABLE t (a INTEGER NOT NULL, b INTEGER NOT NULL, c TEXT NOT NULL)")
connection.execute("ATTACH ':memory:' AS source")
count, per_commit = job["rows"], job["per_commit"]
connection.execute("CREATE TABLE source.rows (a INTEGER NOT NULL, b INTEGER NOT NULL, c TEXT NOT NULL)")
with connection:
    rows = ((10000001 + row % 1000, 20000001 + row % 7919, "a value that is text of some ") for row in range(per_commit))
    connection.executemany("INSERT INTO source.rows VALUES (?, ?, ?)", rows)


def large():
    for _ in range(count // per_commit):
        connection.execute("INSERT INTO t SELECT a, b, c FROM source.rows WHERE rowid > 0")


def tiny():
    cursor = connection.cursor()
    for _ in range(count):
        cursor.execute("INSERT INTO t VALUES (10000001, 20000001, 'a value that is text of some ')")


begin = time.perf_counter()
tiny() if per_commit == 1 else large()
seconds = time.perf_counter() - begin
found = connection.execute("SELECT count(*) FROM t").fetchone()[0]
if found != count:
    raise RuntimeError(f"wrong result: {found} rows of {count}")
connection.close()
os.remove(path)
answer({"seconds": seconds, "version": apsw.sqlite_lib_version()})
