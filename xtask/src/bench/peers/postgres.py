"""PostgreSQL, as a client of the server that the benchmark started."""

import psycopg

INTEGER, AMOUNT = "integer NOT NULL", "numeric(38,2) NOT NULL"

connection = psycopg.connect(host=job["socket"], user="postgres", dbname="postgres", autocommit=True)


def load():
    with connection.transaction():
        # In the transaction that made the table a copy needs no log.
        connection.execute(
            f"""CREATE TABLE sales (sales_date date NOT NULL, store_id {INTEGER}, prod_id {INTEGER},
            regular_qty {INTEGER}, regular_amt {AMOUNT}, discount_qty {INTEGER}, discount_amt {AMOUNT},
            promo_qty {INTEGER}, promo_amt {AMOUNT})"""
        )
        connection.execute(f"COPY sales FROM '{job['csv']}' (FORMAT csv)")
    # As many workers as are allowed, whatever table size and memory suggest.
    connection.execute(f"ALTER TABLE sales SET (parallel_workers = {max(job['degree'] - 1, 1)})")
    connection.execute("VACUUM (FREEZE, ANALYZE) sales")
    connection.execute("CREATE EXTENSION amcheck")
    connection.execute("CHECKPOINT")
    answer({"version": connection.execute("SHOW server_version").fetchone()[0]})


def index():
    connection.execute(f"SET maintenance_work_mem = '{job['memory'] // 1024}kB'")
    connection.execute(f"SET max_parallel_maintenance_workers = {job['workers']}")
    # Of a run that was ended before its check.
    connection.execute("DROP INDEX IF EXISTS sales_store_prod")
    notices = []
    connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
    connection.execute("SET client_min_messages = debug1")
    begin = time.perf_counter()
    connection.execute("CREATE INDEX sales_store_prod ON sales (store_id, prod_id)")
    seconds = time.perf_counter() - begin
    parallel = any("building index" in notice and "parallel workers" in notice for notice in notices)
    if parallel != (job["workers"] > 0):
        raise RuntimeError(f"it was built otherwise than asked: {' / '.join(notices)}")
    answer({"seconds": seconds})


def check():
    """Order by amcheck, entries by a scan of the index alone; then drops it."""
    connection.execute("SELECT bt_index_check('sales_store_prod')")
    connection.execute("SET enable_seqscan = off")
    connection.execute("SET enable_bitmapscan = off")
    query = f"SELECT count(*), sum(store_id::bigint * {job['key_factor']} + prod_id) FROM sales"
    query += " WHERE store_id >= 0"
    plan = "".join(line[0] for line in connection.execute("EXPLAIN " + query))
    if "Index Only Scan" not in plan:
        raise RuntimeError("the check does not read the index")
    rows, key_sum = connection.execute(query).fetchone()
    size = connection.execute("SELECT pg_relation_size('sales_store_prod')").fetchone()[0]
    connection.execute("DROP INDEX sales_store_prod")
    answer({"rows": rows, "key_sum": int(key_sum), "ordered": True, "output_bytes": size})


{"load": load, "index": index, "check": check}[job["action"]]()
