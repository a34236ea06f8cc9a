"""An index on the same rows, a sorted copy of its keys, or a scan, by plumb and by other programs.

    index.py load PATH numbers|text ROWS DEGREE PLUMB PEER...    each in its own best form
    index.py build PATH PEER-WORK MEMORY                         once, cold; prints the seconds
    index.py verify PATH PEER-WORK                               count, sum and order; removes it
    index.py scan PATH PEER-WORK                                 rows and the sums of two columns, cold

Everything is below PATH/plumb-peers. A sorted copy has the keys and the numbers of the rows.
"""

import csv
import json
import os
import pathlib
import shutil
import subprocess
import sys
from decimal import Decimal

from peers import answer, kept_rows, make_cluster, plumb, require, server, timed

# Each table: the workload that makes it, the columns of the key, all columns with their kinds.
NUMBERS = {
    "table": "SALES", "run": ["large-sort"], "key": ["store_id", "prod_id"],
    "columns": [
        ("sales_date", "date"), ("store_id", "integer"), ("prod_id", "integer"), ("regular_qty", "integer"),
        ("regular_amt", "amount"), ("discount_qty", "integer"), ("discount_amt", "amount"),
        ("promo_qty", "integer"), ("promo_amt", "amount"),
    ],
}
TEXT = {
    "table": "PAGE_VIEWS", "run": ["redo", "--buffer", "4M"], "key": ["page"],
    "columns": [("view_date", "date"), ("page", "text"), ("status", "integer"), ("bytes", "integer")],
}
DATA = {"numbers": NUMBERS, "text": TEXT}
INDEX = "by_key"
# The columns that a scan adds.
ADDED = ["regular_qty", "regular_amt"]


class Job:
    """What `load` noted for the runs, and the directory of it all."""

    def __init__(self, path):
        self.room = pathlib.Path(path) / "plumb-peers"
        vars(self).update(json.loads((self.room / "job.json").read_text()))
        self.data = DATA[self.kind]
        self.table, self.key = self.data["table"], ", ".join(self.data["key"])

    def columns(self, types):
        return ", ".join(f"{name} {types[kind]} NOT NULL" for name, kind in self.data["columns"])

    def weights(self, length="length"):
        """Sums in SQL that tell one set of keys from another."""
        if self.kind == "numbers":
            return f"sum({self.data['key'][0]}), sum({self.data['key'][1]})"
        return f"sum({length}({self.key})), count(DISTINCT {self.key})"

    def totals_query(self):
        return f"SELECT count(*), {', '.join(f'sum({name})' for name in ADDED)} FROM {self.table}"

    def check_totals(self, rows, *sums):
        found = [int(rows), *(round(100 * sum) for sum in sums)]
        require(found == self.totals, f"rows and hundredths of sums are {found}, expected {self.totals}")

    def check(self, rows, *sums):
        found = [int(rows), *map(int, sums)]
        require(found == self.facts, f"rows and sums are {found}, expected {self.facts}")


def load(path, kind, rows, degree, program, *peers):
    room = pathlib.Path(path) / "plumb-peers"
    room.mkdir()
    data = DATA[kind]
    source = kept_rows(program, room, data["table"], *data["run"], "--rows", rows)
    facts = write_keys(source, room / "keys.txt", kind, data)
    noted = {"kind": kind, "degree": int(degree), "plumb": os.path.realpath(program), "facts": facts, "rows": rows,
             "totals": totals(source, data) if kind == "numbers" else []}
    (room / "job.json").write_text(json.dumps(noted))
    job = Job(path)
    for peer in peers:
        (room / peer).mkdir(exist_ok=peer == "gnu-sort")
        PEERS[peer](job).load(source)
    source.unlink()


def write_keys(source, target, kind, data):
    """Writes the keys as text, numbers with zeros in front, and returns the number and the sums."""
    at = [[name for name, _ in data["columns"]].index(name) for name in data["key"]]
    number, sums, distinct = 0, [0, 0], set()
    with open(source, newline="") as file, open(target, "w") as out:
        for number, row in enumerate(csv.reader(file), 1):
            key = [row[column] for column in at]
            if kind == "numbers":
                sums[0] += int(key[0])
                sums[1] += int(key[1])
                key = [key[0].zfill(4), key[1].zfill(5)]
            else:
                sums[0] += len(key[0])
                distinct.add(key[0])
            out.write("\t".join([*key, f"{number:09}"]) + "\n")
    return [number, sums[0], sums[1] or len(distinct)]


def totals(source, data):
    """The number of rows, and the sums of the columns that a scan adds, in hundredths."""
    at = [[name for name, _ in data["columns"]].index(name) for name in ADDED]
    number, sums = 0, [0] * len(ADDED)
    with open(source, newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            sums = [sum + round(100 * float(row[column])) for sum, column in zip(sums, at)]
    return [number, *sums]


class Plumb:
    def __init__(self, job):
        self.job, self.home = job, job.room / "plumb"

    def load(self, source):
        names = ",".join(name for name, _ in self.job.data["columns"])
        kinds = {"date": "DATE", "integer": "NUMBER", "amount": "NUMBER(38,2)", "text": "VARCHAR2(60)"}
        types = ",".join(f"{name}={kinds[kind]}" for name, kind in self.job.data["columns"])
        plumb(self.job.plumb, "load", source, "--table", self.job.table, "--path", self.home,
              "--names", names, "--types", types)

    def build(self, work, memory):
        bundle = self.home / "bundle"
        shutil.rmtree(bundle, ignore_errors=True)
        settings = [f"sort_area_size={memory // self.job.degree}", f"parallel_degree={self.job.degree}"]
        settings = [word for setting in settings for word in ("--set", setting)]
        plumb(self.job.plumb, "index", self.job.table, ",".join(self.job.data["key"]), "--name", INDEX,
              "--path", self.home, "--bundle", bundle, *settings)
        record = json.loads((bundle / "record.json").read_text())
        return {"seconds": record["header"]["elapsed_ns"] / 1e9}

    def verify(self, work):
        """`check` holds every entry against its row; the rows are those that were loaded."""
        checked = plumb(self.job.plumb, "check", self.job.table, "--path", self.home, "--json")
        plumb(self.job.plumb, "drop", INDEX, "--path", self.home)
        rows = f"{INDEX.upper()}: {self.job.facts[0]:,} entries"
        require(rows in checked, f"the check does not say {rows}")


    def scan(self, work):
        """The workload makes the same rows again: its seed is the same. Its time is that of the scan."""
        room = self.home / "scan"
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        printed = plumb(self.job.plumb, "run", "scan", "--rows", self.job.rows, "--columns", ",".join(ADDED),
                        "--path", room, "--set", f"parallel_degree={self.job.degree}", "--json")
        record = json.loads(printed)
        self.job.check_totals(record["scan"]["rows"], *(Decimal(sum["sum"]) for sum in record["scan"]["sums"]))
        return {"seconds": max(record["scan"]["streams_ns"]) / 1e9}


class Postgres:
    TYPES = {"date": "date", "integer": "integer", "amount": "numeric(38,2)", "text": "text"}

    def __init__(self, job):
        self.job, self.room = job, job.room / "postgres"

    def load(self, source):
        job = self.job
        self.room.rmdir()
        make_cluster(self.room)
        source.chmod(0o644)
        with server(self.room) as connection:
            with connection.transaction():
                # In the transaction that made the table a copy needs no log.
                connection.execute(f"CREATE TABLE {job.table} ({job.columns(self.TYPES)})")
                with connection.cursor().copy(f"COPY {job.table} FROM STDIN (FORMAT csv)") as copy:
                    with open(source, "rb") as file:
                        while data := file.read(1 << 20):
                            copy.write(data)
            # As many workers as are allowed, whatever table size and memory suggest.
            connection.execute(f"ALTER TABLE {job.table} SET (parallel_workers = {max(job.degree - 1, 1)})")
            connection.execute(f"VACUUM (FREEZE, ANALYZE) {job.table}")
            connection.execute("CREATE EXTENSION amcheck")
            connection.execute("CHECKPOINT")

    def build(self, work, memory):
        workers = self.job.degree - 1 if work == "parallel" else 0
        with server(self.room) as connection:
            connection.execute(f"SET maintenance_work_mem = '{memory // 1024}kB'")
            connection.execute(f"SET max_parallel_maintenance_workers = {workers}")
            connection.execute(f"DROP INDEX IF EXISTS {INDEX}")
            notices = []
            connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
            connection.execute("SET client_min_messages = debug1")
            statement = f"CREATE INDEX {INDEX} ON {self.job.table} ({self.job.key})"
            measured = timed(lambda: connection.execute(statement))
            parallel = any("building index" in notice and "parallel workers" in notice for notice in notices)
            require(parallel == (workers > 0), f"it was built otherwise than asked: {' / '.join(notices)}")
            return measured

    def verify(self, work):
        """Order by amcheck, entries by a scan of the index alone."""
        job = self.job
        with server(self.room) as connection:
            connection.execute(f"SELECT bt_index_check('{INDEX}')")
            connection.execute("SET enable_seqscan = off")
            connection.execute("SET enable_bitmapscan = off")
            least = "0" if job.kind == "numbers" else "''"
            query = f"SELECT count(*), {job.weights()} FROM {job.table} WHERE {job.data['key'][0]} >= {least}"
            plan = "".join(line[0] for line in connection.execute("EXPLAIN " + query))
            require("Index Only Scan" in plan, "the check does not read the index")
            job.check(*connection.execute(query).fetchone())
            connection.execute(f"DROP INDEX {INDEX}")


    def scan(self, work):
        workers = self.job.degree - 1 if work == "parallel" else 0
        with server(self.room) as connection:
            connection.execute(f"SET max_parallel_workers_per_gather = {workers}")
            plan = "".join(line[0] for line in connection.execute("EXPLAIN " + self.job.totals_query()))
            require(("Parallel" in plan) == (workers > 0), f"the plan is another than asked: {plan}")
            rows = []
            measured = timed(lambda: rows.append(connection.execute(self.job.totals_query()).fetchone()))
            self.job.check_totals(*rows[0])
            return measured


class DuckDb:
    TYPES = {"date": "DATE", "integer": "INTEGER", "amount": "DECIMAL(38,2)", "text": "VARCHAR"}

    def __init__(self, job):
        self.job, self.room = job, job.room / "duckdb"

    def connect(self):
        import duckdb

        connection = duckdb.connect(str(self.room / "rows.db"))
        connection.execute(f"SET threads = {self.job.degree}")
        # An ORDER BY is kept all the same, as the checks prove; it saves memory.
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET temp_directory = '{self.room / 'temp'}'")
        return connection

    def load(self, source):
        connection = self.connect()
        connection.execute(f"CREATE TABLE {self.job.table} ({self.job.columns(self.TYPES)})")
        connection.execute(f"COPY {self.job.table} FROM '{source}' (FORMAT csv, HEADER false)")
        connection.execute("CHECKPOINT")

    def build(self, work, memory):
        job, connection = self.job, self.connect()
        self.remove()
        connection.execute(f"SET memory_limit = '{memory}B'")
        ordered = f"SELECT {job.key}, rowid AS row_id FROM {job.table} ORDER BY {job.key}"
        match work:
            case "table":
                connection.execute(f"ATTACH '{self.room / 'sorted.db'}' AS output")
                return timed(lambda: connection.execute(f"CREATE TABLE output.sorted AS {ordered}"))
            case "parquet":
                output = self.room / "sorted.parquet"
                return timed(lambda: connection.execute(f"COPY ({ordered}) TO '{output}' (FORMAT parquet)"), output)
            case "index":
                connection.execute(f"DROP INDEX IF EXISTS {INDEX}")
                return timed(lambda: connection.execute(f"CREATE INDEX {INDEX} ON {job.table} ({job.key})"))
        sys.exit(f"{work}: expected table, parquet or index")

    def verify(self, work):
        job, connection = self.job, self.connect()
        if work == "index":
            listed = f"SELECT count(*) FROM duckdb_indexes() WHERE index_name = '{INDEX}'"
            require(connection.execute(listed).fetchone()[0] == 1, "the index is not listed")
            connection.execute(f"DROP INDEX {INDEX}")
            return
        connection.execute("SET preserve_insertion_order = true")
        source = f"read_parquet('{self.room / 'sorted.parquet'}')"
        if work == "table":
            connection.execute(f"ATTACH '{self.room / 'sorted.db'}' AS output")
            source = "output.sorted"
        job.check(*connection.execute(f"SELECT count(*), {job.weights()} FROM {source}").fetchone())
        rows = connection.execute(f"SELECT {job.key} FROM {source}")
        require_ascending(iter(rows.fetchone, None))
        self.remove()

    def remove(self):
        for name in ("sorted.db", "sorted.db.wal", "sorted.parquet"):
            (self.room / name).unlink(missing_ok=True)

    def scan(self, work):
        rows, connection = [], self.connect()
        measured = timed(lambda: rows.append(connection.execute(self.job.totals_query()).fetchone()))
        self.job.check_totals(*rows[0])
        return measured


def require_ascending(keys):
    last = None
    for key in keys:
        require(last is None or last <= key, f"{key} is behind {last}")
        last = key


class Sqlite:
    TYPES = {"date": "TEXT", "integer": "INTEGER", "amount": "NUMERIC", "text": "TEXT"}

    def __init__(self, job):
        self.job, self.room = job, job.room / "sqlite"

    def connect(self):
        import apsw

        os.environ["SQLITE_TMPDIR"] = str(self.room)
        return apsw.Connection(str(self.room / "rows.db"))

    def load(self, source):
        connection = self.connect()
        for pragma in ("page_size = 8192", "journal_mode = OFF", "synchronous = OFF"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute(f"CREATE TABLE {self.job.table} ({self.job.columns(self.TYPES)})")
        with open(source, newline="") as file, connection:
            places = ",".join("?" * len(self.job.data["columns"]))
            connection.executemany(f"INSERT INTO {self.job.table} VALUES ({places})", csv.reader(file))

    def build(self, work, memory):
        connection = self.connect()
        # Every thread sorts as much as the cache may hold, so they share it.
        cache_kib = memory // 1024 // self.job.degree
        for pragma in (f"threads = {self.job.degree - 1}", f"cache_size = -{cache_kib}",
                       "journal_mode = DELETE", "synchronous = FULL", "temp_store = FILE"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute(f"DROP INDEX IF EXISTS {INDEX}")
        statement = f"CREATE INDEX {INDEX} ON {self.job.table} ({self.job.key})"
        return timed(lambda: connection.execute(statement))

    def verify(self, work):
        connection = self.connect()
        query = f"SELECT count(*), {self.job.weights()} FROM {self.job.table} INDEXED BY {INDEX}"
        self.job.check(*connection.execute(query).fetchone())
        connection.execute(f"DROP INDEX {INDEX}")


class GnuSort:
    def __init__(self, job):
        self.job, self.room = job, job.room / "gnu-sort"

    def load(self, source):
        """Its input is the keys as text."""

    def build(self, work, memory):
        output = self.room / "sorted.txt"
        command = ["sort", "-S", f"{memory // 1024}K", f"--parallel={self.job.degree}", "-T", self.room,
                   "-o", output, self.job.room / "keys.txt"]
        return timed(lambda: subprocess.run(command, check=True, env={"LC_ALL": "C", **os.environ}), output)

    def verify(self, work):
        output, rows, sums, distinct, last = self.room / "sorted.txt", 0, [0, 0], 0, None
        with open(output) as lines:
            for rows, line in enumerate(lines, 1):
                key = line.rstrip("\n").split("\t")[:-1]
                require(last is None or last <= key, f"line {rows} is out of order")
                distinct += key != last
                last = key
                sums[0] += int(key[0]) if self.job.kind == "numbers" else len(key[0])
                sums[1] += int(key[1]) if self.job.kind == "numbers" else 0
        self.job.check(rows, sums[0], sums[1] or distinct)
        output.unlink()


class DataFusion:
    def __init__(self, job):
        self.job, self.room = job, job.room / "datafusion"

    def load(self, source):
        """Parquet rows have no address: a column row_id stands for it."""
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet

        types = {"date": pyarrow.date32(), "integer": pyarrow.int32(), "amount": pyarrow.decimal128(38, 2),
                 "text": pyarrow.string()}
        columns = {name: types[kind] for name, kind in self.job.data["columns"]}
        schema = pyarrow.schema([*columns.items(), ("row_id", pyarrow.int64())])
        reader = pyarrow.csv.open_csv(
            source,
            # A block of the CSV file becomes a row group, about a million rows.
            read_options=pyarrow.csv.ReadOptions(column_names=list(columns), block_size=48 << 20),
            convert_options=pyarrow.csv.ConvertOptions(column_types=columns),
        )
        row = 0
        with pyarrow.parquet.ParquetWriter(self.room / "rows.parquet", schema) as writer:
            for batch in reader:
                numbers = pyarrow.array(range(row, row + batch.num_rows), pyarrow.int64())
                row += batch.num_rows
                writer.write_batch(pyarrow.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema))

    def build(self, work, memory):
        import datafusion

        job, output, temp = self.job, self.room / "sorted.parquet", self.room / "temp"
        output.unlink(missing_ok=True)
        temp.mkdir(exist_ok=True)
        runtime = datafusion.RuntimeEnvBuilder()
        runtime = runtime.with_disk_manager_specified(str(temp)).with_fair_spill_pool(memory)
        # Its default of 10 MB for each merge leaves nothing to sort in at small limits.
        reserved = min(10 << 20, memory // (8 * job.degree))
        config = datafusion.SessionConfig().with_target_partitions(job.degree)
        config = config.set("datafusion.execution.sort_spill_reservation_bytes", str(reserved))
        config = config.set("datafusion.execution.parquet.compression", "snappy")
        context = datafusion.SessionContext(config, runtime)
        context.register_parquet(job.table, str(self.room / "rows.parquet"))
        ordered = f"SELECT {job.key}, row_id FROM {job.table} ORDER BY {job.key}"
        statement = f"COPY ({ordered}) TO '{output}' STORED AS PARQUET"
        return timed(lambda: context.sql(statement).collect(), output)

    def verify(self, work):
        import pyarrow.parquet

        rows, sums, distinct, last = 0, [0, 0], 0, None
        with pyarrow.parquet.ParquetFile(self.room / "sorted.parquet") as file:
            for batch in file.iter_batches(100_000, columns=self.job.data["key"]):
                for key in zip(*(column.to_pylist() for column in batch.columns)):
                    require(last is None or last <= key, f"{key} is behind {last}")
                    distinct += key != last
                    last, rows = key, rows + 1
                    sums[0] += key[0] if self.job.kind == "numbers" else len(key[0])
                    sums[1] += key[1] if self.job.kind == "numbers" else 0
        self.job.check(rows, sums[0], sums[1] or distinct)
        (self.room / "sorted.parquet").unlink()


PEERS = {
    "plumb": Plumb, "postgres": Postgres, "duckdb": DuckDb, "sqlite": Sqlite, "gnu-sort": GnuSort,
    "datafusion": DataFusion,
}


def main(action, path, *rest):
    if action == "load":
        return load(path, *rest)
    peer, _, work = rest[0].partition("-") if rest[0] != "gnu-sort" else ("gnu-sort", "", "")
    job = Job(path)
    if action == "verify":
        return PEERS[peer](job).verify(work)
    if action == "scan":
        return answer(**PEERS[peer](job).scan(work))
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[rest[1][-1]]
    return answer(**PEERS[peer](job).build(work, int(rest[1][:-1]) * unit))


main(*sys.argv[1:])
