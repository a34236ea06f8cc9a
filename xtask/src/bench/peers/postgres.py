"""PostgreSQL, as a client of the server that the benchmark started."""

import psycopg

TYPES = {
    "date": "date NOT NULL", "integer": "integer NOT NULL", "amount": "numeric(38,2) NOT NULL",
    # The cluster has the C locale, and so has every column of text.
    "text": "text NOT NULL",
}

connection = psycopg.connect(host=job["socket"], user="postgres", dbname="postgres", autocommit=True)


def load():
    with connection.transaction():
        # In the transaction that made the table a copy needs no log.
        connection.execute(f"CREATE TABLE {table} ({columns(TYPES)})")
        connection.execute(f"COPY {table} FROM '{job['csv']}' (FORMAT csv)")
    # As many workers as are allowed, whatever table size and memory suggest.
    connection.execute(f"ALTER TABLE {table} SET (parallel_workers = {max(job['degree'] - 1, 1)})")
    connection.execute(f"VACUUM (FREEZE, ANALYZE) {table}")
    connection.execute("CREATE EXTENSION amcheck")
    connection.execute("CHECKPOINT")
    answer({"version": connection.execute("SHOW server_version").fetchone()[0]})


def index():
    connection.execute(f"SET maintenance_work_mem = '{job['memory'] // 1024}kB'")
    connection.execute(f"SET max_parallel_maintenance_workers = {job['workers']}")
    # Of a run that was ended before its check.
    connection.execute(f"DROP INDEX IF EXISTS {index_name}")
    notices = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    connection.execute("SET client_min_messages = debug1")
    begin = time.perf_counter()
    connection.execute(f"CREATE INDEX {index_name} ON {table} ({key})")
    seconds = time.perf_counter() - begin
    parallel = any("building index" in notice and "parallel workers" in notice for notice in notices)
    if parallel != (job["workers"] > 0):
        raise RuntimeError(f"it was built otherwise than asked: {' / '.join(notices)}")
    answer({"seconds": seconds})


def check():
    """Order by amcheck, entries by a scan of the index alone; then drops it."""
    connection.execute(f"SELECT bt_index_check('{index_name}')")
    connection.execute("SET enable_seqscan = off")
    connection.execute("SET enable_bitmapscan = off")
    weights = weight("ascii(right({}, 1))", "ascii(left(right({}, 5), 1))")
    least = "0" if data["keys"] == "numbers" else "''"
    query = f"SELECT count(*), sum({weights}) FROM {table} WHERE {data['key'][0]} >= {least}"
    plan = "".join(line[0] for line in connection.execute("EXPLAIN " + query))
    if "Index Only Scan" not in plan:
        raise RuntimeError("the check does not read the index")
    rows, key_sum = connection.execute(query).fetchone()
    size = connection.execute(f"SELECT pg_relation_size('{index_name}')").fetchone()[0]
    connection.execute(f"DROP INDEX {index_name}")
    answer({"rows": rows, "key_sum": int(key_sum), "ordered": True, "output_bytes": size})


{"load": load, "index": index, "check": check}[job["action"]]()
