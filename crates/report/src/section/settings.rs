//! The settings as the run had them, those that someone chose first.

use super::Section;
use crate::ReportContext;
use crate::table::{Cell, Column, RowKind, Table};

/// Every setting; defaults after those that were set.
pub(super) fn settings(context: &ReportContext) -> Section {
    let mut table = Table::new(vec![
        Column::text("Parameter Name"),
        Column::wrapped("Value", 24),
        Column::wrapped("Set by", 20),
        Column::wrapped("Description", 50),
    ]);
    let mut settings = context.settings.iter().collect::<Vec<_>>();
    // Stable: each half keeps the order in which the settings were given.
    settings.sort_by_key(|setting| setting.is_default);
    for setting in settings {
        let (kind, source) = match setting.is_default {
            true => (RowKind::Quiet, "default"),
            false => (RowKind::Plain, setting.source.as_str()),
        };
        let cells = vec![
            Cell::from(&setting.name),
            Cell::from(&setting.value),
            Cell::from(source),
            Cell::from(&setting.description),
        ];
        table.push(kind, cells);
    }
    Section::detail("settings", "init.ora Parameters")
        .note("those that were set first, then the defaults")
        .table(table)
}
