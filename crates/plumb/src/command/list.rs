//! `plumb list`: the rows of each table of the program, and a directory's tables and bundles.

use crate::arguments::{List, Listing};
use crate::command::serve::PROGRAM;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::output::{self, aligned_under_head, sentences_under_head};
use crate::targets::KINDS;
use crate::{database, document};
use plumb_engine::Settings;
use plumb_engine::storage::control::{Catalog, Index, IndexColumn, SegmentExtent};
use plumb_engine::storage::tablespace::Purpose;
use plumb_pages::list::{self, Field, RowList};
use plumb_serve::Health;
use plumb_study::StudyError;
use plumb_study::bundle::listing;
use plumb_study::definition::catalog;
use plumb_types::Schema;
use plumb_workload::{Parameter, WORKLOADS, Workload};

/// Prints the list as columns or JSON. Fails if tables are requested and there is no database.
pub fn run(arguments: &List) -> Result<Outcome, Failure> {
    let mut list = match arguments.what {
        Listing::Workloads => workloads(),
        Listing::Studies => studies()?,
        Listing::Claims => claims()?,
        Listing::Settings => list::settings(),
        Listing::Events => list::events(),
        Listing::Statistics => RowList::of_texts(document::statistics_list()),
        Listing::Streams => RowList::of_texts(document::streams_list()),
        Listing::Rules => RowList::of_texts(document::rules_list()),
        Listing::Reasons => RowList::of_texts(document::reasons_list()),
        Listing::Bundles if arguments.health => {
            Health::of(&PROGRAM, std::slice::from_ref(&arguments.path))?.list()
        }
        Listing::Bundles => list::bundles(&listing::find(&arguments.path, KINDS)?),
        Listing::Tables => {
            let interrupt = Interrupt::install()?;
            let instance = database::open_to_read(&arguments.path, Settings::default(), &interrupt)?;
            let catalog = instance.catalog();
            tables(&catalog)
        }
    };
    let all = list.rows.len();
    list.rows.retain(|row| arguments.having.iter().all(|text| row.iter().any(|field| field.has(text))));
    if arguments.json {
        return output::print(&list.to_json()).map(|()| Outcome::Fine);
    }
    let RowList { head, rows } = list;
    let text = match arguments.what {
        _ if rows.is_empty() && all > 0 => format!("none of {all} rows has that\n"),
        Listing::Tables if rows.is_empty() => "the database has no table\n".to_string(),
        Listing::Bundles if rows.is_empty() => "there are no bundles\n".to_string(),
        _ => {
            let shown = rows.into_iter().map(|row| row.into_iter().map(|field| field.shown).collect());
            let rows: Vec<_> = std::iter::once(head).chain(shown).collect();
            match arguments.what {
                Listing::Rules => sentences_under_head(&rows),
                _ => aligned_under_head(&rows),
            }
        }
    };
    output::print(&text).map(|()| Outcome::Fine)
}

fn workloads() -> RowList {
    let row = |workload: &&Workload| {
        let parameter = |parameter: &Parameter| match parameter.default {
            Some(default) => format!("{}={default}", parameter.name),
            None => parameter.name.to_string(),
        };
        let parameters: Vec<String> = workload.parameters.iter().map(parameter).collect();
        vec![workload.name.into(), workload.help.into(), parameters.join(", ").into()]
    };
    RowList::new(&["WORKLOAD", "DOES", "PARAMETERS"], WORKLOADS.iter().map(row).collect())
}

fn studies() -> Result<RowList, Failure> {
    let mut rows = Vec::new();
    for study in catalog::all(KINDS).map_err(StudyError::from)? {
        let arms: usize = study.factors.iter().map(|factor| factor.levels.len()).product();
        let size = if study.work.is_some() { Field::count(study.rows()) } else { Field::none("-") };
        let blocks = Field::count(study.blocks as u64);
        rows.push(vec![study.name.into(), Field::count(arms as u64), blocks, size, study.title.into()]);
    }
    for suite in catalog::SUITES {
        let asks = format!("{} ({})", suite.title, suite.studies.join(", "));
        let [arms, blocks, size] = [(); 3].map(|()| Field::none("-"));
        rows.push(vec![suite.name.into(), arms, blocks, size, asks.into()]);
    }
    Ok(RowList::new(&["STUDY", "ARMS", "BLOCKS", "ROWS", "ASKS"], rows))
}

fn claims() -> Result<RowList, Failure> {
    let claims = plumb_audit::catalog::all().map_err(|error| Failure::run(error.to_string()))?;
    let row = |claim: plumb_audit::PublishedClaim| {
        let source = claim.source;
        let columns = [claim.name, source.date, source.author, claim.statement];
        columns.map(Field::from).into_iter().collect()
    };
    Ok(RowList::new(&["CLAIM", "DATE", "AUTHOR", "SAYS"], claims.into_iter().map(row).collect()))
}

fn tables(catalog: &Catalog) -> RowList {
    let head =
        ["NAME", "KIND", "TABLESPACE", "ROWS", "DATA", "BLOCKS", "EXTENTS", "AVG ROW", "CHAINED", "COLUMNS"];
    let mut rows = Vec::new();
    for table in &catalog.tables {
        let mean = table.row_bytes.checked_div(table.row_count);
        rows.push(vec![
            table.name.as_str().into(),
            "table".into(),
            table.tablespace.name().into(),
            Field::count(table.row_count),
            Field::bytes(table.row_bytes),
            used_blocks(&table.extents),
            Field::count(table.extents.len() as u64),
            mean.map_or(Field::none(""), Field::count),
            Field::count(table.chained_row_count),
            described(&table.schema).into(),
        ]);
        let names = names(&table.schema);
        rows.extend(catalog.indexes_of(&table.name).map(|index| index_row(index, &names)));
    }
    let bytes = |tablespace: Purpose, blocks: u64| {
        let entry = catalog.tablespaces.iter().find(|entry| entry.purpose == tablespace);
        Field::bytes(blocks * entry.map_or(0, |entry| entry.block_size))
    };
    for table in &catalog.live_tables {
        let names = names(&table.schema);
        // Rows, their lengths and pieces are not counted here: `plumb check` counts them.
        let row = |name: String,
                   (kind, tablespace): (&str, Purpose),
                   extents: &[SegmentExtent],
                   columns: String| {
            let blocks: u64 = extents.iter().map(|piece| u64::from(piece.extent.blocks)).sum();
            let (data, blocks) = (bytes(tablespace, blocks), Field::count(blocks));
            let [rows, mean, chained] = [(); 3].map(|()| Field::none(""));
            let count = Field::count(extents.len() as u64);
            let place = tablespace.name().into();
            vec![name.into(), kind.into(), place, rows, data, blocks, count, mean, chained, columns.into()]
        };
        let kind = ("table, transactions", table.tablespace);
        rows.push(row(table.name.clone(), kind, &table.extents, described(&table.schema)));
        for index in catalog.live_indexes.iter().filter(|index| index.table == table.name) {
            let kind = if index.unique { "unique index" } else { "index" };
            let kind = (kind, Purpose::Indx);
            rows.push(row(format!("  {}", index.name), kind, &index.extents, key(&index.columns, &names)));
        }
    }
    RowList::new(&head, rows)
}

fn names(schema: &Schema) -> Vec<String> {
    schema.columns.iter().map(|column| column.name.clone()).collect()
}

fn index_row(index: &Index, names: &[String]) -> Vec<Field> {
    let extents: Vec<SegmentExtent> = index.leaves.iter().chain(&index.branches).copied().collect();
    let none = || Field::none("");
    vec![
        format!("  {}", index.name).into(),
        "index".into(),
        Purpose::Indx.name().into(),
        Field::count(index.entry_count),
        none(),
        used_blocks(&extents),
        Field::count(extents.len() as u64),
        none(),
        none(),
        key(&index.columns, names).into(),
    ]
}

/// Returns the blocks of some extents.
fn used_blocks(extents: &[SegmentExtent]) -> Field {
    Field::count(extents.iter().map(|extent| u64::from(extent.used)).sum())
}

/// Formats the columns of a table.
fn described(schema: &Schema) -> String {
    let columns = schema.columns.iter().map(|column| {
        let required = if column.nullable { "" } else { " NOT NULL" };
        format!("{} {}{required}", column.name, column.column_type)
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// Formats the columns of a key.
fn key(columns: &[IndexColumn], names: &[String]) -> String {
    let columns = columns.iter().map(|column| {
        let name = names.get(column.position).map_or("?", String::as_str);
        format!("{name}{}", if column.descending { " desc" } else { "" })
    });
    columns.collect::<Vec<_>>().join(", ")
}
