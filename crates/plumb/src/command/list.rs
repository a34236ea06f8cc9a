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
    let text = match arguments.what {
        Listing::Workloads => workloads(),
        Listing::Studies => studies()?,
        Listing::Settings => document::settings_list(),
        Listing::Events => document::events_list(),
        Listing::Statistics => document::statistics_list(),
        Listing::Tables => {
            let interrupt = Interrupt::install()?;
            let instance = database::open_to_read(&arguments.path, Settings::default(), &interrupt)?;
            let catalog = instance.catalog();
            tables(&catalog)
        }
    };
    output::print(&text).map(|()| Outcome::Fine)
}

fn workloads() -> String {
    let row = |workload: &&Workload| {
        let parameter = |parameter: &Parameter| match parameter.default {
            Some(default) => format!("{}={default}", parameter.name),
            None => parameter.name.to_string(),
        };
        let parameters: Vec<String> = workload.parameters.iter().map(parameter).collect();
        vec![workload.name.to_string(), workload.help.to_string(), parameters.join(", ")]
    };
    let head = ["WORKLOAD", "DOES", "PARAMETERS"].map(String::from).to_vec();
    aligned(&std::iter::once(head).chain(WORKLOADS.iter().map(row)).collect::<Vec<_>>())
}

fn studies() -> Result<String, Failure> {
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
        rows.push(vec![
            suite.name.to_string(),
            dash(),
            dash(),
            dash(),
            format!("{} ({studies})", suite.title),
        ]);
    }
    Ok(aligned(&rows))
}

fn tables(catalog: &Catalog) -> String {
    let head = ["NAME", "KIND", "ROWS", "DATA", "BLOCKS", "EXTENTS", "AVG ROW", "CHAINED", "COLUMNS"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for table in &catalog.tables {
        rows.push(vec![
            table.name.clone(),
            "table".to_string(),
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
    let block = catalog.tablespaces.first().map_or(0, |entry| entry.block_size);
    let bytes = |extents: &[SegmentExtent]| {
        Bytes(extents.iter().map(|piece| u64::from(piece.extent.blocks)).sum::<u64>() * block).to_string()
    };
    for table in &catalog.live_tables {
        let names: Vec<String> = table.schema.columns.iter().map(|column| column.name.clone()).collect();
        // How many rows there are, and how long, nobody counts. None lies in several blocks.
        let row = |name: String,
                   (kind, chained): (&str, &str),
                   extents: &[SegmentExtent],
                   columns: String| {
            let blocks = extents.iter().map(|piece| u64::from(piece.extent.blocks)).sum();
            let (data, blocks) = (bytes(extents), RowCount(blocks).to_string());
            let count = extents.len().to_string();
            let none = String::new;
            vec![name, kind.to_string(), none(), data, blocks, count, none(), chained.to_string(), columns]
        };
        let columns = described(&table.schema);
        rows.push(row(table.name.clone(), ("table, transactions", "0"), &table.extents, columns));
        for index in catalog.live_indexes.iter().filter(|index| index.table == table.name) {
            let kind = if index.unique { "unique index" } else { "index" };
            let columns = key(&index.columns, &names);
            rows.push(row(format!("  {}", index.name), (kind, ""), &index.extents, columns));
        }
    }
    if rows.len() == 1 { "the database has no table\n".to_string() } else { aligned(&rows) }
}

fn index_row(index: &Index, names: &[String]) -> Vec<String> {
    let extents: Vec<SegmentExtent> = index.leaves.iter().chain(&index.branches).copied().collect();
    vec![
        format!("  {}", index.name),
        "index".to_string(),
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
