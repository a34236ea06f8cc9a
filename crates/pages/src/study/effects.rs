//! Effects with intervals, of claims, factors and their pairs; and the arms.

use super::with_unit;
use crate::tone_of_standing;
use plumb_record::IoTally;
use plumb_report::Section;
use plumb_report::axis::LogAxis;
use plumb_report::cells;
use plumb_report::format::{
    Average, Change, Decimal, Ends, Figure, PerSecond, Percent, Probability, Reading, Seconds, Share, Size,
    Throughput,
};
use plumb_report::table::{Axis, Cell, Column, RowKind, Table};
use plumb_study::analysis::result::{Analysis, Arm, ArmFigure, ArmIo, ArmUnit, Effect, IoTable};
use plumb_study::definition::Of;

/// Columns of a drawing in text.
const WIDTH: usize = 34;
/// Columns of an arm's drawn range.
const ARM_WIDTH: usize = 26;
const NAME_WIDTH: usize = 34;

/// Error of a table without verdicts.
const FOR_READING: f64 = 0.05;

/// A named effect of a forest plot.
struct Row<'a> {
    name: String,
    effect: Option<&'a Effect>,
    last: Cell,
}

pub(super) fn claims(analysis: &Analysis) -> Section {
    let rows = analysis.claims.iter().enumerate().map(|(index, claim)| Row {
        name: format!("{} {}", index + 1, claim.name),
        effect: claim.effect.as_ref(),
        last: Cell::from(claim.label()).with_tone(tone_of_standing(Some(claim.standing()))),
    });
    Section::front("effects", "Effects of the Claims")
        .note("change of the measure from reference to treatment, laid out by its logarithm: the typical one, the pseudo-median of ratios within blocks")
        .note(of_p95(analysis))
        .note(of_claims(analysis))
        .table(forest("Claim", Column::text("Verdict"), &rows.collect::<Vec<_>>()))
}

/// Shows each factor's effect averaged over the others.
pub(super) fn main_effects(analysis: &Analysis) -> Option<Section> {
    let rows = analysis.main_effects.iter().map(|row| Row {
        name: format!("{}: {} -> {}", row.factor, row.from, row.to),
        effect: Some(&row.effect),
        last: Cell::of(row.p.map(Probability)),
    });
    let rows = rows.collect::<Vec<_>>();
    let section = Section::front("main-effects", "Main Effects").note(format!(
        "averaged over the levels of all other factors, for reading: what a claim says is not repeated; {}",
        for_reading(&analysis.main_effects.first()?.effect)
    ));
    Some(section.table(forest("Factor", Column::number("p"), &rows)))
}

/// Shows the ratios by which one factor changes another's effect.
pub(super) fn interactions(analysis: &Analysis) -> Option<Section> {
    let rows = analysis.interactions.iter().map(|row| Row {
        name: format!("{} x {}", row.first, row.second),
        effect: Some(&row.effect),
        last: Cell::of(row.p.map(Probability)),
    });
    let rows = rows.collect::<Vec<_>>();
    let section = Section::front("interactions", "Two-Factor Interactions")
        .note("by how much the first factor's effect is multiplied when the second changes too, where no claim says it; 0 is not at all")
        .note(for_reading(&analysis.interactions.first()?.effect));
    Some(section.table(forest("Pair", Column::number("p"), &rows)))
}

/// Describes the effects of claims of the p95; empty without one.
fn of_p95(analysis: &Analysis) -> String {
    let claims = analysis.study.claims.iter().enumerate();
    let of: Vec<String> =
        claims.filter(|(_, claim)| claim.of == Of::P95).map(|(index, _)| (index + 1).to_string()).collect();
    if of.is_empty() {
        return String::new();
    }
    let s = if of.len() == 1 { "" } else { "s" };
    format!("claim{s} {}: the ratio of the times, or rates, that 19 of 20 runs keep to", of.join(", "))
}

/// Describes the levels of the claims' intervals.
pub(super) fn of_claims(analysis: &Analysis) -> String {
    let effects = || {
        let claims = analysis.claims.iter().enumerate();
        claims.filter_map(|(index, claim)| Some((index + 1, claim.effect.as_ref()?)))
    };
    let widest =
        effects().map(|(_, effect)| effect).max_by(|one, two| one.confidence.total_cmp(&two.confidence));
    let all = together(widest, analysis.study.alpha, "claims");
    let own =
        effects().filter(|(_, effect)| widest.is_some_and(|widest| effect.confidence < widest.confidence));
    let own: Vec<String> = own
        .map(|(number, effect)| format!("that of claim {number} is at {}", Share(effect.confidence).figure()))
        .collect();
    if own.is_empty() {
        return all;
    }
    format!("{all}, but {}, because only its step proves the claim", own.join(", "))
}

/// Describes the level of intervals that share an error.
fn together(effect: Option<&Effect>, alpha: f64, of: &str) -> String {
    effect.map_or(String::new(), |effect| {
        let (own, all) = (Share(effect.confidence).figure(), Share(1.0 - alpha).figure());
        if own == all {
            format!("{own} intervals")
        } else {
            format!("{own} intervals: those of all {of} hold together in {all} of studies")
        }
    })
}

fn for_reading(effect: &Effect) -> String {
    format!("{}; p is corrected for them", together(Some(effect), FOR_READING, "rows"))
}

/// Draws effects on a common axis.
fn forest(title: &str, last: Column, rows: &[Row<'_>]) -> Table {
    let axis = LogAxis::of_effects(rows.iter().filter_map(|row| row.effect.map(Effect::ends)));
    let mut table = Table::new(vec![
        Column::wrapped(title, NAME_WIDTH),
        Column::number("Change"),
        Column::number("Interval"),
        Column::drawn("", WIDTH, axis.effects()),
        last,
    ]);
    for row in rows {
        let drawing = row.effect.map(|effect| axis.interval(effect.ends()));
        table.row(vec![
            Cell::from(&row.name),
            Cell::of(row.effect.map(|effect| Change(effect.ratio))),
            Cell::of(row.effect.map(|effect| Ends { low: effect.low, high: effect.high })),
            Cell::drawn(drawing),
            row.last.clone(),
        ]);
    }
    table
}

/// Shows the arms with their medians.
pub(super) fn arms(analysis: &Analysis) -> Section {
    let unit = analysis.study.measure.unit();
    let reference = analysis.arms.get(analysis.design.reference_arm).and_then(|arm| arm.median);
    let mut columns = vec![Column::number("#"), Column::wrapped("Arm", 34)];
    columns.extend(
        ["Median", "Least", "Most"].map(|name| Column::number(with_unit(&format!("{name}\n"), unit))),
    );
    let axis =
        LogAxis::around(analysis.arms.iter().flat_map(|arm| [arm.least, arm.median, arm.most]).flatten());
    let ticks = axis.values();
    columns.push(Column::drawn(
        "",
        ARM_WIDTH,
        Axis { ticks, line: reference.map(|median| axis.position(median)) },
    ));
    columns.push(Column::number("Median to\nreference's"));
    let has_memory = analysis.arms.iter().any(|arm| arm.declared_bytes.or(arm.peak_bytes).is_some());
    if has_memory {
        columns.extend(["Declared\nmemory", "Peak\nmemory"].map(Column::number));
    }
    let mut table = Table::new(columns);
    for (index, arm) in analysis.arms.iter().enumerate() {
        let ratio = arm.median.zip(reference).map(|(median, reference)| Change(median / reference));
        let is_reference = index == analysis.design.reference_arm;
        let note = if is_reference { "reference".to_string() } else { ratio.figure() };
        let mut cells = vec![Cell::from((index + 1).to_string()), Cell::from(&arm.name)];
        cells.extend([arm.median, arm.least, arm.most].map(|value| Cell::of(value.map(Reading))));
        let drawing = arm.median.map(|median| axis.interval((arm.least, median, arm.most)));
        cells.push(Cell::drawn(drawing));
        cells.push(Cell::from(note));
        if has_memory {
            cells.extend([arm.declared_bytes, arm.peak_bytes].map(|bytes| Cell::of(bytes.map(Size))));
        }
        table.push(if is_reference { RowKind::Quiet } else { RowKind::Plain }, cells);
    }
    Section::front("arms", "Arms")
        .note("over counted runs, the drawing from least to most; medians of runs, not of ratios within blocks: the effects above are the better comparison")
        .table(table)
}

/// Formats a figure of an arm.
pub(super) fn other_figure(figure: &ArmFigure) -> String {
    let whole = figure.median.round() as u64;
    match figure.unit {
        ArmUnit::Bytes => Size(whole).figure(),
        ArmUnit::Nanoseconds => format!("{} s", Seconds(whole).figure()),
    }
}

/// Shows figures of the arms that are not the measure; `None` if no run has any.
pub(super) fn other_figures(analysis: &Analysis) -> Option<Section> {
    let mut names: Vec<&str> = Vec::new();
    let moved = |figure: &&ArmFigure| figure.median > 0.0;
    for figure in analysis.arms.iter().flat_map(|arm| &arm.others).filter(moved) {
        if !names.contains(&figure.name.as_str()) {
            names.push(&figure.name);
        }
    }
    let mut table = Table::default().text(["Arm"]);
    table.columns.extend(names.iter().map(|name| Column::number(in_two_lines(name))));
    for arm in analysis.arms.iter().filter(|arm| !arm.others.is_empty()) {
        let of = |name: &&str| arm.others.iter().find(|figure| figure.name == **name).map(other_figure);
        let cells = names.iter().map(|name| Cell::from(of(name).unwrap_or_default()));
        table.row(std::iter::once(Cell::from(&arm.name)).chain(cells).collect());
    }
    let section = Section::front("arms-others", "Other Figures of the Arms")
        .note("medians over counted runs; the waits that take any arm the most time, of all its foreground sessions together")
        .note("for reading: no claim tests them, and a difference may be noise");
    (!names.is_empty()).then(|| section.table(table))
}

/// Breaks a name at the blank next to its middle.
fn in_two_lines(name: &str) -> String {
    let middle = name.len() / 2;
    let at = name.match_indices(' ').map(|(at, _)| at).min_by_key(|at| at.abs_diff(middle));
    at.map_or_else(|| name.to_string(), |at| format!("{}\n{}", &name[..at], &name[at + 1..]))
}

const MB: f64 = 1_048_576.0;

/// Compares the device of each arm with the database's result; `None` unless arms differ in where
/// files are.
pub(super) fn devices_of_arms(analysis: &Analysis) -> Option<Section> {
    let levels = analysis.study.factors.iter().flat_map(|factor| &factor.levels);
    let is_place = |name: &str| name == "path" || name.ends_with("_path");
    if !levels.flat_map(|level| &level.settings).any(|set| is_place(&set.name)) {
        return None;
    }
    let reference = analysis.arms.get(analysis.design.reference_arm)?;
    let of_device = |arm: &Arm| match arm.device {
        Some(device) => [device.random_read_8k_ns, device.sequential_read_bytes_per_s],
        None => [None, None],
    };
    let to = |value: Option<f64>, reference: Option<f64>| {
        Cell::of(value.zip(reference).map(|(value, reference)| Change(value / reference)))
    };
    let unit = analysis.study.measure.unit();
    let mut columns = vec![Column::wrapped("Arm", 34)];
    let median = with_unit("Database\n", unit);
    let has_rate = analysis.arms.iter().any(|arm| of_device(arm)[1].is_some());
    let titles = ["8K read\nalone us", "to ref.", "Read MB/s\nalone", "to ref.", &median, "to ref."];
    let shown = titles.iter().enumerate().filter(|(at, _)| has_rate || ![2, 3].contains(at));
    columns.extend(shown.map(|(_, title)| Column::number(*title)));
    let mut table = Table::new(columns);
    for arm in analysis.arms.iter().filter(|arm| arm.device.is_some()) {
        let ([read, rate], [read_of, rate_of]) = (of_device(arm), of_device(reference));
        let mut cells =
            vec![Cell::from(&arm.name), Cell::of(read.map(|ns| Reading(ns / 1e3))), to(read, read_of)];
        if has_rate {
            cells.extend([Cell::of(rate.map(|rate| Reading(rate / MB))), to(rate, rate_of)]);
        }
        cells.extend([Cell::of(arm.median.map(Reading)), to(arm.median, reference.median)]);
        table.row(cells);
    }
    let section = Section::front("arms-device", "Device Beside Database")
        .note("medians of what each run measured of its own files before its work, without the database: one random read of 8K at a time, and sequential reads, many at once")
        .note("an equal device beside an unequal database: what differs is above the device, as in the file system");
    (!table.rows.is_empty()).then(|| section.table(table))
}

/// Shows the block devices during the runs of each arm, next to its own figure; `None` without any.
pub(super) fn beside_arms(analysis: &Analysis) -> Option<Section> {
    let unit = analysis.study.measure.unit();
    let mut table =
        Table::default().numbers(["#"]).wrapped("Arm", 34).numbers([&*with_unit("Median\n", unit)]);
    table = table.text(["Device"]).numbers([
        "Reads/s",
        "Reads\nMB/s",
        "Avg\nsize",
        "Avg\nRd",
        "Writes/s",
        "Writes\nMB/s",
        "Avg\nsize",
        "Avg\nWrt",
        "Queue",
        "Busy %",
        "Host\nCPU %",
    ]);
    for (index, arm) in analysis.arms.iter().enumerate() {
        for io in of_devices(arm) {
            let elapsed_ns = arm.io_ns.unwrap_or(0);
            let mut cells = cells![(index + 1).to_string(), &arm.name, arm.median.map(Reading), &io.name];
            cells.extend([io.reads, io.writes].into_iter().flat_map(|tally| rates(tally, elapsed_ns)));
            let queue = io.weighted_ns.map(|ns| Decimal(ns as f64 / elapsed_ns.max(1) as f64));
            cells.extend(cells![
                queue,
                busy(io, elapsed_ns),
                arm.host_cpu.map(|part| Percent { part, whole: 1.0 })
            ]);
            table.row(cells);
        }
    }
    let section = Section::front("arms-devices", "Devices During the Runs")
        .note("counters of the kernel, of all processes, from the start to the end of each counted run")
        .note("sizes and times of requests after the kernel's merges and splits; MB is 2^20 bytes");
    (!table.rows.is_empty()).then(|| section.table(table))
}

/// Returns the devices that moved anything during the runs of an arm.
pub(super) fn of_devices(arm: &Arm) -> impl Iterator<Item = &ArmIo> {
    arm.io.iter().filter(|io| io.table == IoTable::Device)
}

/// Share of the time with a request in flight. The kernel counts in ticks, which may end later.
pub(super) fn busy(io: &ArmIo, elapsed_ns: u64) -> Option<Percent> {
    io.busy_ns.map(|ns| Percent::of(ns.min(elapsed_ns), elapsed_ns))
}

/// Shows the I/O of each arm by function, type of file and tablespace; `None` without any.
pub(super) fn arms_io(analysis: &Analysis) -> Option<Section> {
    let tables = [
        (IoTable::Function, "IOStat by Function"),
        (IoTable::Filetype, "IOStat by Filetype"),
        (IoTable::Tablespace, "Tablespace IO Stats"),
    ];
    let section = Section::detail("arms-io", "I/O of the Arms")
        .note("of all counted runs of an arm; MB is 2^20 bytes; # is the arm's number in the table of arms");
    let shown = tables.into_iter().map(|(kind, title)| io_table(analysis, kind).with_caption(title));
    let section = shown.filter(|table| !table.rows.is_empty()).fold(section, Section::table);
    (!section.blocks.is_empty()).then_some(section)
}

fn io_table(analysis: &Analysis, kind: IoTable) -> Table {
    let mut table = Table::default().text(["Name"]).numbers([
        "#",
        "Reads/s",
        "Reads\nMB/s",
        "Avg\nsize",
        "Avg\nRd",
        "Writes/s",
        "Writes\nMB/s",
        "Avg\nsize",
        "Avg\nWrt",
    ]);
    let of_kind =
        |arm: &'_ Arm| arm.io.iter().filter(move |io| io.table == kind).cloned().collect::<Vec<_>>();
    let mut names: Vec<String> = Vec::new();
    for io in analysis.arms.iter().flat_map(of_kind) {
        if !names.contains(&io.name) {
            names.push(io.name);
        }
    }
    for name in &names {
        for (index, arm) in analysis.arms.iter().enumerate() {
            let Some(io) = arm.io.iter().find(|io| io.table == kind && io.name == *name) else { continue };
            let mut cells = vec![Cell::from(name), Cell::from((index + 1).to_string())];
            for tally in [io.reads, io.writes] {
                cells.extend(rates(tally, arm.io_ns.unwrap_or(0)));
            }
            table.row(cells);
        }
    }
    table
}

/// Returns requests and MB a second, mean size and mean time; blank without requests.
fn rates(tally: IoTally, elapsed_ns: u64) -> [Cell; 4] {
    let moved = (tally.requests > 0).then_some(tally);
    let average = |tally: IoTally| Some(Average { total_ns: tally.time_ns?, count: tally.requests });
    [
        Cell::of(moved.map(|tally| PerSecond { total: tally.requests as f64, elapsed_ns })),
        Cell::of(moved.map(|tally| Throughput { bytes: tally.bytes, elapsed_ns })),
        Cell::of(tally.bytes.checked_div(tally.requests).filter(|bytes| *bytes > 0).map(Size)),
        Cell::of(moved.and_then(average)),
    ]
}
