//! The summary: a calibration on one screen of forty lines.
//!
//! What it leaves out, the reasons of doubts above all, stands in the report.

use crate::plan::{LADDER_OUTSTANDING, LARGE_OUTSTANDING};
use crate::{Calibration, Estimate, Figure, Interval, Rung, RungState};
use plumb_units::{Bytes, Nanos, RowCount};

/// Lines are no longer than this.
const WIDTH: usize = 100;
/// Warnings take no more lines than this; all stand in the record.
const WARNING_LINES_MAX: usize = 6;

impl Calibration {
    /// What a screen holds: the figures, the methods, what is suspicious.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut lines = self.heading();
        lines.push(format!("{:<26}{:>15}  {:<21} {}", "", "median", "[low, high]", "? has not settled"));
        lines.extend(self.figures.iter().map(figure));
        if let Some(cost) = &self.read_cost {
            let block = Bytes(self.size_small);
            let area = Bytes(32 * Bytes::M);
            lines.push(format!(
                "a merge of {} blocks: sort_read_fac {}, so {} runs at once in a sort area of {}",
                block.as_setting(),
                cost.sort_read_fac(block),
                cost.merge_width(area, block),
                area.as_setting()
            ));
        }
        let small = (self.size_small, LADDER_OUTSTANDING, &self.ladder_small);
        let large = (self.size_large, LARGE_OUTSTANDING, &self.ladder_large);
        for (size, outstanding, rungs) in [small, large] {
            lines.extend(ladder(size, outstanding, rungs));
        }
        if let Some(plausibility) = &self.plausibility {
            lines.push(String::new());
            // What is said of it and of its flushes; doubts follow, and stand in the report.
            let parts: Vec<&str> = plausibility.split("; ").take(2).collect();
            lines.extend(wrapped("durable?  ", &parts.join("; ")));
        }
        lines.extend(self.warning_lines());
        lines.join("\n") + "\n"
    }

    fn heading(&self) -> Vec<String> {
        let environment = &self.environment;
        let direct_io = if environment.direct { "direct" } else { "page cache" };
        let size = environment.disk_bytes.map_or(String::new(), |bytes| format!(" ({})", Bytes(bytes)));
        let device = format!(
            "{}{size}, {} on {}, kernel {}",
            environment.device, environment.file_system, environment.path, environment.kernel
        );
        let how = format!(
            "{} run, {}, {}, file of {}, {} repeats of {} in {}, seed {}",
            self.mode,
            environment.method,
            direct_io,
            Bytes(self.file_bytes).as_setting(),
            self.tasks.iter().map(|result| result.repeats.len()).sum::<usize>(),
            Nanos(self.task_time_ns),
            Nanos(self.elapsed_ns),
            self.seed
        );
        let mut lines = wrapped(&format!("Calibration {}: ", environment.date), &device);
        lines.extend(wrapped("  ", &how));
        lines
    }

    fn warning_lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.warnings.iter().flat_map(|warning| wrapped("warning: ", &warning.to_string())).collect();
        let more = lines.len().saturating_sub(WARNING_LINES_MAX);
        if more > 0 {
            lines.truncate(WARNING_LINES_MAX);
            lines.push(format!("         ... {more} more lines of warnings in the record"));
        }
        if !lines.is_empty() {
            lines.insert(0, String::new());
        }
        lines
    }
}

fn figure(figure: &Figure) -> String {
    let kind = figure.kind;
    let mark = if figure.estimate.settled { ' ' } else { '?' };
    let line = format!(
        "{:<26}{:>9} {:<5}{mark}{:<21} {}",
        kind.name(),
        number(figure.estimate.median),
        kind.unit(),
        interval(&figure.estimate),
        figure.at
    );
    line.chars().take(WIDTH).collect::<String>().trim_end().to_string()
}

fn interval(estimate: &Estimate) -> String {
    let bracket = match estimate.interval {
        Interval::Range => "",
        Interval::Confidence(_) => " 95%",
    };
    range(estimate) + bracket
}

fn range(estimate: &Estimate) -> String {
    format!("[{}, {}]", number(estimate.low), number(estimate.high))
}

/// Three figures of small numbers, thousands grouped in large ones.
fn number(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => RowCount(v.round() as u64).to_string(),
    }
}

fn ladder(size: u64, outstanding: usize, rungs: &[Rung]) -> Vec<String> {
    if rungs.is_empty() {
        return Vec::new();
    }
    let counted = rungs.iter().any(|rung| matches!(rung.state, RungState::Measured { cycles: Some(_), .. }));
    let head = format!("method, {} read x{outstanding}", Bytes(size).as_setting());
    let cycles = if counted { format!("{:>12}", "cycles/req") } else { String::new() };
    let mut lines = vec![
        String::new(),
        format!(
            "{head:<28}{:>9}  {:<19}{:>12}  {:<14}{cycles}",
            "IOPS", "[low, high]", "CPU us/req", "[low, high]"
        )
        .trim_end()
        .to_string(),
    ];
    let mut said = Vec::new();
    for Rung { name, state } in rungs {
        match state {
            RungState::Measured { iops, cpu_micros, cycles, note, .. } => {
                let mark = if iops.settled { ' ' } else { '?' };
                let cycles =
                    cycles.as_ref().map_or(String::new(), |cycles| format!("{:>12}", number(cycles.median)));
                let line = format!(
                    "{name:<28}{:>9} {mark}{:<19}{:>12}  {:<14}{cycles}",
                    number(iops.median),
                    range(iops),
                    number(cpu_micros.median),
                    range(cpu_micros),
                );
                lines.push(line.trim_end().to_string());
                said.extend(note.iter().map(|note| format!("{name}: {note}")));
            }
            RungState::Refused { why, .. } => said.push(format!("{name}: {why}")),
        }
    }
    // The reasons are the same for every size: said once.
    if size < Bytes::M {
        lines.extend(said.iter().map(|line| format!("  {line}").chars().take(WIDTH).collect::<String>()));
    }
    lines
}

/// Breaks at blanks; further lines are indented by as much as the first one's label.
fn wrapped(label: &str, text: &str) -> Vec<String> {
    let indent = label.len().min(10);
    let mut lines = vec![label.to_string()];
    for word in text.split_whitespace() {
        let Some(last) = lines.last_mut() else { break };
        let fits = last.trim_end().len() + 1 + word.len() <= WIDTH;
        if fits || last.trim().is_empty() {
            if !last.ends_with(' ') && !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        } else {
            lines.push(format!("{}{word}", " ".repeat(indent)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::calibration;
    use crate::{Disagreement, FigureKind};

    #[test]
    fn a_summary_fits_a_screen() {
        let summary = calibration().summary();
        assert!(summary.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(summary.lines().count() <= 40);
        insta::assert_snapshot!(summary);
    }

    #[test]
    fn a_later_figure_is_a_share_of_the_limit() {
        let share = calibration().share(FigureKind::SequentialRead, 980.1);
        assert!(share.is_some_and(|share| (share - 0.81).abs() < 1e-9), "{share:?}");
        assert_eq!(calibration().share(FigureKind::RandomWrite, 1.0), None);
    }

    #[test]
    fn two_calibrations_that_differ_say_why() {
        let (first, mut second) = (calibration(), calibration());
        for figure in &mut second.figures {
            figure.estimate.median *= 1.2;
        }
        let found = first.agreement(&second);
        assert!(found.iter().all(|agreement| !agreement.agrees));
        assert_eq!(found[0].why, Some(Disagreement::DeviceChanged));
        assert_eq!(found[2].why, Some(Disagreement::Unsettled));
        second.figures[0].at = "elsewhere".to_string();
        assert_eq!(first.agreement(&second)[0].why, Some(Disagreement::FoundElsewhere));
    }
}
