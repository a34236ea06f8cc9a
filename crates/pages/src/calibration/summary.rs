//! A calibration on one screen: options, figures, methods, warnings.
//!
//! The report has the rest, above all the reasons of doubts.

use super::{interval, number, range};
use plumb_calibrate::{Calibration, MainFigure, Rung, RungState, Warning};
use plumb_report::Summary;
use plumb_units::{Bytes, Nanos};

/// Maximal length of lines composed here.
pub(super) const WIDTH: usize = 100;
/// Largest number of warnings shown; the record has all.
const WARNINGS_MAX: usize = 4;

/// A mark and a text that wraps after it; a composed line has no mark.
type Line = (String, String);

fn set(line: impl Into<String>) -> Line {
    (String::new(), line.into())
}

pub(super) fn summary(calibration: &Calibration) -> Summary {
    let environment = &calibration.environment;
    let mut lines = vec![heading(calibration)];
    lines.push(set(format!("{:<24}{:>15}  {:<21} {}", "", "median", "[low, high]", "? has not settled")));
    lines.extend(calibration.figures.iter().map(figure).map(set));
    let merge = calibration.read_cost.as_ref();
    let merge = merge.map(|cost| format!("of a merge: {}", cost.of_a_merge(Bytes(calibration.size_small))));
    lines.extend(merge.map(set));
    let small = (calibration.size_small, &calibration.ladder_small);
    let large = (calibration.size_large, &calibration.ladder_large);
    for (size, rungs) in [small, large] {
        lines.extend(ladder(&super::methods::requests(calibration, size), size, rungs).into_iter().map(set));
    }
    let optimizers = super::derived::optimizers(calibration);
    if !optimizers.is_empty() {
        lines.push(set(""));
    }
    let doubted = if calibration.doubts().is_empty() { "" } else { "IN DOUBT, do not set it yet: " };
    lines.extend(optimizers.iter().map(|(user, said)| (format!("{user:<11}"), format!("{doubted}{said}"))));
    lines.extend(optimizers.first().map(|_| (" ".repeat(11), super::derived::CAVEAT.to_string())));
    if let Some(plausibility) = &calibration.plausibility {
        lines.push(set(""));
        // Only the first two parts: the write cache and its flushes. The report has the doubts.
        let parts: Vec<&str> = plausibility.split("; ").take(2).collect();
        lines.push(("durable?  ".to_string(), parts.join("; ")));
    }
    lines.extend(warning_lines(&calibration.warnings));
    let subject = format!("calibration of {} at {}", environment.path, environment.date);
    Summary { subject, lines, facts: Vec::new() }
}

fn heading(calibration: &Calibration) -> Line {
    let environment = &calibration.environment;
    let access = if environment.direct { "direct" } else { "page cache" };
    let size = environment.disk_bytes.map_or(String::new(), |bytes| format!(" ({})", Bytes(bytes)));
    let how = format!(
        "{}{size}, {}, kernel {}; {} run, {}, {access}, file of {}, {} repeats of {} in {}, seed {}",
        environment.device,
        environment.file_system,
        environment.kernel,
        calibration.mode,
        environment.method,
        Bytes(calibration.file_bytes).as_setting(),
        calibration.repeats(),
        Nanos(calibration.task_time_ns),
        Nanos(calibration.elapsed_ns),
        calibration.seed
    );
    ("  ".to_string(), how)
}

/// Returns warnings that are not already a reason of the state above.
fn warning_lines(warnings: &[Warning]) -> Vec<Line> {
    let said = |warning: &&Warning| {
        !matches!(warning, Warning::OtherLoad { .. } | Warning::NotSettled { .. } | Warning::Cached { .. })
    };
    let said: Vec<String> = warnings.iter().filter(said).map(Warning::to_string).collect();
    let more = said.len().saturating_sub(WARNINGS_MAX);
    let mut lines: Vec<Line> = said.into_iter().map(|said| ("warning: ".to_string(), said)).collect();
    if more > 0 {
        lines.truncate(WARNINGS_MAX);
        lines.push(set(format!("         ... {more} more in the report")));
    }
    if !lines.is_empty() {
        lines.insert(0, set(""));
    }
    lines
}

fn figure(MainFigure { kind, estimate, at }: &MainFigure) -> String {
    // A figure of all threads continues the line above it.
    let name = kind.name().split_once(", by all").map_or(kind.name(), |_| "  by all threads");
    let mark = if estimate.settled { ' ' } else { '?' };
    let line = format!(
        "{name:<24}{:>9} {:<5}{mark}{:<21} {at}",
        number(estimate.median),
        kind.unit(),
        interval(estimate)
    );
    line.chars().take(WIDTH).collect()
}

fn ladder(requests: &str, size: u64, rungs: &[Rung]) -> Vec<String> {
    if rungs.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new()];
    let (mut rows, mut said, mut counted) = (Vec::new(), Vec::new(), "");
    for Rung { name, state } in rungs {
        match state {
            RungState::Measured { iops, cpu_micros, cycles, note, .. } => {
                let mark = if iops.settled { ' ' } else { '?' };
                counted = if cycles.is_some() { "  cycles/req" } else { counted };
                let cycles = cycles.as_ref().map_or(String::new(), |cycles| number(cycles.median));
                rows.push(format!(
                    "{name:<26}{:>9} {mark}{:<18}{:>11}  {:<14}{cycles:>12}",
                    number(iops.median),
                    range(iops),
                    number(cpu_micros.median),
                    range(cpu_micros),
                ));
                said.extend(note.iter().map(|note| format!("  {name}: {note}")));
            }
            RungState::Refused { why, .. } => said.push(format!("  {name}: {why}")),
        }
    }
    lines.push(format!(
        "{requests:<31}{}  {:<18}{:>11}  {:<14}{counted}",
        "IOPS", "[low, high]", "CPU us/req", "[low, high]"
    ));
    lines.extend(rows);
    // The reasons are the same for every size, so they are printed once.
    if size < Bytes::M {
        lines.extend(said.iter().map(|line| line.chars().take(WIDTH).collect::<String>()));
    }
    lines
}
