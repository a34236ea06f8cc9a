"""A query on two versions of PostgreSQL, with the same rows and the same statistics.

run PATH PLUMB SERVER   SERVER is a directory of initdb and postgres; its first run makes the tables

The query is that of a source in which an upgrade made a plan worse: a table joined to a view of two
branches, each with a function that returns rows. Its results and the planner's statistics must be
those of the first run. The plan's hash is that of `plumb plans`.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import sys

from peers import answer, make_cluster, plumb, require, server, timed

MAKE = (
    "create function two() returns setof int language plpgsql stable rows 2 as "
    "'begin return next 1; return next 2; end'",
    "create table t1 as select id, id as n1, id % 100 as n_100, rpad('x', 100) as padding "
    "from generate_series(1, 10000) as numbers(id)",
    "create table t2 as select * from t1",
    "alter table t2 add constraint t2_pk primary key (id)",
    "create view v1 as select t2.id, t2.n1, two.two from t2, two() where mod(t2.n1, 3) = 1 "
    "union all select t2.id, t2.n1, two.two from t2, two() where mod(t2.n1, 3) = 2",
    "vacuum (freeze, analyze) t1", "vacuum (freeze, analyze) t2", "checkpoint",
)
QUERY = "select t1.id, v1.n1, v1.two from t1 join v1 on v1.id = t1.n1 where t1.n_100 = 0"
STATISTICS = (
    "select tablename, attname, null_frac, avg_width, n_distinct, most_common_vals::text, most_common_freqs::text, "
    "histogram_bounds::text, correlation from pg_stats where schemaname = 'public' order by 1, 2"
)
# A planner's own choices, and neither workers nor compilation, whose defaults differ between builds.
SETTINGS = ("jit=off", "max_parallel_workers_per_gather=0", "effective_io_concurrency=1")
REPEATED = 20


def room_of(path, programs):
    return path / "plumb-peers" / hashlib.sha256(str(pathlib.Path(programs).resolve()).encode()).hexdigest()[:12]


@contextlib.contextmanager
def connected(path, programs):
    os.environ["POSTGRES_BIN"] = programs
    with server(room_of(path, programs), *SETTINGS) as connection:
        yield connection


def hashed(connection, statement):
    rows = sorted(map(repr, connection.execute(statement).fetchall()))
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


def make(path, programs):
    os.environ["POSTGRES_BIN"] = programs
    room = room_of(path, programs)
    room.parent.mkdir(exist_ok=True)
    make_cluster(room)
    with connected(path, programs) as connection:
        for statement in MAKE:
            connection.execute(statement)


def run(path, program, programs):
    expected, plan_file = path / "plumb-peers/expected.json", room_of(path, programs) / "plan.json"
    if not plan_file.parent.exists():
        make(path, programs)
    with connected(path, programs) as connection:
        version = connection.execute("show server_version").fetchone()[0]
        found = {"result": hashed(connection, QUERY), "statistics": hashed(connection, STATISTICS)}
        [[plan]] = connection.execute(f"explain (analyze, buffers, timing off, format json) {QUERY}").fetchall()
        measured = timed(lambda: [connection.execute(QUERY).fetchall() for _ in range(REPEATED)])
    plan_file.write_text(json.dumps(plan))
    [shown] = json.loads(plumb(program, "plans", plan_file, "--json"))["arms"]
    found["plan"] = shown["hash"]
    if not expected.exists():
        expected.write_text(json.dumps(found))
    first = json.loads(expected.read_text())
    for what in ("result", "statistics"):
        require(found[what] == first[what], f"{what} of the first run {first[what]}, now {found[what]}")
    same = "the first run's" if found["plan"] == first["plan"] else "another"
    cost, ms = plan[0]["Plan"]["Total Cost"], measured["seconds"] * 1000 / REPEATED
    answer(ms=ms, cost=cost, version=version, plan=found["plan"], compared=same)


if __name__ == "__main__":
    run(pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:])
