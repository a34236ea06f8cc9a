//! The report of a comparison, in the order of an AWR compare-period report.
//!
//! Figures of repeated runs are medians. `%Diff` is blank where it would be noise, that is where
//! the test of repeated runs leaves the difference open. For single runs it is always in brackets,
//! because nothing shows the noise of equal runs. Configured values (memory, settings) are equal or
//! not, and need no test.

mod answer;
mod events;
mod explain;
mod io;

use super::run::device_facts;
use super::tone_of;
use plumb_record::figures::{ACTIVE_SESSIONS, DB_TIME, ELAPSED, FigureGroup, is_quotient};
use plumb_record::{Record, RunState};
use plumb_report::format::{Change, Count, Decimal, Ends, Probability, Reading, Size, Total};
use plumb_report::table::{Cell, Column, Facts, RowKind, Table, Tone};
use plumb_report::{Block, Document, Section, State, Summary, cells, text};
use plumb_study::compare::{Comparison, Difference, Judged, Outcome, Pairing, Period, samples};
use plumb_study::vocabulary::Figure;
use std::collections::BTreeMap;

/// Builds the report of a comparison.
pub fn document(comparison: &Comparison) -> Document {
    let header = comparison.second.runs.first().map(|run| &run.header);
    // Imported reports are of databases, which may be two.
    let of = |period: &Period| period.runs.first().map_or("", |run| run.header.workload.as_str()).to_string();
    let [first, second] = comparison.sides().map(of);
    let workload = if first == second { second } else { format!("{first} and {second}") };
    Document {
        title: format!("PLUMB COMPARE PERIOD REPORT  Workload: {workload}"),
        answer: answer::answer(comparison, &workload),
        question: String::new(),
        running_head: format!("Compare: {workload}  1st against 2nd"),
        width: text::WIDTH,
        state: state(comparison),
        basis: String::new(),
        reasons: reasons(comparison),
        headline: Vec::new(),
        sections: sections(comparison),
        summary: Summary::default(),
        footer: format!(
            "plumb {}, comparison schema {}. The records of all runs are embedded in this file as JSON.",
            header.map_or("", |header| header.plumb_version.as_str()),
            comparison.schema_version
        ),
        data: serde_json::to_string(comparison).unwrap_or_else(|_| "null".to_string()),
    }
}

/// Returns the verdict on the study's own measure, or the reason why there is none, then doubts.
fn state(comparison: &Comparison) -> State {
    let state = match comparison.judged.first() {
        Some(judged) => State { of: named(judged), word: shown(judged), tone: tone_of(&judged.verdict) },
        None => State {
            of: named_elapsed(),
            word: format!("no verdict: {}", because(comparison.pairing)),
            tone: Tone::Open,
        },
    };
    let sides = comparison.named_sides().into_iter();
    let doubtful = sides.filter_map(|(name, period)| Some(format!(", {name} {}", period.doubtful()?)));
    State { word: state.word + &doubtful.collect::<String>(), ..state }
}

fn named_elapsed() -> String {
    "Elapsed time".to_string()
}

/// Returns a measure's name at the start of a line.
fn named(judged: &Judged) -> String {
    if judged.measure.figure == Figure::Elapsed { named_elapsed() } else { judged.measure.title() }
}

fn shown(judged: &Judged) -> String {
    format!("{}{}", judged.verdict, if judged.asked_only { " (asked only)" } else { "" })
}

/// Returns reasons of the verdict, verdicts on other measures, remarks on
/// runs left out, and warnings.
fn reasons(comparison: &Comparison) -> Vec<String> {
    let first = comparison.judged.first().into_iter().flat_map(|judged| judged.reasons.iter().cloned());
    let others = comparison.judged.iter().skip(1).flat_map(|judged| {
        let line = format!("{}: {}", named(judged), shown(judged));
        std::iter::once(line).chain(judged.reasons.iter().cloned())
    });
    first.chain(others).chain(comparison.remarks.iter().cloned()).chain(warnings(comparison)).collect()
}

fn because(pairing: Pairing) -> &'static str {
    match pairing {
        Pairing::Single => "one run a side",
        Pairing::Apart => "the two sets were not interleaved",
        Pairing::Blocks => "its figures are all the same, or 0 on one side",
    }
}

/// Returns obstacles to a comparison: invalid runs, other work, different data.
fn warnings(comparison: &Comparison) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, period) in comparison.named_sides() {
        for run in &period.runs {
            warnings.extend(
                run.validity().reasons.into_iter().map(|reason| format!("{name} is INVALID: {reason}")),
            );
        }
    }
    warnings.dedup();
    for (name, period) in comparison.named_sides() {
        let failed = period.runs.iter().filter_map(|run| run.imported.as_ref()?.failed.first());
        warnings.extend(failed.map(|error| format!("{name} is of a run that failed: {error}")));
        warnings.extend(period.circumstances().into_iter().map(|found| format!("{name}: {found}")));
    }
    let sides = [&comparison.first, &comparison.second].map(|period| period.typical());
    if let [Some(first), Some(second)] = sides {
        let rows = |run: &Record| run.sort.as_ref().map(|sort| sort.rows);
        // A server's run has no such section; then the parameters say what differs.
        if rows(first) != rows(second) && first.server.is_some() == second.server.is_some() {
            let shown = |rows: Option<u64>| rows.map_or("none".to_string(), |rows| rows.to_string());
            warnings.push(format!(
                "not the same work: {} rows sorted and {}; only rates compare",
                shown(rows(first)),
                shown(rows(second))
            ));
        }
        if let (Some(one), Some(two)) = (first.header.seed, second.header.seed)
            && one != two
        {
            warnings.push(format!("not the same rows: seed {one} and {two}"));
        }
        if first.header.host.name != second.header.host.name {
            warnings.push("not the same host: times compare hosts as well as settings".to_string());
        }
    }
    warnings
}

/// Returns all sections. Sections without figures are left out: a command has no events, and a
/// database has only times and statistics.
fn sections(comparison: &Comparison) -> Vec<Section> {
    let tables = [
        measures(comparison),
        hosts(comparison),
        host_cpu(comparison),
        memory(comparison),
        load_profile(comparison),
        events::top(comparison),
        plain(comparison, FigureGroup::TimeModel, "time-model", "Time Model", "Time of all sessions (s)"),
        events::classes(comparison),
        events::events(comparison, FigureGroup::Event),
        events::events(comparison, FigureGroup::Background),
    ];
    let behind = [
        io::functions(comparison),
        io::file_types(comparison),
        io::streams(comparison),
        io::tablespaces(comparison),
        io::files(comparison),
        io::devices(comparison),
        statistics(comparison),
    ];
    let is_empty = |section: &Section| {
        let mut blocks = section.blocks.iter();
        blocks.any(|block| matches!(block, Block::Table(table) if table.rows.is_empty()))
    };
    let tables = tables.into_iter().chain(events::histograms(comparison)).chain(behind);
    // Differing settings are the question of a comparison.
    let differing = Some(settings(comparison)).filter(|section| !is_empty(section));
    let first = [Some(sets(comparison)), differing, explain::section(comparison), Some(times(comparison))];
    first.into_iter().flatten().chain(tables.filter(|section| !is_empty(section))).collect()
}

/// Shows the state of a set's runs with their doubts: `VALID, DISTURBED`.
fn state_cell(period: &Period) -> Cell {
    let mut words = vec![period.state().word()];
    words.extend(period.facts().into_iter().map(|fact| fact.words().0));
    words.dedup();
    let is_doubtful = words.len() > 1 && period.state() == RunState::Valid;
    Cell::from(words.join(", ")).with_tone(if is_doubtful {
        Tone::Open
    } else {
        super::tone_of_run(period.state())
    })
}

/// Legend for `%Diff` in this report.
fn rule(pairing: Pairing) -> &'static str {
    match pairing {
        Pairing::Single => {
            "%Diff in brackets is the raw change of one run each, which may be noise: nothing says how far two runs of the same \
             lie apart; `plumb study` repeats both in random order"
        }
        Pairing::Blocks => {
            "%Diff stands where an exact test over pairs of runs of the same block proves it, p corrected within each \
             table and not for the choice of the two arms; that of a measure of the study as its claim has it, or for all \
             pairs of its arms; `~` may be noise; intervals are those of the corrected tests, 95% or wider"
        }
        Pairing::Apart => {
            "%Diff stands where no run of one set lies among those of the other, and chance alone would seldom part sets of \
             this size so; they were not interleaved, so the hour or the machine may have made it: no p"
        }
    }
}

/// Shows the two sets with the first lines of AWR; a command has no database time.
fn sets(comparison: &Comparison) -> Section {
    let database =
        comparison.sides().iter().all(|period| period.runs.iter().all(|run| run.command.is_none()));
    let mut columns = vec![Column::text("Set"), Column::wrapped("Bundle", 34), Column::wrapped("Arm", 24)];
    columns.push(Column::number("Runs"));
    columns.extend([Column::text("Begin"), Column::wrapped("Runs are", 16)]);
    columns.push(Column::number("Elapsed\nTime (s)"));
    columns
        .extend(["DB time\n(s)", "Avg Active\nUsers"].into_iter().filter(|_| database).map(Column::number));
    let mut table = Table::new(columns);
    for (name, period) in ["First (1st)", "Second (2nd)"].into_iter().zip(comparison.sides()) {
        let [elapsed, db_time] = [ELAPSED, DB_TIME].map(|name| period.figure(FigureGroup::Time, name));
        let active = period.figure(FigureGroup::Ratio, ACTIVE_SESSIONS);
        let mut cells = cells![
            name,
            &period.source,
            period.arm.as_deref().unwrap_or(""),
            Count(period.runs.len() as u64),
            period.runs.first().map_or("", |run| run.header.begin_time.as_str()),
            state_cell(period),
            Reading(elapsed)
        ];
        let has_time = is_known(period, FigureGroup::Time, DB_TIME);
        let of_time =
            cells![Some(Reading(db_time)).filter(|_| has_time), Some(Decimal(active)).filter(|_| has_time)];
        cells.extend(of_time.into_iter().filter(|_| database));
        table.row(cells);
    }
    let mut total = vec![Cell::default(); if database { 9 } else { 7 }];
    total[0] = Cell::from("%Diff:");
    if comparison.sides().iter().all(|period| is_known(period, FigureGroup::Time, ELAPSED)) {
        total[6] = percent(comparison.difference(FigureGroup::Time, ELAPSED));
    }
    let has_time = || comparison.sides().iter().all(|period| is_known(period, FigureGroup::Time, DB_TIME));
    if database && has_time() {
        total[7] = percent(comparison.difference(FigureGroup::Time, DB_TIME));
    }
    table.push(RowKind::Total, total);
    Section::front("sets", "Snapshot Sets")
        .note(rule(comparison.pairing))
        .note(format!("%Diff is blank where the second is more than {RATIO_MAX:.0} times the first"))
        .table(table)
}

/// Largest ratio of second to first for which `%Diff` is shown. Above it the first is nearly zero,
/// such as a background that has just started, and a percentage has no meaning.
const RATIO_MAX: f64 = 100.0;

/// Prints a difference in per cent; blank for noise, and for ratios above [`RATIO_MAX`].
pub(super) fn percent(difference: Option<&Difference>) -> Cell {
    let resolved = difference.filter(|found| found.outcome != Outcome::Open);
    let shown = resolved.and_then(|found| Some((found, found.ratio.filter(|ratio| *ratio <= RATIO_MAX)?)));
    let Some((found, ratio)) = shown else {
        return Cell::default();
    };
    let change = Change(ratio).coarse().replace('%', "");
    match found.outcome {
        Outcome::Raw => Cell::from(format!("({change})")).with_tone(Tone::Open),
        _ => Cell::from(change),
    }
}

fn test_columns() -> Vec<Column> {
    vec![
        Column::number("%Diff"),
        Column::number("95% CI of\nratio"),
        Column::number("p"),
        Column::number("n"),
        Column::text("Verdict"),
    ]
}

/// Returns the cells of these columns, blank for single runs.
fn test_cells(difference: Option<&Difference>) -> Vec<Cell> {
    let Some(found) = difference else {
        return vec![Cell::default(); 5];
    };
    let word = match found.outcome {
        Outcome::Higher => Cell::from("higher").with_tone(Tone::Open),
        Outcome::Lower => Cell::from("lower").with_tone(Tone::Open),
        Outcome::New => Cell::from("new").with_tone(Tone::Open),
        Outcome::Gone => Cell::from("gone").with_tone(Tone::Open),
        Outcome::Same => Cell::from("same"),
        Outcome::Open => Cell::from("~"),
        Outcome::Raw => Cell::from("one run each").with_tone(Tone::Open),
    };
    let bounded = found.low.is_some() || found.high.is_some();
    let ends = Ends { low: found.low, high: found.high };
    cells![
        percent(Some(found)),
        if bounded { ends.ratios() } else { String::new() },
        found.p.map(Probability),
        Count(found.runs),
        word
    ]
}

/// True if a set has a figure, or lacks it because it counted nothing: a run of this program counts
/// all that it does. A time, a measure or a quotient that is missing is not 0, and neither is any
/// figure that another program's report does not have.
fn is_known(period: &Period, group: FigureGroup, name: &str) -> bool {
    let is_count = !is_quotient(group, name)
        && !matches!(group, FigureGroup::Time | FigureGroup::Measure | FigureGroup::Host);
    // A report without an interval has an elapsed time of zero.
    let is_nothing = group == FigureGroup::Time && period.figure(group, name) <= 0.0;
    is_count && period.runs.iter().all(|run| run.imported.is_none()) || period.has(group, name) && !is_nothing
}

/// True for each set that has a figure.
fn known(comparison: &Comparison, group: FigureGroup, name: &str) -> [bool; 2] {
    comparison.sides().map(|period| is_known(period, group, name))
}

/// Returns the cells of a figure's test, blank if a set lacks the figure.
fn tested(comparison: &Comparison, group: FigureGroup, name: &str) -> Vec<Cell> {
    let is_of_both = known(comparison, group, name) == [true; 2];
    test_cells(comparison.difference(group, name).filter(|_| is_of_both))
}

/// Builds a table of a group's figures, printed by `print`. A figure that is not known is blank,
/// and so is its difference.
fn figures(
    comparison: &Comparison,
    group: FigureGroup,
    titles: [&str; 3],
    print: impl Fn(f64) -> Cell,
) -> Table {
    let mut columns = vec![Column::text(titles[0]), Column::number(titles[1]), Column::number(titles[2])];
    columns.extend(test_columns());
    let mut table = Table::new(columns);
    for sample in samples(&comparison.first.runs, &comparison.second.runs) {
        if sample.group == group {
            let known = known(comparison, group, &sample.name);
            let mut cells = cells![&sample.name];
            let values = [sample.first, sample.second];
            cells.extend(values.into_iter().zip(known).map(|(values, is_known)| match is_known {
                true => print(plumb_proof::median(&values)),
                false => Cell::default(),
            }));
            cells.extend(tested(comparison, group, &sample.name));
            table.row(cells);
        }
    }
    table
}

fn times(comparison: &Comparison) -> Section {
    let table = figures(comparison, FigureGroup::Time, ["Time", "1st (s)", "2nd (s)"], |value| {
        Cell::of(Reading(value))
    });
    Section::front("times", "Times").table(table)
}

/// Shows the target's own measures.
fn measures(comparison: &Comparison) -> Section {
    // A latency of microseconds is a measure in seconds.
    let print = |value: f64| match value.abs() {
        size if size > 1e-12 && size < 0.1 => {
            let decimals = (2.0 - size.log10().floor()) as usize;
            Cell::from(format!("{value:.decimals$}"))
        }
        _ => Cell::of(Reading(value)),
    };
    let mut table = figures(comparison, FigureGroup::Measure, ["Measure", "1st", "2nd"], print);
    let rows = comparison.sides().into_iter().flat_map(|period| &period.runs).flat_map(|run| &run.measures);
    let units: BTreeMap<&str, &str> = rows.map(|row| (row.name.as_str(), row.unit.as_str())).collect();
    for name in table.rows.iter_mut().filter_map(|row| row.cells.first_mut()) {
        let unit = units.get(name.text.as_str()).filter(|unit| !unit.is_empty() && **unit != name.text);
        name.text.extend(unit.map(|unit| format!(" ({unit})")));
    }
    Section::front("measures", "Measures").table(table)
}

/// Shows rates per second, per transaction if there were any, and quotients.
fn load_profile(comparison: &Comparison) -> Section {
    let titles = ["Load", "1st Per Sec", "2nd Per Sec"];
    let per_second = figures(comparison, FigureGroup::Load, titles, |value| Cell::of(Total(value)));
    let small = |group, titles| figures(comparison, group, titles, |value| Cell::of(Reading(value)));
    let per_transaction = small(FigureGroup::Transaction, ["Load", "1st Per Txn", "2nd Per Txn"]);
    let ratios = small(FigureGroup::Ratio, ["", "First", "Second"]);
    let section = Section::front("load-profile", "Load Profile").table(per_second);
    [per_transaction, ratios]
        .into_iter()
        .filter(|table| !table.rows.is_empty())
        .fold(section, |section, table| section.table(table))
}

/// Shows load and processors of the hosts, with their tests.
fn host_cpu(comparison: &Comparison) -> Section {
    let titles = ["Host", "1st", "2nd"];
    let table = figures(comparison, FigureGroup::Host, titles, |value| Cell::of(Reading(value)));
    Section::front("host-cpu", "Host CPU").note("of all processors, by all processes").table(table)
}

fn statistics(comparison: &Comparison) -> Section {
    let titles = ["Statistic", "1st", "2nd"];
    let table = figures(comparison, FigureGroup::Statistic, titles, amount);
    Section::detail("statistics", "Instance Activity Stats")
        .note("totals of a run; times in seconds; statistics that did not move are left out")
        .table(table)
}

/// Prints a total: whole, unless it is a median between two runs.
fn amount(value: f64) -> Cell {
    if value.fract() == 0.0 { Cell::of(Count(value as u64)) } else { Cell::of(Total(value)) }
}

/// Shows facts of both sides in one table, with differences marked.
fn side_by_side(rows: [Vec<(String, String)>; 2]) -> Table {
    let mut table =
        Table::default().text([""]).wrapped("First (1st)", 48).wrapped("Second (2nd)", 48).text(["Diff"]);
    let [first, second] = rows;
    let mut names = Vec::new();
    for (name, _) in first.iter().chain(&second) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let all = |side: &[(String, String)], name: &str| {
        side.iter()
            .filter(|(found, _)| found == name)
            .map(|(_, value)| value.clone())
            .collect::<Vec<_>>()
            .join("; ")
    };
    for name in names {
        let values = [all(&first, &name), all(&second, &name)];
        let differs = values[0] != values[1];
        let tone = if differs { Tone::Open } else { Tone::Plain };
        let [one, two] = values;
        table.row(cells![
            &name,
            Cell::from(one).with_tone(tone),
            Cell::from(two).with_tone(tone),
            Cell::from(if differs { "*" } else { "" }).with_tone(tone)
        ]);
    }
    table
}

fn hosts(comparison: &Comparison) -> Section {
    let facts = |period: &Period| {
        let Some(run) = period.typical() else { return Vec::new() };
        let host = &run.header.host;
        let mut facts = Facts::default();
        facts.add("Host Name", &host.name);
        facts.add("Platform", &host.kernel);
        facts.add("CPUs", Cell::of(host.cpus.map(|cpus| Count(u64::from(cpus)))));
        facts.add("CPU Model", &host.cpu_model);
        facts.add("Memory", Cell::of(host.memory_bytes.map(Size)));
        facts.add("Release", release(run));
        facts.add("Revision", run.header.git_revision.as_deref().unwrap_or(""));
        if let Some(profile) = &run.header.profile {
            facts.add("Profile", profile);
        }
        for device in &run.devices {
            facts.add("Path", &device.path);
            facts.rows.extend(device_facts(device).rows);
        }
        facts.rows.into_iter().map(|(name, cell)| (name, cell.text)).collect()
    };
    let [mut first, mut second] = comparison.sides().map(facts);
    // A device has many long notes; only those of one side matter.
    let is_note = |(name, _): &(String, String)| name == "Note";
    let common =
        first.iter().filter(|fact| is_note(fact) && second.contains(fact)).cloned().collect::<Vec<_>>();
    first.retain(|fact| !common.contains(fact));
    second.retain(|fact| !common.contains(fact));
    let section = Section::front("hosts", "Host Configuration Comparison").note("*: they differ");
    let section = match common.len() {
        0 => section,
        count => section.note(format!("notes on the device that hold on both sides are left out: {count}")),
    };
    section.table(side_by_side([first, second]))
}

/// Returns the release of what ran: this program's, or the one that an imported report names.
fn release(run: &Record) -> &str {
    match &run.imported {
        None => &run.header.plumb_version,
        Some(imported) => {
            let named =
                imported.facts.iter().find(|fact| ["Release", "Version"].contains(&fact.name.as_str()));
            named.map_or("", |fact| fact.text.as_str())
        }
    }
}

fn memory(comparison: &Comparison) -> Section {
    let areas = |period: &Period| period.typical().map(|run| run.memory.areas.clone()).unwrap_or_default();
    let [first, second] = comparison.sides().map(areas);
    let mut names = first.iter().map(|area| area.name.clone()).collect::<Vec<_>>();
    names.extend(
        second
            .iter()
            .map(|area| area.name.clone())
            .filter(|name| !first.iter().any(|area| area.name == *name)),
    );
    let mut table = Table::default().text(["Area"]).numbers(["First (1st)", "Second (2nd)", "%Diff"]);
    for name in names {
        let of = |areas: &[plumb_record::MemoryArea]| {
            areas.iter().find(|area| area.name == name).map(|area| area.bytes)
        };
        let values = [of(&first), of(&second)];
        // Configured sizes are exact, so their difference needs no test.
        let ratio = match values {
            [Some(one), Some(two)] if one > 0 && one != two => {
                Change(two as f64 / one as f64).coarse().replace('%', "")
            }
            _ => String::new(),
        };
        table.row(cells![&name, values[0].map(Size), values[1].map(Size), ratio]);
    }
    Section::front("memory", "Cache Sizes").table(table)
}

/// Shows parameters of the workload that differ, then such settings. Without parameters in a
/// record, only settings are compared.
fn settings(comparison: &Comparison) -> Section {
    let settings = |period: &Period| {
        let settings = period.typical().map(|run| run.settings.as_slice()).unwrap_or_default();
        settings.iter().map(|setting| (setting.name.clone(), setting.value.clone())).collect::<Vec<_>>()
    };
    let parameters = |period: &Period| {
        let parameters = period.typical().map(|run| run.parameters.as_slice()).unwrap_or_default();
        parameters.iter().map(|row| (row.name.clone(), row.value.clone())).collect::<Vec<_>>()
    };
    let asked = comparison.sides().map(parameters);
    let known = [0, 1].map(|side| !asked[side].is_empty());
    let without = comparison.sides().map(|period| settings(period).is_empty());
    let mut table = side_by_side(comparison.sides().map(settings));
    if known == [true; 2] {
        let mut rows = side_by_side(asked).rows;
        rows.append(&mut table.rows);
        table.rows = rows;
    }
    table.rows.retain(|row| row.cells.last().is_some_and(|cell| cell.text == "*"));
    let section = Section::front("settings", "Settings That Differ");
    let section = match known {
        [true, true] | [false, false] => section,
        [has_first, _] => section.note(format!(
            "the record of the {} has no parameters of the workload: they are not compared",
            if has_first { "2nd" } else { "1st" }
        )),
    };
    match (table.rows.is_empty(), known) {
        (false, _) => section.table(table),
        (true, [true, true]) => section.note("none: both sets have the same settings and parameters"),
        (true, _) if without.iter().any(|without| *without) => {
            section.note("not known: a set without settings cannot be compared")
        }
        (true, _) => section.note("none: both sets have the same settings"),
    }
}

/// Shows quotients of counters, or parts of a time model, with their tests.
fn plain(comparison: &Comparison, group: FigureGroup, id: &'static str, title: &str, name: &str) -> Section {
    let table = figures(comparison, group, [name, "1st", "2nd"], |value| Cell::of(Reading(value)));
    Section::detail(id, title).table(table)
}

#[cfg(test)]
mod tests;
