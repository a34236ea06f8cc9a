//! Parameters of the workload and effective settings, changed ones first.

use plumb_record::{ParameterRow, SettingRow};
use plumb_report::table::{RowKind, Table};
use plumb_report::{Section, cells};

/// Width of descriptions in a run's report.
pub(super) const DESCRIPTION_WIDTH: usize = 50;

/// Shows the workload's parameters; `None` for a command without any, and for older records.
pub(super) fn parameters(parameters: &[ParameterRow]) -> Option<Section> {
    let mut table = Table::default().text(["Parameter Name"]).wrapped("Value", 24);
    for parameter in parameters {
        table.row(cells![&parameter.name, &parameter.value]);
    }
    let section = Section::detail("parameters", "Workload Parameters");
    let section = section.note("as `plumb run` takes them, each behind --; the defaults included");
    (!parameters.is_empty()).then(|| section.table(table))
}

/// Shows every setting; defaults come last.
pub(crate) fn settings(settings: &[SettingRow], title: &str, description_width: usize) -> Section {
    let mut table = Table::default()
        .text(["Parameter Name"])
        .wrapped("Value", 24)
        .wrapped("Set by", 20)
        .wrapped("Description", description_width);
    let mut settings = settings.iter().collect::<Vec<_>>();
    // The sort is stable: each half keeps the order of the settings.
    settings.sort_by_key(|setting| setting.is_default);
    for setting in settings {
        let (kind, source) = match setting.is_default {
            true => (RowKind::Quiet, "default"),
            false => (RowKind::Plain, setting.source.as_str()),
        };
        let value = match &setting.taken {
            Some(taken) => format!("{} ({taken})", setting.value),
            None => setting.value.clone(),
        };
        let cells = cells![&setting.name, value, source, &setting.description];
        table.push(kind, cells);
    }
    Section::detail("settings", title).note("those that were set first, then the defaults").table(table)
}
