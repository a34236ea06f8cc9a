"""Lines like those of an access log, sorted by their bytes.

    lines.py make PATH LINES PLUMB           the file, and its sorted copy by GNU sort
    lines.py run PATH plumb|gnu-sort MEMORY  until the output is durable
    lines.py verify PATH                     the output has the bytes of that copy; removes it

The judgement of plumb's output is not timed, because GNU sort makes none.
"""

import filecmp
import json
import os
import pathlib
import subprocess
import sys

from peers import answer, plumb, require, timed

# Memory that plumb uses besides its two sort areas, in MB.
OVERHEAD = 32
ENVIRONMENT = {**os.environ, "LC_ALL": "C"}


def make(room, count, program):
    room.mkdir()
    (room / "plumb").symlink_to(os.path.realpath(program))
    with open(room / "in.txt", "w") as file:
        for line in range(int(count)):
            mixed = (line ^ line >> 7) * 0x9E37_79B9_7F4A_7C15 & (1 << 64) - 1
            file.write(f"/shop/{mixed >> 57:03}/item/{mixed >> 20 & 0xFFFF:05} {mixed >> 44 & 0x3FF} {line}\n")
    expected = ["sort", "-o", room / "expected.txt", room / "in.txt"]
    subprocess.run(expected, check=True, env=ENVIRONMENT)


def run(room, peer, memory):
    output, megabytes = room / "out.txt", int(memory.removesuffix("M"))
    if peer == "plumb":
        given = [f"sort_area_size={(megabytes - OVERHEAD) // 2}M", "parallel_degree=2", "db_cache_size=1M"]
        settings = [word for setting in given for word in ("--set", setting)]
        record = plumb(room / "plumb", "sort", room / "in.txt", output, "--path", room, "--json", *settings)
        return answer(seconds=json.loads(record)["header"]["elapsed_ns"] / 1e9)
    command = ["sort", "-S", f"{megabytes}M", "--parallel=2", "-T", room, "-o", output, room / "in.txt"]
    return answer(**timed(lambda: subprocess.run(command, check=True, env=ENVIRONMENT), output))


def verify(room):
    require(filecmp.cmp(room / "out.txt", room / "expected.txt", shallow=False), "other bytes than GNU sort's")
    (room / "out.txt").unlink()


action, path, *rest = sys.argv[1:]
{"make": make, "run": run, "verify": verify}[action](pathlib.Path(path) / "plumb-peers", *rest)
