//! `plumb list`: what there is.

use crate::arguments::{List, Listing};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned};
use crate::targets::KINDS;
use crate::{database, document};
use plumb_engine::Settings;
use plumb_engine::storage::control::{Catalog, Index, IndexColumn, SegmentExtent};
use plumb_engine::storage::tablespace::Purpose;
use plumb_lab::LabError;
use plumb_lab::study::catalog;
use plumb_types::Schema;
use plumb_units::{Bytes, RowCount};
use plumb_workload::{Parameter, WORKLOADS, Workload};

/// Prints the list.
///
/// # Errors
/// When the tables are asked for and there is no database.
pub fn run(arguments: &List) -> Result<Outcome, Failure> {
    let rows = match arguments.what {
        Listing::Workloads => workloads(),
        Listing::Studies => studies()?,
        Listing::Settings => document::settings_list(),
        Listing::Events => document::events_list(),
        Listing::Statistics => document::statistics_list(),
        Listing::Bundles => bundles(arguments)?,
        Listing::Tables => {
            let interrupt = Interrupt::install()?;
            let instance = database::open_to_read(&arguments.path, Settings::default(), &interrupt)?;
            let catalog = instance.catalog();
            tables(&catalog)
        }
    };
    if arguments.json {
        return output::print(&as_json(&rows)).map(|()| Outcome::Fine);
    }
    let text = match (&rows[..], arguments.what) {
        ([_], Listing::Tables) => "the database has no table\n".to_string(),
        ([_], Listing::Bundles) => "there are no bundles\n".to_string(),
        (rows, _) => aligned(rows),
    };
    output::print(&text).map(|()| Outcome::Fine)
}

/// A list of objects, whose names are those of the head.
fn as_json(rows: &[Vec<String>]) -> String {
    let Some((head, rows)) = rows.split_first() else { return "[]\n".to_string() };
    let object = |row: &Vec<String>| {
        let fields = head.iter().zip(row).map(|(name, value)| (name.to_lowercase(), value.trim().into()));
        serde_json::Value::Object(fields.collect())
    };
    let list = serde_json::Value::Array(rows.iter().map(object).collect());
    format!("{list:#}\n")
}

fn bundles(arguments: &List) -> Result<Vec<Vec<String>>, Failure> {
    let mut rows = vec![["BUNDLE", "KIND", "DATE", "SIZE", "SAYS"].map(String::from).to_vec()];
    for found in super::bundles::find(&arguments.path)? {
        let path = found.path.display().to_string();
        rows.push(vec![path, found.kind.to_string(), found.date, found.bytes.to_string(), found.headline]);
    }
    Ok(rows)
}

fn workloads() -> Vec<Vec<String>> {
    let row = |workload: &&Workload| {
        let parameter = |parameter: &Parameter| match parameter.default {
            Some(default) => format!("{}={default}", parameter.name),
            None => parameter.name.to_string(),
        };
        let parameters: Vec<String> = workload.parameters.iter().map(parameter).collect();
        vec![workload.name.to_string(), workload.help.to_string(), parameters.join(", ")]
    };
    let head = ["WORKLOAD", "DOES", "PARAMETERS"].map(String::from).to_vec();
    std::iter::once(head).chain(WORKLOADS.iter().map(row)).collect()
}

fn studies() -> Result<Vec<Vec<String>>, Failure> {
    let mut rows = vec![["STUDY", "ARMS", "BLOCKS", "ROWS", "ASKS"].map(String::from).to_vec()];
    for study in catalog::all(KINDS).map_err(LabError::from)? {
        let arms: usize = study.factors.iter().map(|factor| factor.levels.len()).product();
        let blocks = study.blocks.to_string();
        let size = if study.work.is_some() { RowCount(study.rows()).to_string() } else { "-".to_string() };
        rows.push(vec![study.name, arms.to_string(), blocks, size, study.title]);
    }
    for suite in catalog::SUITES {
        let studies = suite.studies.join(", ");
        let dash = || "-".to_string();
        let asks = format!("{} ({studies})", suite.title);
        rows.push(vec![suite.name.to_string(), dash(), dash(), dash(), asks]);
    }
    Ok(rows)
}

fn tables(catalog: &Catalog) -> Vec<Vec<String>> {
    let head =
        ["NAME", "KIND", "TABLESPACE", "ROWS", "DATA", "BLOCKS", "EXTENTS", "AVG ROW", "CHAINED", "COLUMNS"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for table in &catalog.tables {
        rows.push(vec![
            table.name.clone(),
            "table".to_string(),
            table.tablespace.name().to_string(),
            RowCount(table.row_count).to_string(),
            Bytes(table.row_bytes).to_string(),
            used_blocks(&table.extents),
            table.extents.len().to_string(),
            table.row_bytes.checked_div(table.row_count).map_or(String::new(), |mean| mean.to_string()),
            RowCount(table.chained_row_count).to_string(),
            described(&table.schema),
        ]);
        for index in catalog.indexes_of(&table.name) {
            rows.push(index_row(
                index,
                &table.schema.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>(),
            ));
        }
    }
    let bytes = |extents: &[SegmentExtent], tablespace: Purpose| {
        let entry = catalog.tablespaces.iter().find(|entry| entry.purpose == tablespace);
        let blocks = extents.iter().map(|piece| u64::from(piece.extent.blocks)).sum::<u64>();
        Bytes(blocks * entry.map_or(0, |entry| entry.block_size)).to_string()
    };
    for table in &catalog.live_tables {
        let names: Vec<String> = table.schema.columns.iter().map(|column| column.name.clone()).collect();
        // How many rows there are, and how long, nobody counts. None lies in several blocks.
        let row = |name: String,
                   (kind, tablespace, chained): (&str, Purpose, &str),
                   extents: &[SegmentExtent],
                   columns: String| {
            let blocks = extents.iter().map(|piece| u64::from(piece.extent.blocks)).sum();
            let (data, blocks) = (bytes(extents, tablespace), RowCount(blocks).to_string());
            let count = extents.len().to_string();
            let none = String::new;
            let (kind, tablespace) = (kind.to_string(), tablespace.name().to_string());
            vec![name, kind, tablespace, none(), data, blocks, count, none(), chained.to_string(), columns]
        };
        let columns = described(&table.schema);
        rows.push(row(
            table.name.clone(),
            ("table, transactions", table.tablespace, "0"),
            &table.extents,
            columns,
        ));
        for index in catalog.live_indexes.iter().filter(|index| index.table == table.name) {
            let kind = if index.unique { "unique index" } else { "index" };
            let columns = key(&index.columns, &names);
            rows.push(row(format!("  {}", index.name), (kind, Purpose::Indx, ""), &index.extents, columns));
        }
    }
    rows
}

fn index_row(index: &Index, names: &[String]) -> Vec<String> {
    let extents: Vec<SegmentExtent> = index.leaves.iter().chain(&index.branches).copied().collect();
    vec![
        format!("  {}", index.name),
        "index".to_string(),
        Purpose::Indx.name().to_string(),
        RowCount(index.entry_count).to_string(),
        String::new(),
        used_blocks(&extents),
        extents.len().to_string(),
        String::new(),
        String::new(),
        key(&index.columns, names),
    ]
}

/// Blocks in use of some extents.
fn used_blocks(extents: &[SegmentExtent]) -> String {
    RowCount(extents.iter().map(|extent| u64::from(extent.used)).sum()).to_string()
}

/// The columns of a table.
fn described(schema: &Schema) -> String {
    let columns = schema.columns.iter().map(|column| {
        let required = if column.nullable { "" } else { " NOT NULL" };
        format!("{} {}{required}", column.name, column.column_type)
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// The columns of a key.
fn key(columns: &[IndexColumn], names: &[String]) -> String {
    let columns = columns.iter().map(|column| {
        let name = names.get(column.position).map_or("?", String::as_str);
        format!("{name}{}", if column.descending { " desc" } else { "" })
    });
    columns.collect::<Vec<_>>().join(", ")
}
