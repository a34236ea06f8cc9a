"""Ranges of a key selected and updated, one row a block of 8K, through a cache of 16 MB.

    slob.py load PATH ROWS PLUMB                the table of PostgreSQL; plumb's runs make their own
    slob.py run PATH PEER UPDATE_PCT SESSIONS SECONDS

PEER is plumb-shared (one thread for all sessions), plumb-threads, postgres-direct (past the page
cache, from version 16 on) or postgres-cached. The figure is physical reads a second of CPU of all
server processes or sessions. pgbench is the client of PostgreSQL, and its CPU is not counted.
"""

import json
import os
import pathlib
import subprocess
import sys

from peers import answer, make_cluster, plumb, require, server

WORK_UNIT, SCHEMAS = 64, 4
SETTINGS = ("shared_buffers=16MB", "max_wal_size=4GB", "enable_bitmapscan=off", "enable_seqscan=off")


def load(room, rows, program):
    room.mkdir()
    (room / "plumb").symlink_to(os.path.realpath(program))
    (room / "rows").write_text(rows)
    make_cluster(room / "postgres")

    def columns(text):
        return ", ".join(text.format(number) for number in range(2, 21))

    with server(room / "postgres", *SETTINGS) as connection:
        defined = columns("c{} varchar(128) not null")
        connection.execute(f"create table cf1 (custid int not null, {defined}) with (fillfactor = 10)")
        connection.execute(f"alter table cf1 {columns('alter column c{} set storage plain')}")
        texts = columns("repeat(md5(k::text || '{}'), 4)")
        keys = f"(select k from generate_series(1, {rows}) k order by md5(k::text)) keys"
        connection.execute(f"insert into cf1 select k, {texts} from {keys}")
        connection.execute("create index i_cf1 on cf1 (custid)")
        connection.execute("vacuum analyze cf1")
        blocks = connection.execute("select pg_relation_size('cf1') / 8192").fetchone()[0]
        require(blocks == int(rows), f"{rows} rows lie in {blocks} blocks, expected one a block")


def by_plumb(room, form, update_pct, sessions, seconds):
    given = {"scale": int((room / "rows").read_text()) // SCHEMAS, "schemas": SCHEMAS, "update-pct": update_pct,
             "sessions": sessions, "run-time": seconds, "work-unit": WORK_UNIT, "mix": "iid"}
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    servers = {"shared": 1, "threads": 0}[form]
    record = json.loads(plumb(room / "plumb", "run", "slob", *words, "--path", room, "--json",
                              "--set", "data_files=1", "--set", f"shared_servers={servers}"))
    reads = next(row["total"] for row in record["statistics"] if row["name"] == "physical reads")
    cpu = sum(session["cpu_ns"] + session["wait_cpu_ns"] for session in record["sessions"])
    return reads, cpu / 1e9


def cpu_seconds(process):
    """CPU of a process, of its descendants, and of those they waited for."""
    ticks, waiting = 0, [process]
    while waiting:
        number = waiting.pop()
        try:
            fields = pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            children = pathlib.Path(f"/proc/{number}/task/{number}/children").read_text().split()
        except FileNotFoundError:
            continue
        ticks += sum(map(int, fields[11:15]))
        waiting += children
    return ticks / os.sysconf("SC_CLK_TCK")


def by_postgres(room, form, update_pct, sessions, seconds):
    rows = int((room / "rows").read_text())
    key = f"\\set r random({WORK_UNIT + 1}, {rows - WORK_UNIT})\n"
    where, text = f"where custid > :r - {WORK_UNIT} and custid < :r", "repeat(md5(random()::text), 4)"
    scripts = {"select": (f"select count(c2) from cf1 {where};", 100 - update_pct),
               "update": (f"update cf1 set c2 = {text}, c20 = {text} {where};", update_pct)}
    direct = ["debug_io_direct=data"] if form == "direct" else []
    with server(room / "postgres", *SETTINGS, *direct) as connection:
        pgbench = ["pgbench", "--no-vacuum", "--protocol=prepared", "--username=postgres", "--jobs=2",
                   f"--client={sessions}", f"--time={seconds}", f"--host={connection.info.host}"]
        for name, (script, weight) in scripts.items():
            (room / f"{name}.sql").write_text(key + script + "\n")
            pgbench += [f"--file={room / name}.sql@{weight}"] if weight else []
        connection.execute("checkpoint")
        parent = pathlib.Path(f"/proc/{connection.info.backend_pid}/stat").read_text().rpartition(")")[2].split()[1]
        blocks = "select blks_read from pg_stat_database where datname = 'postgres'"
        reads, cpu = connection.execute(blocks).fetchone()[0], cpu_seconds(parent)
        subprocess.run([*pgbench, "postgres"], check=True, stdout=sys.stderr)
        return connection.execute(blocks).fetchone()[0] - reads, cpu_seconds(parent) - cpu


def run(room, peer, update_pct, sessions, seconds):
    name, _, form = peer.partition("-")
    by = {"plumb": by_plumb, "postgres": by_postgres}[name]
    reads, cpu = by(room, form, int(update_pct), sessions, seconds)
    require(reads > 0 and cpu > 0, f"{reads} reads in {cpu} s of CPU")
    answer(reads_per_cpu_second=reads / cpu)


action, path, *rest = sys.argv[1:]
{"load": load, "run": run}[action](pathlib.Path(path) / "plumb-peers", *rest)
