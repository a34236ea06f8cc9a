//! Sections of this program's own reports that AWR does not have: the head `Run`, the settings that
//! a run took, and the host's CPU with a line for each state.

use crate::figure::{FigureUnit, read};
use crate::report::{ImportedRun, Report};
use crate::rounding::nanoseconds;
use crate::sheet::Cell;
use plumb_record::HostCpu;

/// Heading of the section with the facts of the run.
pub(super) const HEAD: &str = "Run";
/// Rows of the sizes of memory that are no area.
pub(super) const SUMS: [&str; 3] = ["Declared", "Stated overhead", "Peak resident set"];
/// Key of the load profile, whose units are not those of AWR.
pub(super) const LOAD: &str = "own_load_profile";

/// Fills in the facts of the section `Run`.
pub(super) fn head(report: &mut Report, run: &mut ImportedRun) {
    let Some(sheet) = report.sheet("run") else { return };
    let Some(row) = sheet.rows.first() else { return };
    run.workload = sheet.text(row, "workload").to_string();
    run.title = format!("IMPORTED PLUMB REPORT  Workload: {}", run.workload);
    let columns = sheet.columns.iter().map(|column| column.name.clone());
    let mut facts: Vec<(String, Cell)> = columns.zip(row.cells.iter().cloned()).collect();
    let pairs = report.sheets.iter().filter(|sheet| sheet.heading == HEAD && sheet.columns.len() == 2);
    for row in pairs.flat_map(|sheet| &sheet.rows) {
        let [name, value] = row.cells.as_slice() else { continue };
        let name = name.raw.trim_end_matches(':');
        match name {
            "Begin" => run.begin.clone_from(&value.raw),
            "End" => run.end.clone_from(&value.raw),
            "Elapsed" => run.elapsed = Some(seconds(value)),
            "DB Time" => run.db_time = Some(seconds(value)),
            _ => {}
        }
        facts.push((name.to_string(), value.clone()));
    }
    facts.iter().for_each(|(name, cell)| report.fact(name, cell));
}

/// Parses the seconds of `30.00 (secs)  0.50 (mins)`.
pub(super) fn seconds(cell: &Cell) -> Cell {
    let raw = cell.raw.split_inclusive(')').next().unwrap_or("").to_string();
    Cell { reading: read(&raw, FigureUnit::S), raw, line: cell.line }
}

/// Splits a setting `auto (threads)` into its value and the one that the run took.
pub(super) fn value_and_taken(printed: &str) -> (&str, Option<&str>) {
    let both = printed.strip_suffix(')').and_then(|text| text.split_once(" ("));
    both.map_or((printed, None), |(value, taken)| (value, Some(taken)))
}

/// Returns the host's CPU times, which have a line for each state.
pub(super) fn host_cpu(report: &Report) -> Option<HostCpu> {
    let sheet = report.sheet("host_cpu")?;
    let of = |state: &str| {
        let row = sheet.rows.iter().find(|row| sheet.text(row, "state") == state)?;
        Some(nanoseconds(sheet.figure(row, "time")?.value))
    };
    let load = |name: &str| {
        let behind = |note: &str| note.split_once(name)?.1.split(',').next()?.trim().parse::<f64>().ok();
        sheet.notes.iter().find_map(|note| behind(&note.text))
    };
    Some(HostCpu {
        user_ns: of("User")?,
        system_ns: of("System")?,
        iowait_ns: of("I/O wait")?,
        steal_ns: of("Steal")?,
        idle_ns: of("Idle")?,
        load_begin: load("at the start"),
        load_end: load("at the end"),
    })
}
