"""What every script of a peer begins with: its job, its clock, its answer.

The job is a JSON object in the first argument, the answer one on the last line of
the output. A failure is one line on the error output.
"""

import json
import os
import resource
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


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(work, file=None):
    """Runs work and makes file durable, where work itself does not; time and peak memory."""
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    start = resident("VmRSS")
    cpu_begin = cpu_seconds()
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
        "cpu_seconds": cpu_seconds() - cpu_begin,
        "sync_seconds": 0 if file is None else end - worked,
        "memory_start": start,
        "memory_peak": resident("VmHWM"),
    }


data = job["data"]
table, index_name, key = data["table"], data["index"], ", ".join(data["key"])


def columns(types):
    """The columns of the table, each with the type that a peer has for its kind."""
    return ", ".join(f"{name} {types[kind]}" for name, kind in data["columns"])


def weight(ascii_of_last, ascii_of_fifth):
    """The weight of a key in SQL; a peer says how it reads a character of a text."""
    if data["keys"] == "numbers":
        return f"CAST({data['key'][0]} AS bigint) * {data['key_factor']} + {data['key'][1]}"
    last, fifth = ascii_of_last.format(key), ascii_of_fifth.format(key)
    return f"CAST(length({key}) AS bigint) + {data['last_factor']} * {last} + {data['fifth_factor']} * {fifth}"


def key_facts(batches):
    """Rows, sum of weights and whether keys ascend, of Arrow batches of a sorted copy."""
    import pyarrow
    import pyarrow.compute as compute

    letters = pyarrow.array([chr(code) for code in range(128)])

    def code(text, start, stop):
        return compute.index_in(compute.utf8_slice_codeunits(text, start, stop), value_set=letters)

    def numbers(batch):
        store, product = (batch.column(at).cast(pyarrow.int64()) for at in (0, 1))
        number = compute.add(compute.multiply(store, data["key_factor"]), product)
        return number, compute.sum(number).as_py()

    def text(batch):
        page = batch.column(0).cast(pyarrow.string())
        total = compute.sum(compute.binary_length(page)).as_py()
        total += data["last_factor"] * compute.sum(code(page, -1, None)).as_py()
        return page, total + data["fifth_factor"] * compute.sum(code(page, -5, -4)).as_py()

    rows, key_sum, last, ascend = 0, 0, None, True
    for batch in batches:
        if batch.num_rows == 0:
            continue
        keys, total = numbers(batch) if data["keys"] == "numbers" else text(batch)
        rows += len(keys)
        key_sum += total
        ascend = ascend and (last is None or last <= keys[0].as_py())
        if len(keys) > 1:
            ascend = ascend and compute.all(compute.less_equal(keys[:-1], keys[1:])).as_py()
        last = keys[-1].as_py()
    return {"rows": rows, "key_sum": key_sum, "ordered": ascend}


def answer(*parts):
    print(json.dumps({name: value for part in parts for name, value in part.items()}))
