"""PostgreSQL: rows into an empty table, so many a transaction, each durable."""

import psycopg

connection = psycopg.connect(host=job["socket"], user="postgres", dbname="postgres", autocommit=True)
count, per_commit = job["rows"], job["per_commit"]
connection.execute("DROP TABLE IF EXISTS t")
connection.execute("CREATE TABLE t (a integer NOT NULL, b integer NOT NULL, c text NOT NULL)")
# A transaction that does not log its rows is another thing.
connection.execute("CREATE OR REPLACE PROCEDURE tiny(count integer) LANGUAGE plpgsql AS $$ BEGIN FOR row IN 1..count LOOP "
                   "INSERT INTO t VALUES (10000001, 20000001, 'a value that is text of some '); COMMIT; END LOOP; END $$")
path = os.path.join(job["room"], "rows.csv")
with open(path, "w") as file:
    for row in range(per_commit):
        file.write(f"{10000001 + row % 1000},{20000001 + row % 7919},a value that is text of some \n")
connection.execute("CHECKPOINT")


def large():
    for _ in range(count // per_commit):
        connection.execute(f"COPY t FROM '{path}' (FORMAT csv)")


begin = time.perf_counter()
connection.execute(f"CALL tiny({count})") if per_commit == 1 else large()
seconds = time.perf_counter() - begin
found = connection.execute("SELECT count(*) FROM t").fetchone()[0]
version = connection.execute("SHOW server_version").fetchone()[0]
if found != count:
    raise RuntimeError(f"wrong result: {found} rows of {count}")
connection.execute("DROP TABLE t")
os.remove(path)
answer({"seconds": seconds, "version": version})
