//! One figure over runs: its steps of level, and the geometric mean of each, with its interval.
//!
//! Steps are those of `plumb_proof::series`, of the figure's logarithm. A run without the figure,
//! or with none above zero, is left out: a gap is a gap and never a zero.
//!
//! Limits: the interval of a mean takes the runs of a level as independent. Neighbours that are
//! alike make it too narrow, while the steps allow for them.

use crate::series::{Member, SEED};
use plumb_proof::change_point::ChangePoint;
use plumb_proof::series::{REPORTS_MIN, STEP_P, steps};
use plumb_proof::student::interval;
use plumb_record::figures::FigureRow;
use plumb_report::format::{Figure, Reading};
use plumb_report::plot::{Axis, Mark, Plot, Series, Stroke, short_count};
use plumb_report::table::{Column, Table, Tone};
use plumb_report::{Document, Drawing, ReportAnswer, Section, State, Summary, cells, text};
use serde_json::json;
use std::ops::Range;

/// A run that has the figure.
struct Point<'m> {
    name: &'m str,
    begin: &'m str,
    value: f64,
}

/// The runs between two steps.
struct Level {
    runs: Range<usize>,
    /// Geometric mean: steps are ratios, and an interval never goes below zero.
    mean: f64,
    /// Ends of the 95% interval; `None` for a single run.
    range: Option<(f64, f64)>,
}

/// Builds the report of a figure over runs in the order of time. Fails if no run has it.
pub fn document(members: &[Member<'_>], row: &FigureRow, version: &str) -> Result<Document, String> {
    let point = |member: &Member<'_>| row.of(member.record).filter(|value| *value > 0.0);
    let has = |member| point(member).map(|value| (member, value));
    let points: Vec<Point<'_>> = members
        .iter()
        .filter_map(has)
        .map(|(member, value)| Point { name: &member.name, begin: &member.record.header.begin_time, value })
        .collect();
    if points.is_empty() {
        return Err(format!("none of {} runs has the figure {} above 0", members.len(), row.name));
    }
    let logarithms: Vec<f64> = points.iter().map(|point| point.value.ln()).collect();
    let changes = steps(&logarithms, SEED);
    let levels = levels(&points, &changes);
    let (word, tone) = match changes.len() {
        0 if points.len() < REPORTS_MIN => {
            (format!("TOO FEW RUNS: {} of {REPORTS_MIN}", points.len()), Tone::Open)
        }
        0 => ("NO STEP FOUND".to_string(), Tone::Good),
        1 => ("1 CHANGE".to_string(), Tone::Open),
        count => (format!("{count} CHANGES"), Tone::Open),
    };
    let workload = members.first().map_or("", |member| member.record.header.workload.as_str());
    let left_out = members.len() - points.len();
    let reasons = (left_out > 0).then(|| format!("{left_out} of {} runs lack the figure", members.len()));
    let data = json!({
        "figure": row.name,
        "unit": row.unit,
        "runs": points.iter().map(|point| json!({ "bundle": point.name, "begin": point.begin, "value": point.value }))
            .collect::<Vec<_>>(),
        "changes": changes.iter().map(|change| json!({ "first_run": change.index + 1, "ratio": change.shift.exp(), "p": change.p }))
            .collect::<Vec<_>>(),
        "levels": levels.iter().map(|level| json!({ "first_run": level.runs.start + 1, "last_run": level.runs.end,
            "mean": level.mean, "low": level.range.map(|range| range.0), "high": level.range.map(|range| range.1) }))
            .collect::<Vec<_>>(),
    });
    Ok(Document {
        title: format!("SERIES  {} of {workload}, {} runs", row.name, points.len()),
        answer: ReportAnswer::default(),
        question: String::new(),
        running_head: format!("Series: {} of {workload}", row.name),
        width: text::WIDTH,
        state: State { of: "Series".to_string(), word, tone },
        basis: format!(
            "a step of 5% at least, at p = {STEP_P}, against runs that grow steadily or resemble the run before"
        ),
        reasons: reasons.into_iter().collect(),
        headline: Vec::new(),
        sections: vec![
            level_section(&levels, row).drawings(vec![picture(&points, &levels, &changes, row)]),
            runs_section(&points, row),
        ],
        summary: Summary::default(),
        footer: format!("plumb {version}"),
        data: data.to_string(),
    })
}

fn levels(points: &[Point<'_>], changes: &[ChangePoint]) -> Vec<Level> {
    let starts = std::iter::once(0).chain(changes.iter().map(|change| change.index));
    let ends = changes.iter().map(|change| change.index).chain([points.len()]);
    let level = |(start, end): (usize, usize)| {
        let logarithms: Vec<f64> = points[start..end].iter().map(|point| point.value.ln()).collect();
        let range = interval(&logarithms, 0.05).map(|found| (found.low.exp(), found.high.exp()));
        let mean = (logarithms.iter().sum::<f64>() / logarithms.len().max(1) as f64).exp();
        Level { runs: start..end, mean, range }
    };
    starts.zip(ends).map(level).collect()
}

fn picture(points: &[Point<'_>], levels: &[Level], changes: &[ChangePoint], row: &FigureRow) -> Drawing {
    let x = |at: usize| (at + 1) as f64;
    let mark = |(at, point): (usize, &Point<'_>)| Mark {
        x: x(at),
        y: point.value,
        ringed: changes.iter().any(|change| change.index == at),
        hint: format!("run {}, {}: {} {}", at + 1, point.begin, Reading(point.value).figure(), row.unit),
        ..Mark::default()
    };
    let ends = |level: &Level| {
        let mark = |at: usize| Mark { x: x(at), y: level.mean, y_range: level.range, ..Mark::default() };
        [mark(level.runs.start), mark(level.runs.end - 1)]
    };
    let values = points.iter().enumerate().map(mark).collect();
    let series = vec![
        Series { name: row.name.to_string(), colour: 0, stroke: Stroke::Line, marks: values },
        Series {
            name: "mean of a level".to_string(),
            colour: 1,
            stroke: Stroke::Dashed,
            marks: levels.iter().flat_map(ends).collect(),
        },
    ];
    let highest = points.iter().map(|point| point.value).fold(0.0, f64::max);
    let unit =
        if row.unit.is_empty() { row.name.to_string() } else { format!("{} ({})", row.name, row.unit) };
    Drawing::Plot(Plot {
        title: "The figure of each run; a ring marks the first one after a change".to_string(),
        x: Axis::linear("run", points.len() as f64, short_count),
        y: Axis::linear(&unit, highest, short_reading),
        series,
    })
}

fn short_reading(value: f64) -> String {
    Reading(value).short()
}

fn level_section(levels: &[Level], row: &FigureRow) -> Section {
    let unit = |title: &str| {
        if row.unit.is_empty() { title.to_string() } else { format!("{title}\n({})", row.unit) }
    };
    let mut table = Table::default().numbers(["First run", "Last run"]);
    for title in ["Geometric mean", "Low", "High"] {
        table = table.column(Column::number(unit(title)));
    }
    for level in levels {
        let end = |end: Option<f64>| end.map_or(String::new(), |value| Reading(value).figure());
        table.row(cells![
            (level.runs.start + 1).to_string(),
            level.runs.end.to_string(),
            Reading(level.mean).figure(),
            end(level.range.map(|range| range.0)),
            end(level.range.map(|range| range.1))
        ]);
    }
    Section::front("levels", "Levels")
        .note("Low and High are the 95% interval of the geometric mean, as if runs were independent")
        .table(table)
}

fn runs_section(points: &[Point<'_>], row: &FigureRow) -> Section {
    let mut table = Table::default()
        .numbers(["#"])
        .text(["Begin"])
        .numbers([row.name])
        .column(Column::wrapped("Bundle", 60));
    for (at, point) in points.iter().enumerate() {
        table.row(cells![(at + 1).to_string(), point.begin, Reading(point.value).figure(), point.name]);
    }
    Section::front("runs", "Runs in Order").table(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::fixture;
    use plumb_record::Record;
    use plumb_record::figures::{ELAPSED, FIGURES};

    #[test]
    fn a_step_of_the_elapsed_time_is_found_and_a_gap_is_no_zero() {
        let row = FIGURES.iter().find(|row| row.name == ELAPSED).expect("the figure");
        let run = |at: u64| {
            let mut record = fixture::empty();
            record.header.begin_time = format!("2024-05-{:02} 10:00:00", at + 1);
            record.header.elapsed_ns =
                if at == 3 { 0 } else { 1_000_000_000 * (100 + (at * 7) % 5 + 40 * u64::from(at >= 12)) };
            record
        };
        let records: Vec<Record> = (0..24).map(run).collect();
        let members: Vec<Member<'_>> =
            records.iter().map(|record| Member { name: "<b>".to_string(), record }).collect();
        let document = document(&members, row, "0").expect("a document");
        assert_eq!(document.state.word, "1 CHANGE");
        let data: serde_json::Value = serde_json::from_str(&document.data).expect("JSON");
        assert_eq!(data["runs"].as_array().map(Vec::len), Some(23));
        assert_eq!(data["changes"][0]["first_run"], 12);
        let high = data["levels"][0]["high"].as_f64().expect("an end");
        assert!((101.0..105.0).contains(&high), "{data}");
        assert!(!plumb_report::html::render(&document).contains("<b>"));
    }
}
