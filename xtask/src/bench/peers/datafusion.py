"""DataFusion: writes the rows as Parquet, sorts them from Parquet into Parquet."""

import datafusion
import pyarrow
import pyarrow.csv
import pyarrow.parquet

TYPES = {
    "date": pyarrow.date32(), "integer": pyarrow.int32(), "amount": pyarrow.decimal128(38, 2),
    "text": pyarrow.string(),
}
COLUMNS = {name: TYPES[kind] for name, kind in data["columns"]}
# A block of the CSV file becomes a row group, about a million rows.
BLOCK_BYTES = 48 << 20

directory = job["directory"]
source = os.path.join(directory, "rows.parquet")


def load():
    """Parquet rows have no address: a column row_id stands for it."""
    schema = pyarrow.schema([*COLUMNS.items(), ("row_id", pyarrow.int64())])
    reader = pyarrow.csv.open_csv(
        job["csv"],
        read_options=pyarrow.csv.ReadOptions(column_names=list(COLUMNS), block_size=BLOCK_BYTES),
        convert_options=pyarrow.csv.ConvertOptions(column_types=COLUMNS),
    )
    row = 0
    with pyarrow.parquet.ParquetWriter(source, schema) as writer:
        for batch in reader:
            numbers = pyarrow.array(range(row, row + batch.num_rows), pyarrow.int64())
            row += batch.num_rows
            writer.write_batch(pyarrow.RecordBatch.from_arrays([*batch.columns, numbers], schema=schema))
    answer({"version": datafusion.__version__})


def sort():
    output = os.path.join(directory, "sorted.parquet")
    temp = os.path.join(directory, "temp")
    os.makedirs(temp, exist_ok=True)
    runtime = datafusion.RuntimeEnvBuilder()
    runtime = runtime.with_disk_manager_specified(temp).with_fair_spill_pool(job["memory"])
    # Its default of 10 MB for each merge leaves nothing to sort in at small limits.
    reserved = min(10 << 20, job["memory"] // (8 * job["degree"]))
    config = datafusion.SessionConfig().with_target_partitions(job["degree"])
    config = config.set("datafusion.execution.sort_spill_reservation_bytes", str(reserved))
    config = config.set("datafusion.execution.parquet.compression", "snappy")
    context = datafusion.SessionContext(config, runtime)
    context.register_parquet(table, source)
    statement = (
        f"COPY (SELECT {key}, row_id FROM {table} ORDER BY {key}) "
        f"TO '{output}' STORED AS PARQUET"
    )
    measured = measure(lambda: context.sql(statement).collect(), output)
    with pyarrow.parquet.ParquetFile(output) as file:
        facts = key_facts(file.iter_batches(100_000))
    answer(measured, facts, {"output_bytes": os.path.getsize(output)})


{"load": load, "sort": sort}[job["action"]]()
