"""Rows of 42 bytes into an empty table without an index, each transaction durable.

    commits.py load PATH PLUMB PEER...
    commits.py run PATH PEER ROWS PER_COMMIT      prints the seconds; fails if rows are missing

Each peer gets the rows as it takes them fastest: plumb and PostgreSQL from a file, SQLite from a
table in memory; single rows in PostgreSQL within a procedure, so that no message passes between
two of them. All wait for the disk at each commit and log everything. Later work, as checkpoints
and autovacuum, is not in these times.
"""

import json
import os
import pathlib
import shutil
import sys

from peers import answer, make_cluster, plumb, require, server, timed

TEXT = "a value that is text of some "
COLUMNS = "(a integer NOT NULL, b integer NOT NULL, c text NOT NULL)"


def rows(count):
    return ((10000001 + row % 1000, 20000001 + row % 7919, TEXT) for row in range(count))


def load(room, program, *peers):
    room.mkdir()
    (room / "plumb").symlink_to(os.path.realpath(program))
    if "postgres" in peers:
        make_cluster(room / "postgres")


def by_plumb(room, count, per_commit):
    home = room / "home"
    home.mkdir()
    with open(room / "rows.csv", "w") as file:
        file.writelines(f"{a},{b},{c}\n" for a, b, c in rows(count))
    loaded = plumb(room / "plumb", "load", room / "rows.csv", "--table", "T", "--names", "A,B,C",
                   "--types", "NUMBER,NUMBER,VARCHAR2(100)", "--conventional", "--commit-every",
                   per_commit, "--path", home, "--json")
    shutil.rmtree(home)
    return json.loads(loaded)["rows"], {"seconds": json.loads(loaded)["seconds"]}


def by_sqlite(room, count, per_commit):
    import apsw

    connection = apsw.Connection(str(room / "commits.db"))
    for pragma in ("page_size = 8192", "journal_mode = WAL", "synchronous = FULL"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute(f"CREATE TABLE t {COLUMNS}")
    connection.execute("ATTACH ':memory:' AS source")
    connection.execute(f"CREATE TABLE source.rows {COLUMNS}")
    with connection:
        connection.executemany("INSERT INTO source.rows VALUES (?, ?, ?)", rows(per_commit))

    def large():
        for _ in range(count // per_commit):
            connection.execute("INSERT INTO t SELECT a, b, c FROM source.rows WHERE rowid > 0")

    def tiny():
        cursor = connection.cursor()
        for _ in range(count):
            cursor.execute(f"INSERT INTO t VALUES (10000001, 20000001, '{TEXT}')")

    measured = timed(tiny if per_commit == 1 else large)
    found = connection.execute("SELECT count(*) FROM t").fetchone()[0]
    connection.close()
    for file in room.glob("commits.db*"):
        file.unlink()
    return found, measured


def by_postgres(room, count, per_commit):
    source = room / "postgres" / "rows.csv"
    with open(source, "w") as file:
        file.writelines(f"{a},{b},{c}\n" for a, b, c in rows(per_commit))
    source.chmod(0o644)
    with server(room / "postgres") as connection:
        connection.execute("DROP TABLE IF EXISTS t")
        connection.execute(f"CREATE TABLE t {COLUMNS}")
        connection.execute(
            "CREATE OR REPLACE PROCEDURE tiny(count integer) LANGUAGE plpgsql AS $$ BEGIN FOR row IN 1..count "
            f"LOOP INSERT INTO t VALUES (10000001, 20000001, '{TEXT}'); COMMIT; END LOOP; END $$"
        )
        connection.execute("CHECKPOINT")

        def large():
            for _ in range(count // per_commit):
                connection.execute(f"COPY t FROM '{source}' (FORMAT csv)")

        measured = timed((lambda: connection.execute(f"CALL tiny({count})")) if per_commit == 1 else large)
        return connection.execute("SELECT count(*) FROM t").fetchone()[0], measured


def run(room, peer, count, per_commit):
    by = {"plumb": by_plumb, "sqlite": by_sqlite, "postgres": by_postgres}[peer]
    found, measured = by(room, int(count), int(per_commit))
    require(found == int(count), f"{found} rows of {count}")
    answer(**measured)


action, path, *rest = sys.argv[1:]
{"load": load, "run": run}[action](pathlib.Path(path) / "plumb-peers", *rest)
