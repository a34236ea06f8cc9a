//! Snapshots of comparisons of fixed runs, and the rule for blank differences.

use super::{document, percent, sections};
use crate::run::fixture::large_sort;
use crate::tests::browser;
use plumb_events::Unit;
use plumb_proof::verdict::{Change, Verdict};
use plumb_record::figures::FigureGroup;
use plumb_record::{Circumstance, Fact, Held, IoTally, ParameterRow, Record, StatisticRow, WaitEvent};
use plumb_report::{html, text};
use plumb_study::compare::{
    COMPARE_SCHEMA_VERSION, Comparison, Difference, Judged, Outcome, Pairing, Period, samples,
};
use plumb_study::vocabulary::Measure;

/// The second side: half the CPU, no waits for free buffers, a larger sort area, another host.
fn changed() -> Record {
    let mut run = large_sort();
    run.header.elapsed_ns = 18_400_000_000;
    run.header.db_time_ns = Some(41_700_000_000);
    run.header.host.name = "dblab04".to_string();
    run.devices[0].filesystem = "ext4".to_string();
    run.memory.areas[1].bytes *= 2;
    run.settings[5].value = "128M".to_string();
    run.foreground_events.retain(|event| event.event != "free buffer waits");
    run.foreground_events[1].time_ns /= 2;
    run.io_functions[0].reads.time_ns = run.io_functions[0].reads.time_ns.map(|time_ns| time_ns / 2);
    run
}

fn period(source: &str, arm: Option<&str>, runs: Vec<Record>) -> Period {
    Period { source: source.to_string(), arm: arm.map(String::from), runs, plan: None, request_sizes: None }
}

fn single() -> Comparison {
    explained(Comparison {
        schema_version: COMPARE_SCHEMA_VERSION,
        first: period("plumb-reports/large-sort-xfs", None, vec![large_sort()]),
        second: period("plumb-reports/large-sort-ext4", None, vec![changed()]),
        pairing: Pairing::Single,
        alpha: 0.05,
        judged: Vec::new(),
        remarks: Vec::new(),
        differences: Vec::new(),
        explanation: None,
    })
}

fn explained(mut comparison: Comparison) -> Comparison {
    let (first, second) = (&comparison.first.runs, &comparison.second.runs);
    comparison.explanation = plumb_study::compare::explanation(first, second, comparison.pairing);
    comparison
}

/// Eight pairs; the test leaves every third figure open.
fn paired() -> Comparison {
    let run = |base: Record, index: u64| {
        let mut run = base;
        run.header.elapsed_ns += index * 37_000_000 % 190_000_000;
        run
    };
    let first = (0..8).map(|index| run(large_sort(), index)).collect::<Vec<_>>();
    let second = (0..8).map(|index| run(changed(), index)).collect::<Vec<_>>();
    let differences = samples(&first, &second).into_iter().enumerate().map(|(index, sample)| {
        let (one, two) = (sample.first[0], sample.second[0]);
        let ratio = two / one;
        let outcome = match () {
            () if two == 0.0 => Outcome::Gone,
            () if sample.first.iter().chain(&sample.second).all(|value| *value == one) => Outcome::Same,
            () if index % 3 == 2 => Outcome::Open,
            () if ratio < 1.0 => Outcome::Lower,
            () => Outcome::Higher,
        };
        let tested = matches!(outcome, Outcome::Open | Outcome::Higher | Outcome::Lower);
        let (low, high) = (tested.then_some(ratio * 0.98), tested.then_some(ratio * 1.03));
        let p = tested.then_some(if outcome == Outcome::Open { 0.31 } else { 0.0078 });
        Difference {
            group: sample.group,
            name: sample.name,
            ratio: Some(ratio),
            low,
            high,
            p,
            runs: 8,
            outcome,
        }
    });
    explained(Comparison {
        differences: differences.collect(),
        first: period("studies/parallel", Some("async=FALSE direct=FALSE area=1M"), first),
        second: period("studies/parallel", Some("async=FALSE direct=TRUE area=1M"), second),
        pairing: Pairing::Blocks,
        judged: vec![Judged {
            measure: Measure::elapsed(),
            claim: None,
            verdict: Verdict::Faster(Change { percent: 38.7, low: 37.9, high: 39.5 }),
            asked_only: false,
            reasons: vec![
                "adjusted p = 0.0078 over 1 claims and 8 blocks, interval clear of no effect".to_string(),
            ],
        }],
        ..single()
    })
}

fn invalid() -> Comparison {
    let mut comparison = single();
    comparison.second.runs[0].receipts[0].held = Held::Contradicted;
    comparison.second.runs[0].header.seed = Some(7);
    comparison
}

#[test]
fn comparisons_read_like_an_awr_compare_period_report() {
    insta::assert_snapshot!("compare_text_single", text::render(&document(&single())));
    insta::assert_snapshot!("compare_text_paired", text::render(&document(&paired())));
    let head = text::render(&document(&invalid())).lines().take(8).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!("compare_text_invalid", head);
    let (head, _) = html::body(&document(&paired()))
        .split_once("<section id=\"hosts\"")
        .map(|(head, _)| (head.to_string(), ()))
        .unwrap();
    insta::assert_snapshot!("compare_html_head", head);
}

#[test]
fn text_stays_within_its_columns() {
    for comparison in [single(), paired(), invalid()] {
        for line in text::render(&document(&comparison)).lines() {
            assert!(line.chars().count() <= text::WIDTH, "too long: {line}");
            assert_eq!(line.trim_end(), line, "trailing blanks");
        }
    }
}

/// Returns the `%Diff` cells of the measured tables, by the row's name.
fn percents(comparison: &Comparison) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for section in sections(comparison).iter().filter(|section| section.id != "memory") {
        for block in &section.blocks {
            let plumb_report::Block::Table(table) = block else { continue };
            let Some(column) = table.columns.iter().position(|column| column.title == "%Diff") else {
                continue;
            };
            found.extend(
                table.rows.iter().map(|row| (row.cells[0].text.clone(), row.cells[column].text.clone())),
            );
        }
    }
    found
}

#[test]
fn a_difference_that_may_be_noise_is_blank() {
    assert!(percents(&single()).len() > 20);
    assert!(percents(&single()).iter().all(|(_, shown)| shown.is_empty()), "{:?}", percents(&single()));
    let comparison = paired();
    let open = |name: &str| {
        comparison.differences.iter().any(|found| found.name == name && found.outcome != Outcome::Open)
    };
    let shown = percents(&comparison);
    assert!(shown.iter().any(|(_, shown)| !shown.is_empty()));
    for (name, shown) in shown {
        assert_eq!(!shown.is_empty(), open(&name), "{name}: {shown}");
    }
    for difference in &comparison.differences {
        let blank = percent(Some(difference)).text.is_empty();
        assert_eq!(blank, difference.outcome == Outcome::Open, "{difference:?}");
    }
}

#[test]
fn a_difference_from_nearly_nothing_is_blank() {
    let of = |ratio: f64, outcome| {
        let difference = Difference {
            group: FigureGroup::Time,
            name: "Background CPU".to_string(),
            ratio: Some(ratio),
            low: None,
            high: None,
            p: None,
            runs: 1,
            outcome,
        };
        percent(Some(&difference)).text
    };
    assert_eq!(of(2011.556, Outcome::Raw), "");
    assert_eq!(of(100.1, Outcome::Higher), "");
    assert_eq!(of(100.0, Outcome::Raw), "(+9,900.0)");
    assert_eq!(of(0.0, Outcome::Gone), "-100.0");
}

#[test]
fn a_quotient_without_denominator_is_blank() {
    let mut comparison = single();
    let commits = StatisticRow { name: "user commits".to_string(), total: 20_000, unit: Unit::Count };
    comparison.first.runs[0].statistics.push(commits);
    comparison.second.runs[0].io_devices[0].writes = IoTally::default();
    let raw = |sample: plumb_study::compare::Sample| Difference {
        ratio: Some(sample.second[0] / sample.first[0]).filter(|ratio| ratio.is_finite()),
        group: sample.group,
        name: sample.name,
        low: None,
        high: None,
        p: None,
        runs: 1,
        outcome: Outcome::Raw,
    };
    comparison.differences =
        samples(&comparison.first.runs, &comparison.second.runs).into_iter().map(raw).collect();
    let [load, devices] = ["load-profile", "devices"].map(|id| section_text(&comparison, id));
    insta::assert_snapshot!(format!("{load}\n{devices}"));
}

#[test]
fn background_and_foreground_events_are_distinguished() {
    let mut comparison = single();
    for period in [&mut comparison.first, &mut comparison.second] {
        let run = &mut period.runs[0];
        let write = WaitEvent { event: "log file parallel write".into(), ..run.foreground_events[0].clone() };
        run.background_events.retain(|event| event.event != write.event);
        run.foreground_events.push(write.clone());
        run.background_events.push(write);
    }
    let histograms = sections(&comparison).into_iter().find(|section| section.id == "histograms");
    let blocks = histograms.expect("there are waits").blocks;
    let rows = blocks.iter().find_map(|block| match block {
        plumb_report::Block::Table(table) => Some(&table.rows),
        _ => None,
    });
    let named = rows.expect("a table").iter().map(|row| row.cells[0].text.as_str());
    let mut named: Vec<&str> = named.filter(|name| name.starts_with("log file parallel write")).collect();
    named.sort_unstable();
    assert_eq!(named, ["log file parallel write", "log file parallel write (background)"]);
}

#[test]
fn every_figure_of_either_side_is_a_sample() {
    let samples = samples(&[large_sort()], &[changed()]);
    let names = |group| {
        samples
            .iter()
            .filter(|sample| sample.group == group)
            .map(|sample| sample.name.as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(FigureGroup::Time), ["Elapsed", "DB Time", "DB CPU", "Background CPU"]);
    assert!(names(FigureGroup::Event).contains(&"free buffer waits"), "an event of one side only");
    assert!(!names(FigureGroup::Event).contains(&"PX Deq: Execute Reply"), "an idle event");
    let free = samples.iter().find(|sample| sample.name == "free buffer waits").unwrap();
    assert_eq!((free.first.as_slice(), free.second.as_slice()), (&[0.47][..], &[0.0][..]));
}

/// Returns the text of the named section.
fn section_text(comparison: &Comparison, id: &str) -> String {
    let section = sections(comparison).into_iter().find(|section| section.id == id).expect("it");
    crate::section_text(&section, &document(comparison))
}

#[test]
fn disturbed_runs_are_reported_in_headline_and_state() {
    let found = |fact, share, evidence: &str| Circumstance {
        fact,
        share,
        threshold: 0.1,
        doubtful: true,
        evidence: evidence.to_string(),
    };
    let device = |share| found(Fact::Device, share, &format!("{:.0}% of its writes", 100.0 * share));
    let mut comparison = single();
    comparison.first.runs[0].circumstances =
        Some(vec![device(0.96), found(Fact::PageCache, 0.94, "94% of the bytes read")]);
    let mut pairs = paired();
    for (run, share) in [(1, 0.3), (2, 0.5), (6, 0.4)] {
        pairs.second.runs[run].circumstances = Some(vec![device(share)]);
    }
    let shown = [comparison, pairs].map(|comparison| {
        let text = text::render(&document(&comparison));
        let head = text.lines().skip(1).take_while(|line| !line.is_empty()).collect::<Vec<_>>();
        format!("{}\n\n{}\n", head.join("\n"), section_text(&comparison, "sets"))
    });
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn parameters_of_the_workload_that_differ_stand_before_settings() {
    let mut comparison = single();
    comparison.second.runs[0].parameters[0].value = "20000000".to_string();
    let both = section_text(&comparison, "settings");
    let mut older = comparison.clone();
    older.first.runs[0].parameters.clear();
    let mut same = comparison;
    same.second.runs = same.first.runs.clone();
    let mut commands = same.clone();
    for period in [&mut commands.first, &mut commands.second] {
        period.runs[0].parameters.clear();
    }
    let [older, same, commands] = [older, same, commands].map(|one| section_text(&one, "settings"));
    insta::assert_snapshot!([both, older, same, commands].join("\n"));
}

#[test]
fn runs_ending_by_clock_explain_an_operations_time() {
    let mut comparison = single();
    for (period, statements) in [(&mut comparison.first, 20_000), (&mut comparison.second, 15_000)] {
        let run = &mut period.runs[0];
        let row = |name: &str, value: &str| ParameterRow { name: name.into(), value: value.into() };
        run.parameters = vec![row("run-time", "10s"), row("work-loop", "0")];
        run.statistics.push(StatisticRow {
            name: "execute count".to_string(),
            total: statements,
            unit: Unit::Count,
        });
    }
    insta::assert_snapshot!(section_text(&explained(comparison), "explanation"));
}

#[test]
fn a_browser_shows_it_and_no_script_fails() {
    let Some(browser) = browser::browser() else { return };
    for (name, comparison) in [("compare.html", paired()), ("compare-single.html", single())] {
        let dom = browser::dom(&browser, name, &html::render(&document(&comparison)));
        assert!(!dom.contains("data-errors="), "a script failed: {}", &dom[..400]);
    }
}
