"""What every script of a peer begins with: its job, its clock, its answer.

The job is a JSON object in the first argument, the answer one on the last line of
the output. A failure is one line on the error output.
"""

import json
import os
import sys
import time

job = json.loads(sys.argv[1])


def fail(kind, value, _trace):
    text = str(value).strip() or "no message"
    print(f"{kind.__name__}: {' '.join(text.split())}", file=sys.stderr)


sys.excepthook = fail


def resident(field):
    """VmRSS or VmHWM of this process in bytes."""
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {field} in /proc/self/status")


def measure(work, file=None):
    """Runs work and makes file durable, where work itself does not; time and peak memory."""
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    start = resident("VmRSS")
    begin = time.perf_counter()
    work()
    worked = time.perf_counter()
    if file is not None:
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    end = time.perf_counter()
    return {
        "seconds": end - begin,
        "sync_seconds": 0 if file is None else end - worked,
        "memory_start": start,
        "memory_peak": resident("VmHWM"),
    }


def key_facts(batches):
    """Rows, sum of keys and whether they ascend, of Arrow batches of a sorted copy."""
    import pyarrow
    import pyarrow.compute as compute

    rows, key_sum, last, ascend = 0, 0, -1, True
    for batch in batches:
        if batch.num_rows == 0:
            continue
        store, product = (batch.column(at).cast(pyarrow.int64()) for at in (0, 1))
        key = compute.add(compute.multiply(store, job["key_factor"]), product)
        rows += len(key)
        key_sum += compute.sum(key).as_py()
        ascend = ascend and last <= key[0].as_py()
        if len(key) > 1:
            ascend = ascend and compute.all(compute.less_equal(key[:-1], key[1:])).as_py()
        last = key[-1].as_py()
    return {"rows": rows, "key_sum": key_sum, "ordered": ascend}


def answer(*parts):
    print(json.dumps({name: value for part in parts for name, value in part.items()}))
