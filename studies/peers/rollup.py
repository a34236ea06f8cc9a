"""A table made of three joins and a DISTINCT, as studies/pg-rollup.toml makes it, by PostgreSQL and DuckDB.

make PATH        the four tables in each
run PATH PEER    PEER is postgres-serial, postgres-parallel, duckdb-serial or duckdb-parallel
"""

import pathlib
import sys

from peers import answer, make_cluster, require, server, timed

# Rows of the tables: a hundredth of the source's, with its proportions.
TABLE1, TABLE2, TABLE3 = 309773, 146441, 133004
SOURCES = {
    "kinds": "select kind, 'kind ' || kind as name from generate_series(0, 4) as numbers(kind)",
    "table3": f"select id as t3, rpad(id::text, 20, ' ') as label from generate_series(0, {TABLE3 - 1}) as numbers(id)",
    "table2": f"select id as t2, id % {TABLE3} as t3, rpad(id::text, 75, ' ') as text2 "
              f"from generate_series(0, {TABLE2 - 1}) as numbers(id)",
    "table1": f"select id as t1, id % {TABLE2} as t2, id % 7 as kind, id % 1000 as state, "
              f"rpad(id::text, 75, ' ') as text1 from generate_series(0, {TABLE1 - 1}) as numbers(id)",
}
ROLLUP = (
    "create table rollup_table as select distinct table1.t1, table1.text1, table2.text2, table3.label, kinds.name "
    "from table3 join table2 on table2.t3 = table3.t3 join table1 on table1.t2 = table2.t2 "
    "left join kinds on kinds.kind = table1.kind where table1.state < 958"
)
CHECK = "select count(*), sum(t1), count(name) from rollup_table"
RESULT = (296795, 45968189905, 211997)
MEMORY = "256MB"


def duckdb_of(room, threads):
    import duckdb

    connection = duckdb.connect(str(room / "rollup.db"))
    connection.execute(f"SET threads = {threads}")
    connection.execute(f"SET memory_limit = '{MEMORY}'")
    connection.execute(f"SET temp_directory = '{room / 'temp'}'")
    return connection


def make(path):
    room = path / "plumb-peers"
    room.mkdir()
    make_cluster(room / "postgres")
    with server(room / "postgres") as connection:
        for name, source in SOURCES.items():
            connection.execute(f"create table {name} as {source}")
            connection.execute(f"vacuum (freeze, analyze) {name}")
        connection.execute("checkpoint")
    connection = duckdb_of(room, 2)
    for name, source in SOURCES.items():
        connection.execute(f"create table {name} as {source}")
    connection.execute("checkpoint")


def run(path, peer):
    room = path / "plumb-peers"
    program, way = peer.split("-")
    if program == "duckdb":
        connection = duckdb_of(room, 2 if way == "parallel" else 1)
        measured = timed(lambda: connection.execute(ROLLUP))
        rows = connection.execute(CHECK).fetchone()
        connection.execute("drop table rollup_table; checkpoint")
    else:
        with server(room / "postgres") as connection:
            settings = {
                "work_mem": MEMORY, "jit": "off", "parallel_setup_cost": 0, "parallel_tuple_cost": 0,
                "max_parallel_workers_per_gather": 2 if way == "parallel" else 0,
            }
            for name, value in settings.items():
                connection.execute(f"set {name} = '{value}'")
            plan = "\n".join(line[0] for line in connection.execute(f"explain {ROLLUP}"))
            require(("Parallel" in plan) == (way == "parallel"), f"the plan is another than asked: {plan}")
            measured = timed(lambda: connection.execute(ROLLUP))
            rows = connection.execute(CHECK).fetchone()
            connection.execute("drop table rollup_table")
    require(tuple(map(int, rows)) == RESULT, f"{rows}, expected {RESULT}")
    answer(**measured)


if __name__ == "__main__":
    sys.exit({"make": make, "run": run}[sys.argv[1]](pathlib.Path(sys.argv[2]).resolve(), *sys.argv[3:]))
