//! Origin of a proved difference: its parts, which sum to it, and the bytes over time.
//!
//! Shares are of the whole difference, and blank if its interval includes 0.
//!
//! The unaccounted part is the remainder of the elapsed times; it is computed here, so that the sum
//! holds for any analysis. The drawing walks from the reference's time to the treatment's: each bar
//! starts where the one before it ended.

use crate::run::moved;
use plumb_report::axis::LinearAxis;
use plumb_report::format::{Figure, Percent, SignedMillis, grouped};
use plumb_report::profile::{Chart, PairChart, Side, Stream, axis_end};
use plumb_report::table::{BarKind, Cell, Column, Drawing, RowKind, Table, Tone};
use plumb_report::{Block, Section};
use plumb_study::analysis::result::{Analysis, EndsNanos, ProfilePair, RunProfile, Why};
use plumb_units::Nanos;

/// Name of the time without any instrument.
const UNACCOUNTED: &str = "unaccounted";
/// Share of the difference above which the unaccounted part is marked.
const UNACCOUNTED_SHARE_MAX: f64 = 0.2;

/// Parts of a difference, nanoseconds on either side; they sum to the elapsed times.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Parts {
    /// The largest change first, the unaccounted part last.
    pub rows: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// CPU, an event, or the unaccounted rest.
    pub name: String,
    /// Empty for CPU and the unaccounted rest.
    pub wait_class: String,
    pub reference_ns: i64,
    pub treatment_ns: i64,
    /// Interval of the difference; `None` for the unaccounted rest.
    pub ends: Option<EndsNanos>,
}

impl Part {
    /// Returns its part of the difference, nanoseconds.
    pub(crate) fn difference_ns(&self) -> i64 {
        self.treatment_ns - self.reference_ns
    }
}

impl Parts {
    /// Returns the parts with the unaccounted rest.
    pub(crate) fn of(why: &Why) -> Parts {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let part = |part: &plumb_study::analysis::result::WhyPart| Part {
            name: part.name.clone(),
            wait_class: part.wait_class.clone(),
            reference_ns: signed(part.reference_ns),
            treatment_ns: signed(part.treatment_ns),
            ends: part.ends,
        };
        let mut rows = why.parts.iter().map(part).collect::<Vec<_>>();
        rows.sort_by_key(|part| (std::cmp::Reverse(part.difference_ns().abs()), part.name.clone()));
        let rest = |elapsed: u64, of: fn(&Part) -> i64| signed(elapsed) - rows.iter().map(of).sum::<i64>();
        let unaccounted = Part {
            name: UNACCOUNTED.to_string(),
            wait_class: String::new(),
            reference_ns: rest(why.reference_elapsed_ns, |part| part.reference_ns),
            treatment_ns: rest(why.treatment_elapsed_ns, |part| part.treatment_ns),
            ends: None,
        };
        rows.push(unaccounted);
        Parts { rows }
    }

    pub(crate) fn difference_ns(&self) -> i64 {
        self.rows.iter().map(Part::difference_ns).sum()
    }
}

/// Shows the parts of every proved difference; `None` without one.
pub(super) fn why(analysis: &Analysis) -> Option<Section> {
    let explained =
        analysis.claims.iter().enumerate().filter_map(|(index, claim)| Some((index, claim.why.as_ref()?)));
    let mut section = Section::front("why", "Why").note(
        "the mean elapsed time of either side as CPU, waits and an unaccounted rest; differences sum to the whole difference; intervals are over blocks, each alone",
    );
    let mut bases: Vec<&str> = Vec::new();
    for (index, why) in explained {
        if !bases.contains(&why.basis.as_str()) {
            bases.push(&why.basis);
            section = section.note(&why.basis);
        }
        let name = analysis.claims.get(index).map_or("", |claim| claim.name.as_str());
        let caption = format!("{} {name}: {} against {}", index + 1, why.treatment, why.reference);
        let (caption, unit) = match &why.per {
            Some(operation) => (
                format!("{caption}, per {operation}, as both ran for the same time"),
                TimeUnit::of_operation(why.reference_elapsed_ns.max(why.treatment_elapsed_ns)),
            ),
            None => (caption, TimeUnit::SECONDS),
        };
        let table = difference(why, ["Reference", "Treatment"], "Elapsed", unit);
        section = section.table(table.with_caption(caption));
        if let Some(phases) = phases(why) {
            section = section.table(phases.with_caption("The same by phase"));
        }
    }
    (!section.blocks.is_empty()).then_some(section)
}

/// Unit of the times of one table, printed with three decimals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeUnit {
    pub short: &'static str,
    long: &'static str,
    ns: f64,
}

impl TimeUnit {
    pub(crate) const SECONDS: TimeUnit = TimeUnit { short: "s", long: "seconds", ns: 1e9 };

    /// Returns the largest unit of which a time has one or more.
    pub(crate) fn of_operation(longest_ns: u64) -> TimeUnit {
        match longest_ns {
            0..1_000_000 => TimeUnit { short: "us", long: "microseconds", ns: 1e3 },
            1_000_000..1_000_000_000 => TimeUnit { short: "ms", long: "milliseconds", ns: 1e6 },
            _ => TimeUnit::SECONDS,
        }
    }

    /// Prints a time in this unit, with its sign.
    pub(crate) fn shown(self, ns: i64) -> String {
        grouped(ns as f64 / self.ns, 3)
    }
}

/// Shows one difference and its parts, under the names of both sides; `whole` heads the last row.
pub(crate) fn difference(why: &Why, sides: [&str; 2], whole: &str, unit: TimeUnit) -> Table {
    let parts = Parts::of(why);
    let total_ns = parts.difference_ns();
    let mut sums = vec![why.reference_elapsed_ns as f64];
    for part in &parts.rows {
        sums.push(sums.last().copied().unwrap_or(0.0) + part.difference_ns() as f64);
    }
    let axis = LinearAxis::over(&sums.iter().map(|ns| ns / unit.ns).collect::<Vec<_>>());
    let place = |ns: f64| axis.position(ns / unit.ns);
    let short = unit.short;
    let heading = if axis.is_cut() { format!("{short}, not from 0") } else { unit.long.to_string() };
    let mut table = Table::default()
        .wrapped("Part", 24)
        .text(["Wait Class"])
        .column(Column::number(format!("{}\n({short})", sides[0])))
        .column(Column::number(format!("{}\n({short})", sides[1])))
        .column(Column::number(format!("Difference\n({short})")))
        .column(Column::number(format!("95% interval\n({short})")))
        .numbers(["% of\nwhole"])
        .column(Column::drawn(heading, 14, axis.bars()));
    let elapsed = [why.reference_elapsed_ns, why.treatment_elapsed_ns];
    let total_bar = |ns: u64| Drawing::Bar { from: 0.0, to: place(ns as f64), kind: BarKind::Total };
    let begin = [unit.shown(signed(elapsed[0])), String::new()];
    table.push(RowKind::Quiet, bar_row(&sides[0].to_lowercase(), begin, total_bar(elapsed[0])));
    for (part, ends) in parts.rows.iter().zip(sums.windows(2)) {
        let (from, to) = (place(ends[0]), place(ends[1]));
        let kind = if part.difference_ns() < 0 { BarKind::Less } else { BarKind::More };
        let share = Percent { part: part.difference_ns() as f64, whole: total_ns as f64 };
        let share = if !why.is_told() { Percent { part: 0.0, whole: 0.0 } } else { share };
        let share = if total_ns < 0 { Percent { part: -share.part, whole: -share.whole } } else { share };
        let bad = part.name == UNACCOUNTED
            && share.share().is_some_and(|share| share.abs() > UNACCOUNTED_SHARE_MAX);
        let drawing = (part.difference_ns() != 0).then_some(Drawing::Bar { from, to, kind });
        table.row(vec![
            Cell::from(&part.name),
            Cell::from(&part.wait_class),
            Cell::from(unit.shown(part.reference_ns)),
            Cell::from(unit.shown(part.treatment_ns)),
            Cell::from(unit.shown(part.difference_ns())),
            Cell::from(part.ends.map_or(String::new(), |ends| between(ends, unit))),
            Cell::from(unsigned_zero(share)).with_tone(if bad { Tone::Bad } else { Tone::Plain }),
            Cell::drawn(drawing),
        ]);
    }
    let mut total = bar_row(whole, elapsed.map(|ns| unit.shown(signed(ns))), total_bar(elapsed[1]));
    total[4] = Cell::from(unit.shown(total_ns));
    table.push(RowKind::Total, total);
    table
}

/// Shows the time of each phase on both sides; `None` if the runs had only one.
fn phases(why: &Why) -> Option<Table> {
    let mut table = Table::default().wrapped("Phase", 24).numbers([
        "Reference\n(s)",
        "Treatment\n(s)",
        "Difference\n(s)",
        "95% interval\n(s)",
    ]);
    for phase in &why.phases {
        let [reference, treatment] = [phase.reference_ns, phase.treatment_ns].map(signed);
        table.row(vec![
            Cell::from(&phase.name),
            Cell::of(SignedMillis(reference)),
            Cell::of(SignedMillis(treatment)),
            Cell::of(SignedMillis(treatment - reference)),
            Cell::from(phase.ends.map_or(String::new(), |ends| between(ends, TimeUnit::SECONDS))),
        ]);
    }
    (why.phases.len() > 1).then_some(table)
}

/// Prints both ends of a difference.
fn between(ends: EndsNanos, unit: TimeUnit) -> String {
    format!("[{}, {}]", unit.shown(ends.low_ns), unit.shown(ends.high_ns))
}

fn signed(nanos: u64) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}

/// Prints a share; one that rounds to zero has no sign.
fn unsigned_zero(share: Percent) -> String {
    let shown = share.figure();
    if shown == "-0.0" { "0.0".to_string() } else { shown }
}

/// Returns a row of an elapsed time with its bar.
fn bar_row(name: &str, [reference, treatment]: [String; 2], bar: Drawing) -> Vec<Cell> {
    vec![
        Cell::from(name),
        Cell::default(),
        Cell::from(reference),
        Cell::from(treatment),
        Cell::default(),
        Cell::default(),
        Cell::default(),
        Cell::drawn(Some(bar)),
    ]
}

/// Draws bytes over time of both arms of a claim, on the same axes; `None` if no claim has them.
pub(super) fn profiles(analysis: &Analysis) -> Option<Section> {
    let mut section = Section::front("profiles", "I/O Profiles of Two Arms")
        .note("MB/s (2^20 bytes) over seconds from the start of a typical run of either arm, all panels on the same axes");
    for (index, claim) in analysis.claims.iter().enumerate() {
        let title = format!("{} {}: {}", index + 1, claim.name, claim.comparison);
        let pair = claim.profiles.as_ref().and_then(|pair| pair_chart(title, pair));
        section.blocks.extend(pair.map(Block::Pair));
    }
    (!section.blocks.is_empty()).then_some(section)
}

/// Draws both profiles on the same axes; `None` if nothing was recorded over time.
fn pair_chart(title: String, pair: &ProfilePair) -> Option<PairChart> {
    let runs = [&pair.reference, &pair.treatment];
    let own = runs.map(|run| moved(&run.profile.series));
    let mut names: Vec<&str> = Vec::new();
    for stream in own.iter().flatten() {
        if !names.contains(&stream.name.as_str()) {
            names.push(&stream.name);
        }
    }
    if names.is_empty() || runs.iter().any(|run| run.profile.bucket_ns == 0) {
        return None;
    }
    let bucket_s = |run: &RunProfile| Nanos(run.profile.bucket_ns).seconds();
    let peaks = runs.iter().zip(&own).flat_map(|(run, streams)| {
        let bucket_s = bucket_s(run);
        streams.iter().map(move |stream| stream.peak_mb_per_s(bucket_s))
    });
    let y_max_mb_per_s = axis_end(peaks.fold(0.0, f64::max));
    let x_max_s = runs.iter().map(|run| Nanos(run.elapsed_ns).seconds()).fold(0.0, f64::max);
    let side = |side: usize| {
        let run = runs[side];
        let stream = |(colour, name): (usize, &&str)| {
            let known = own[side].iter().find(|stream| stream.name == **name);
            let bytes = known.map(|stream| stream.bytes.clone()).unwrap_or_default();
            Stream { name: (*name).to_string(), colour, bytes }
        };
        Side {
            name: format!("{} (run {})", run.arm, run.run),
            end_s: Nanos(run.elapsed_ns).seconds(),
            chart: Chart {
                x_max_s: x_max_s.max(bucket_s(run)),
                y_max_mb_per_s,
                bucket_s: bucket_s(run),
                streams: names.iter().enumerate().map(stream).collect(),
                bands: Vec::new(),
                limit: None,
                strips: Vec::new(),
            },
        }
    };
    Some(PairChart { title, sides: [side(0), side(1)] })
}
