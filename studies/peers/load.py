"""A CSV file of six columns into a table of a new database, with the types that are found in it.

    load.py make PATH ROWS PLUMB         the file: numbers, times, few and many texts, amounts
    load.py run PATH plumb|duckdb        from the file and no database to a durable table
    load.py verify PATH plumb|duckdb     all rows and the sum of the amounts; removes the table

plumb looks at every value to find the types, DuckDB at a sample. DuckDB need not keep the order
of rows, as plumb does not.
"""

import csv
import json
import os
import pathlib
import random
import shutil
import sys

from peers import answer, plumb, require, timed

CITIES = ["Ulm", "Hamburg", "Berlin", "Bad Salzuflen", "Leipzig", "Freiburg im Breisgau", "Mainz", "Halle"]
NOTES = "gift wrapping; please ring twice; leave it with the neighbours; fragile; by the side door"


def make(room, count, program):
    room.mkdir()
    (room / "plumb").symlink_to(os.path.realpath(program))
    drawn, total = random.Random(1), 0
    with open(room / "rows.csv", "w") as file:
        file.write("id,placed,city,customer,amount,note\n")
        for row in range(int(count)):
            bits = drawn.getrandbits(96)
            day = f"{2015 + bits % 10}-{1 + (bits >> 4) % 12:02}-{1 + (bits >> 8) % 28:02}"
            time = f"{(bits >> 13) % 24:02}:{(bits >> 18) % 60:02}:{(bits >> 24) % 60:02}"
            cents, begin = (bits >> 30) % 1_000_000, (bits >> 50) % 40
            # One amount of 16 has no value.
            known = (bits >> 56) % 16 > 0
            total += cents * known
            amount = f"{cents // 100}.{cents % 100:02}" if known else ""
            customer, note = (bits >> 60) % 900_000, NOTES[begin:begin + (bits >> 80) % 40]
            file.write(f"{row},{day} {time},{CITIES[bits >> 93]},customer.{customer}@example.org,{amount},{note}\n")
    (room / "facts.json").write_text(json.dumps([int(count), total]))


def run(room, peer):
    if peer == "plumb":
        (room / "home").mkdir()
        loaded = plumb(room / "plumb", "load", room / "rows.csv", "--table", "LOADED", "--path", room / "home",
                       "--set", "parallel_degree=2", "--json")
        return answer(seconds=json.loads(loaded)["seconds"])
    import duckdb

    def load():
        connection = duckdb.connect(str(room / "loaded.db"))
        connection.execute("SET threads = 2")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"CREATE TABLE loaded AS SELECT * FROM read_csv('{room / 'rows.csv'}')")
        connection.execute("CHECKPOINT")
        connection.close()

    return answer(**timed(load))


def verify(room, peer):
    if peer == "plumb":
        amounts = room / "amounts.csv"
        plumb(room / "plumb", "export", "LOADED", "--columns", "amount", "--path", room / "home", "--output", amounts)
        with open(amounts, newline="") as file:
            values = [row[0] if row else "" for row in list(csv.reader(file))[1:]]
        found = [len(values), sum(round(float(value) * 100) for value in values if value)]
        amounts.unlink()
        shutil.rmtree(room / "home")
    else:
        import duckdb

        sums = "SELECT count(*), sum(CAST(round(amount * 100) AS BIGINT)) FROM loaded"
        found = list(map(int, duckdb.connect(str(room / "loaded.db"), read_only=True).execute(sums).fetchone()))
        (room / "loaded.db").unlink()
    require(found == json.loads((room / "facts.json").read_text()), f"rows and hundredths are {found}")


action, path, *rest = sys.argv[1:]
{"make": make, "run": run, "verify": verify}[action](pathlib.Path(path) / "plumb-peers", *rest)
