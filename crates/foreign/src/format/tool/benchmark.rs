//! Results of benchmarks: pgbench, sysbench, ORION, CALIBRATE_IO and v$iostat_file.
//!
//! pgbench computes its average latency from the rate, unless it measured each transaction (`-P`,
//! `-l`, `--rate`): then the two differ by the time between transactions.
//!
//! sysbench prints rates in brackets behind their totals.
//!
//! ORION's latencies are milliseconds in 11.1 and say `usecs` from 11.2 on.

use super::lines::{self, Between, LineFormat, LineTable, seconds_cell};
use crate::figure::check::{Rule, Sides};
use crate::figure::sheet::{Figure, Printed, Remark, Sheet, SheetRow, added};
use crate::figure::shown::scaled;
use crate::format::sections::table;
use crate::reader::{Begins, Fill, Reader};
use crate::report::Report;
use plumb_figures::Quantity;
use plumb_figures::relation::Test;
use plumb_record::{Consistency, ImportedFigure};
use plumb_units::ValueRange;

/// The readers of the benchmarks.
pub(super) const READERS: [Reader; 4] = [
    Reader::new("pgbench", Begins::Ranges(|part| lines::ranges(part, &PGBENCH)), |part| {
        of_pgbench(lines::read(part, &PGBENCH))
    })
    .checked(pgbench_checks)
    .filling(|report| printed(report, "pgbench"), Fill::Derived),
    Reader::new("sysbench", Begins::Ranges(|part| lines::ranges(part, &SYSBENCH)), |part| {
        of_sysbench(lines::read(part, &SYSBENCH))
    })
    .checked(sysbench_checks)
    .filling(|report| printed(report, "sysbench"), Fill::Derived),
    Reader::new("ORION", Begins::Ranges(|part| lines::ranges(part, &ORION)), |part| {
        titled(lines::read(part, &ORION), "ORION")
    })
    .checked(orion_checks)
    .filling(|report| printed(report, "orion"), Fill::Derived),
    Reader::new("I/O calibration", Begins::Ranges(|part| lines::ranges(part, &CALIBRATION)), |part| {
        titled(lines::read(part, &CALIBRATION), "I/O CALIBRATION")
    })
    .checked(calibration_checks)
    .filling(|report| printed(report, "calibrated"), Fill::Derived),
];

fn titled(mut report: Report, title: &str) -> Report {
    report.run.title = title.to_string();
    report
}

static PGBENCH: LineFormat =
    LineFormat { tables: &[], pairs: "pgbench", aside: of_statement, stamped: false };

/// Lines of progress and of statements, which have columns without a head.
fn of_statement(line: u32, text: &str, report: &mut Report) -> bool {
    let text = text.trim();
    let printed = |raw: &str| Printed { raw: raw.to_string(), line };
    if let Some(progress) = text.strip_prefix("progress: ") {
        // 1.0 s, 1918.9 tps, lat 1.022 ms stddev 1.943, 0 failed
        let words: Vec<&str> = progress.split([' ', ',']).filter(|word| !word.is_empty()).collect();
        let behind = |name: &str| {
            let at = words.iter().position(|word| *word == name);
            printed(at.and_then(|at| words.get(at + 1)).unwrap_or(&""))
        };
        let before = |name: &str| {
            let at = words.iter().position(|word| *word == name).and_then(|at| at.checked_sub(1));
            printed(at.map_or("", |at| words[at]))
        };
        let cells = vec![before("s"), before("tps"), behind("lat"), behind("stddev"), before("failed")];
        sheet_of(report, "pgbench_progress", line).push(line, cells);
        return true;
    }
    let errors = ["pgbench: error", "pgbench: fatal", "Run was aborted"];
    if errors.iter().any(|head| text.starts_with(head)) {
        report.failed.push(Remark { line, text: text.to_string() });
        return true;
    }
    let is_head = ["pgbench (", "starting vacuum", "statement latencies", "vacuuming", "end."];
    if is_head.iter().any(|head| text.starts_with(head)) {
        return true;
    }
    // 0.104  0  UPDATE ...; without the failures before version 15.
    let (latency, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim_start();
    let (failures, statement) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_latency = latency.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 3)
        && latency.parse::<f64>().is_ok();
    if !is_latency || rest.is_empty() {
        return false;
    }
    let has_failures = failures.parse::<u64>().is_ok();
    let (failures, statement) = if has_failures { (failures, statement.trim()) } else { ("", rest) };
    sheet_of(report, "pgbench_statements", line)
        .push(line, vec![printed(latency), printed(failures), printed(statement)]);
    true
}

/// The table of a section, which is made where there is none.
fn sheet_of<'r>(report: &'r mut Report, section: &'static str, line: u32) -> &'r mut Sheet {
    let at = report.sheets.iter().position(|sheet| sheet.section == section).unwrap_or_else(|| {
        report.sheets.push(table(section, line));
        report.sheets.len() - 1
    });
    &mut report.sheets[at]
}

/// The interval is the transactions over their rate, because a run ends behind its duration.
fn of_pgbench(mut report: Report) -> Report {
    let Some((sheet, row)) = report.rows("pgbench").next() else { return report };
    let script = sheet.text(row, "script").to_string();
    let [transactions, rate] = ["transactions", "rate"].map(|key| sheet.figure(row, key));
    let seconds = transactions.as_ref().zip(rate.as_ref()).map(|(all, rate)| all.value / rate.value);
    let seconds = seconds.filter(|seconds| seconds.is_finite());
    let cell = seconds.map(|seconds| seconds_cell(seconds, seconds * 1e-6, sheet.line));
    let duration = sheet.cell(row, "duration").cloned();
    let failed = sheet.figure(row, "failed").filter(|failed| failed.value > 0.0);
    report.run.elapsed = cell.or(duration);
    report.run.workload = script;
    answer(
        &mut report,
        "pgbench",
        [
            ("tps", "rate"),
            ("mean", "latency"),
            ("deviation", "deviation"),
            ("clients", "clients"),
            ("transactions", "transactions"),
            ("failed", "failed"),
        ],
    );
    report.failed.extend(
        failed
            .map(|failed| Remark { line: failed.line, text: format!("{} transactions failed", failed.raw) }),
    );
    titled(report, "PGBENCH")
}

fn sheet_has(report: &Report, key: &str) -> bool {
    report.rows("sysbench").any(|(sheet, row)| sheet.figure(row, key).is_some())
}

/// Answers with the first of these figures, and the others aside.
fn answer(
    report: &mut Report,
    section: &'static str,
    keys: impl IntoIterator<Item = (&'static str, &'static str)>,
) {
    let Some((sheet, row)) = report.rows(section).next() else { return };
    let shown = |(name, key): (&'static str, &'static str)| {
        let figure = sheet.figure(row, key)?;
        let shown = if figure.unit == "s" { scaled(figure.value, "s") } else { figure.raw };
        Some((name, shown))
    };
    let found: Vec<(&str, String)> = keys.into_iter().filter_map(shown).collect();
    let Some(((name, value), rest)) = found.split_first() else { return };
    let (name, value) = (name.to_string(), value.clone());
    let aside: Vec<String> = rest.iter().map(|(name, text)| format!("{name} {text}")).collect();
    report.answer(&name, value, aside.join(", "));
}

const CLIENTS: Rule = Rule::new(
    "tps x latency <= clients",
    "Little's law: transactions a second x their time is the number at work, which are the clients at most",
);
const DURATION: Rule = Rule::new(
    "transactions / tps >= duration",
    "a run ends when its last transaction does; its start is the last client's connection",
);
const PARTS: Rule = Rule::new(
    "statements <= transaction",
    "sum of the times of the statements <= average time of a transaction",
);

fn pgbench_checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    let statements: Vec<Figure> =
        report.rows("pgbench_statements").filter_map(|(sheet, row)| sheet.figure(row, "latency")).collect();
    for (sheet, row) in report.rows("pgbench") {
        let of = sheet.text(row, "script");
        let figure = |key: &str| sheet.figure(row, key);
        let busy = ["rate", "latency", "clients"].map(figure);
        checks.extend(CLIENTS.ask(of, busy, Test::AtMost, outstanding));
        // Connecting is part of the duration, and not of the rate.
        let connecting = figure("connecting").map_or(1.0, |figure| figure.range.high);
        let run = ["transactions", "rate", "duration"].map(figure);
        checks.extend(DURATION.ask(of, run, Test::AtMost, |[all, rate, duration]| {
            let low = (duration.middle() - connecting).max(0.0);
            Some([all.over(rate)?, ValueRange { low, high: f64::MAX }])
        }));
        if let (Some(latency), false) = (figure("latency"), statements.is_empty()) {
            let found = added(&statements);
            let figures: Vec<&Figure> = statements.iter().chain([&latency]).collect();
            let sides = Sides { expected: latency.range, found, unit: "s" };
            checks.push(PARTS.at_most(of, sides, &figures));
        }
    }
    checks
}

/// Little's law: requests in flight by their rate and time, and those that there can be.
fn outstanding([rate, time, most]: [ValueRange; 3]) -> Option<[ValueRange; 2]> {
    Some([most, rate.times(time)])
}

/// The figures of a run under the headings that the report has.
fn printed(report: &Report, section: &'static str) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for (sheet, row) in report.rows(section) {
        let keyed = sheet.columns.iter().filter(|column| column.unit.quantity != Quantity::Text);
        found.extend(keyed.filter_map(|column| {
            let figure = sheet.figure(row, column.key)?;
            Some(ImportedFigure { name: column.name.clone(), ..ImportedFigure::from(&figure) })
        }));
    }
    found
}

static SYSBENCH: LineFormat = LineFormat {
    tables: &[],
    pairs: "sysbench",
    aside: |line, text, report| {
        let text = text.trim();
        if text.starts_with("FATAL:") || text.starts_with("ALERT:") {
            report.failed.push(Remark { line, text: text.to_string() });
        }
        let heads = [
            "sysbench ",
            "Running the test",
            "Initializing",
            "Threads started",
            "SQL statistics",
            "General statistics",
            "Latency (",
            "response time",
            "Threads fairness",
            "events (avg",
            "execution time",
            "File operations",
            "Throughput",
            "CPU speed",
            "FATAL:",
            "ALERT:",
        ];
        heads.iter().any(|head| text.starts_with(head))
    },
    stamped: false,
};

fn of_sysbench(mut report: Report) -> Report {
    let Some((sheet, row)) = report.rows("sysbench").next() else { return report };
    let elapsed = sheet.cell(row, "time").cloned();
    let errors = sheet.figure(row, "errors").filter(|errors| errors.value > 0.0);
    report.failed.extend(
        errors.map(|errors| Remark {
            line: errors.line,
            text: format!("{} errors were ignored", errors.value),
        }),
    );
    report.run.elapsed = elapsed;
    report.run.workload = "sysbench".to_string();
    let rate = if sheet_has(&report, "transactions_rate") {
        ("tps", "transactions_rate")
    } else {
        ("events/s", "rate")
    };
    let rest =
        [("mean", "latency"), ("p95", "p95"), ("p99", "p99"), ("threads", "threads"), ("errors", "errors")];
    answer(&mut report, "sysbench", std::iter::once(rate).chain(rest));
    titled(report, "SYSBENCH")
}

const PER_SECOND: Rule =
    Rule::new("total / time = per second", "a total over the total time is the rate behind it");
const MEAN: Rule =
    Rule::new("sum / events = average", "the sum of all latencies over the events is the average");

fn sysbench_checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (sheet, row) in report.rows("sysbench") {
        let figure = |key: &str| sheet.figure(row, key);
        for (key, rate) in [("transactions", "transactions_rate"), ("queries", "queries_rate")] {
            let figures = [key, "time", rate].map(figure);
            checks.extend(PER_SECOND.ask(key, figures, Test::Equal, |[total, time, rate]| {
                let ValueRange { low, high } = total.over(time)?;
                // The rate is of the seconds until the last thread ends, which print a little more.
                Some([ValueRange { low: low * 0.999, high: high * 1.001 }, rate])
            }));
        }
        let sum = ["sum", "events", "latency"].map(figure);
        checks.extend(
            MEAN.ask("latency", sum, Test::Equal, |[sum, events, mean]| Some([sum.over(events)?, mean])),
        );
        let busy = ["transactions_rate", "latency", "threads"].map(figure);
        checks.extend(CLIENTS.ask("transactions", busy, Test::AtMost, outstanding));
    }
    checks
}

static ORION: LineFormat = LineFormat {
    tables: &[LineTable {
        section: "orion_matrix",
        between: Between::Commas,
        needs: &["Large/Small"],
        loose: "",
    }],
    pairs: "orion",
    aside: |_, text, _| {
        let text = text.trim();
        let known = [
            "Calibration will take",
            "Using a large value",
            "Setting ftype",
            "Name:",
            "These options",
            "```",
        ];
        known.iter().any(|known| text.starts_with(known)) || text.starts_with("orion_")
    },
    stamped: false,
};

const OUTSTANDING: Rule = Rule::new(
    "IOPS x latency <= outstanding",
    "Little's law: requests a second x the least time of one <= the requests that were outstanding",
);

fn orion_checks(report: &Report) -> Vec<Consistency> {
    let of_row = |(sheet, row): (&Sheet, &SheetRow)| {
        let figures = ["rate", "latency", "rate_small"].map(|key| sheet.figure(row, key));
        OUTSTANDING.ask("Maximum Small IOPS", figures, Test::AtMost, outstanding)
    };
    report.rows("orion").filter_map(of_row).collect()
}

static CALIBRATION: LineFormat = LineFormat {
    tables: &[
        LineTable {
            section: "iostat_file",
            between: Between::Tabs,
            needs: &["FILE_NAME", "ASYNCH_IO"],
            loose: "",
        },
        LineTable {
            section: "iostat_file",
            between: Between::Blanks,
            needs: &["FILE_NAME", "ASYNCH_IO"],
            loose: "",
        },
        LineTable {
            section: "iostat_file",
            between: Between::Tabs,
            needs: &["FILE_NO", "ASYNCH_IO"],
            loose: "",
        },
        LineTable {
            section: "iostat_file",
            between: Between::Blanks,
            needs: &["FILE_NO", "ASYNCH_IO"],
            loose: "",
        },
    ],
    pairs: "calibrated",
    // The ruler of SQL*Plus, and its echo.
    aside: |_, text, _| {
        text.bytes().all(|byte| matches!(byte, b'-' | b' ' | b'\t')) || text.trim_start().starts_with("SQL>")
    },
    stamped: false,
};

const ONE_PROCESS: Rule = Rule::new("one process <= all", "throughput of a single process <= that of all");
const SMALL: Rule = Rule::new(
    "a small read is small",
    "bytes of small reads / small reads <= 128 KB, which is what small means",
);

fn calibration_checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (sheet, row) in report.rows("calibrated") {
        let figures = ["process_throughput", "throughput"].map(|key| sheet.figure(row, key));
        checks.extend(ONE_PROCESS.ask("MAX_PMBPS", figures, Test::AtMost, |[one, all]| Some([all, one])));
    }
    for (sheet, row) in report.rows("iostat_file") {
        let figures = ["small_reads", "small_read_bytes"].map(|key| sheet.figure(row, key));
        checks.extend(SMALL.ask(sheet.text(row, "number"), figures, Test::AtMost, |[reads, bytes]| {
            Some([ValueRange { low: 0.0, high: 131_072.0 }, bytes.over(reads)?])
        }));
    }
    checks
}
