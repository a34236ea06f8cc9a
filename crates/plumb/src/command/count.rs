//! `plumb count`: rows of a table and sums of its columns, by one parallel scan.

use crate::arguments::CountRows;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outcome::Outcome;
use crate::{database, output, types};
use plumb_engine::view::predicate::Predicate;
use plumb_engine::view::totals::{Checksum, TotalsSpec, totals};
use plumb_engine::view::{ExtentShare, TableView, positions};
use plumb_events::Role;
use serde_json::{Value as Json, json};

/// Prints the number of rows that satisfy the condition, and a line for each sum.
pub fn run(arguments: &CountRows) -> Result<Outcome, Failure> {
    let interrupt = Interrupt::install()?;
    let instance = database::open_for(&arguments.path, &arguments.table, &interrupt)?;
    let session = instance.recorder.session(Role::User);
    let transactions = match database::is_live(&instance, &arguments.table) {
        true => Some(database::open_transactions(&instance, &session)?),
        false => None,
    };
    let view = TableView::open(&instance, transactions.as_ref(), &session, &arguments.table)?;
    let names = arguments.sum.as_deref().map_or_else(|| Ok(Vec::new()), types::parse_columns)?;
    let columns = positions(view.schema(), names.iter().map(|(name, _)| name.as_str()))?;
    let predicate = arguments.condition.as_deref().map(|text| Predicate::parse(text, view.schema()));
    let predicate = predicate.transpose()?;
    let spec = TotalsSpec {
        columns: &columns,
        predicate: predicate.as_ref(),
        checksum: Checksum::Skipped,
        share: ExtentShare::ALL,
    };
    let found = totals(&session, &view, spec)?;
    let named = || columns.iter().map(|place| view.schema().columns[*place].name.clone()).zip(&found.sums);
    if arguments.json {
        let sums = named().map(|(name, sum)| (name, Json::from(sum.to_string())));
        return output::print_json(&json!({
            "table": view.name(),
            "rows": found.row_count,
            "scanned": found.scanned,
            "sums": Json::Object(sums.collect()),
        }))
        .map(|()| Outcome::Fine);
    }
    let of = match predicate {
        Some(_) => format!(" of {}", output::counted(found.scanned, "row")),
        None => String::new(),
    };
    let sums: String = named().map(|(name, sum)| format!("sum of {name}: {sum}\n")).collect();
    output::print(&format!("{}{of}\n{sums}", output::counted(found.row_count, "row")))?;
    Ok(Outcome::Fine)
}
