//! Results of benchmarks: pgbench, sysbench, ORION, CALIBRATE_IO and v$iostat_file.
//!
//! pgbench computes its average latency from the rate, unless it measured each transaction (`-P`,
//! `-l`, `--rate`): then the two differ by the time between transactions.
//!
//! sysbench prints rates in brackets behind their totals.
//!
//! ORION's latencies are milliseconds in 11.1 and say `usecs` from 11.2 on.

use super::lines::{self, Between, LineFormat, LineTable, seconds_cell};
use super::rows;
use crate::figure::check::{Rule, Sides};
use crate::figure::sheet::{Figure, Printed, Remark, Section, Sheet, SheetRow, known, words};
use crate::figure::shown::scaled;
use crate::reader::{Begins, Fill, Reader};
use crate::report::Report;
use plumb_figures::{FigureUnit, Quantity};
use plumb_record::{Consistency, ImportedFigure};
use plumb_units::ValueRange;

/// The readers of the benchmarks.
pub(super) const READERS: [Reader; 4] = [
    Reader {
        kind: "pgbench",
        begins: Begins::Ranges(|part| lines::ranges(part, &PGBENCH)),
        read: |part| of_pgbench(lines::read(part, &PGBENCH)),
        check: pgbench_checks,
        derive: |report| printed(report, &PGBENCH_RUN),
        fill: Fill::Derived,
    },
    Reader {
        kind: "sysbench",
        begins: Begins::Ranges(|part| lines::ranges(part, &SYSBENCH)),
        read: |part| of_sysbench(lines::read(part, &SYSBENCH)),
        check: sysbench_checks,
        derive: |report| printed(report, &SYSBENCH_RUN),
        fill: Fill::Derived,
    },
    Reader {
        kind: "ORION",
        begins: Begins::Ranges(|part| lines::ranges(part, &ORION)),
        read: |part| titled(lines::read(part, &ORION), "ORION"),
        check: orion_checks,
        derive: |report| printed(report, &ORION_RUN),
        fill: Fill::Derived,
    },
    Reader {
        kind: "I/O calibration",
        begins: Begins::Ranges(|part| lines::ranges(part, &CALIBRATION)),
        read: |part| titled(lines::read(part, &CALIBRATION), "I/O CALIBRATION"),
        check: calibration_checks,
        derive: |report| printed(report, &CALIBRATED),
        fill: Fill::Derived,
    },
];

fn titled(mut report: Report, title: &str) -> Report {
    report.run.title = title.to_string();
    report
}

static PGBENCH_RUN: Section = Section {
    key: "pgbench",
    headings: &["pgbench"],
    first: &["transaction type"],
    columns: &[
        words("script", &["transaction type"]),
        known("scale", FigureUnit::COUNT, &["scaling factor"]),
        words("mode", &["query mode"]),
        known("clients", FigureUnit::COUNT, &["number of clients"]),
        known("threads", FigureUnit::COUNT, &["number of threads"]),
        known("tries_most", FigureUnit::COUNT, &["maximum number of tries"]),
        known("each", FigureUnit::COUNT, &["number of transactions per client"]),
        known("duration", FigureUnit::S, &["duration"]),
        known("transactions", FigureUnit::COUNT, &["number of transactions actually processed"]),
        known("failed", FigureUnit::COUNT, &["number of failed transactions"]),
        known("skipped", FigureUnit::COUNT, &["number of transactions skipped"]),
        known("latency", FigureUnit::MS, &["latency average"]),
        known("deviation", FigureUnit::MS, &["latency stddev"]),
        known("connecting", FigureUnit::MS, &["initial connection time", "average connection time"]),
        known(
            "rate",
            FigureUnit::PER_S,
            &[
                "tps",
                "tps (without initial connection time)",
                "tps (excluding connections establishing)",
                "tps (including reconnection times)",
            ],
        ),
        known("rate_with_connecting", FigureUnit::PER_S, &["tps (including connections establishing)"]),
    ],
};

static STATEMENTS: Section = Section {
    key: "pgbench_statements",
    headings: &["statement latencies"],
    first: &[],
    columns: &[
        known("latency", FigureUnit::MS, &["latency"]),
        known("failures", FigureUnit::COUNT, &["failures"]),
        words("statement", &["statement"]),
    ],
};

static PROGRESS: Section = Section {
    key: "pgbench_progress",
    headings: &["progress"],
    first: &[],
    columns: &[
        known("second", FigureUnit::S, &["second"]),
        known("rate", FigureUnit::PER_S, &["tps"]),
        known("latency", FigureUnit::MS, &["lat"]),
        known("deviation", FigureUnit::MS, &["stddev"]),
        known("failed", FigureUnit::COUNT, &["failed"]),
    ],
};

static PGBENCH: LineFormat =
    LineFormat { tables: &[], pairs: Some(&PGBENCH_RUN), aside: of_statement, stamped: false };

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
        sheet_of(report, &PROGRESS, line).push(line, cells);
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
    sheet_of(report, &STATEMENTS, line)
        .push(line, vec![printed(latency), printed(failures), printed(statement)]);
    true
}

/// The table of a section, which is made where there is none.
fn sheet_of<'r>(report: &'r mut Report, section: &'static Section, line: u32) -> &'r mut Sheet {
    let at = report.sheets.iter().position(|sheet| sheet.section == section.key).unwrap_or_else(|| {
        let heading = Printed { raw: section.headings[0].to_string(), line };
        let names = section.columns.iter().map(|column| column.headings[0].to_string()).collect();
        report.sheets.push(Sheet::new(Some(section), heading, names));
        report.sheets.len() - 1
    });
    &mut report.sheets[at]
}

/// The interval is the transactions over their rate, because a run ends behind its duration.
fn of_pgbench(mut report: Report) -> Report {
    let Some((sheet, row)) = rows(&report, PGBENCH_RUN.key).next() else { return report };
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
        &PGBENCH_RUN,
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
    rows(report, SYSBENCH_RUN.key).any(|(sheet, row)| sheet.figure(row, key).is_some())
}

/// Answers with the first of these figures, and the others aside.
fn answer(
    report: &mut Report,
    section: &'static Section,
    keys: impl IntoIterator<Item = (&'static str, &'static str)>,
) {
    let Some((sheet, row)) = rows(report, section.key).next() else { return };
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

const CLIENTS: Rule = Rule {
    name: "tps x latency <= clients",
    arithmetic: "Little's law: transactions a second x their time is the number at work, which are the clients at most",
};
const DURATION: Rule = Rule {
    name: "transactions / tps >= duration",
    arithmetic: "a run ends when its last transaction does; its start is the last client's connection",
};
const PARTS: Rule = Rule {
    name: "statements <= transaction",
    arithmetic: "sum of the times of the statements <= average time of a transaction",
};

fn pgbench_checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    let statements: Vec<Figure> =
        rows(report, STATEMENTS.key).filter_map(|(sheet, row)| sheet.figure(row, "latency")).collect();
    for (sheet, row) in rows(report, PGBENCH_RUN.key) {
        let of = sheet.text(row, "script");
        let figure = |key: &str| sheet.figure(row, key);
        if let (Some(rate), Some(latency), Some(clients)) =
            (figure("rate"), figure("latency"), figure("clients"))
        {
            let found = rate.range.times(latency.range);
            let sides = Sides { expected: clients.range, found, unit: "" };
            checks.push(CLIENTS.at_most(of, sides, &[&rate, &latency, &clients]));
        }
        if let (Some(all), Some(rate), Some(duration)) =
            (figure("transactions"), figure("rate"), figure("duration"))
            && let Some(expected) = all.range.over(rate.range)
        {
            // Connecting is part of the duration, and not of the rate.
            let connecting = figure("connecting").map_or(1.0, |figure| figure.range.high);
            let low = (duration.value - connecting).max(0.0);
            let sides = Sides { expected, found: ValueRange { low, high: f64::MAX }, unit: "s" };
            checks.push(DURATION.at_most(of, sides, &[&all, &rate, &duration]));
        }
        if let (Some(latency), false) = (figure("latency"), statements.is_empty()) {
            let found = statements.iter().fold(ValueRange::exactly(0.0), |sum, part| sum.plus(part.range));
            let figures: Vec<&Figure> = statements.iter().chain([&latency]).collect();
            let sides = Sides { expected: latency.range, found, unit: "s" };
            checks.push(PARTS.at_most(of, sides, &figures));
        }
    }
    checks
}

/// The figures of a run under the headings that the report has.
fn printed(report: &Report, section: &'static Section) -> Vec<ImportedFigure> {
    let mut found = Vec::new();
    for (sheet, row) in rows(report, section.key) {
        let keyed = sheet.columns.iter().filter(|column| column.unit.quantity != Quantity::Text);
        found.extend(keyed.filter_map(|column| {
            let figure = sheet.figure(row, column.key)?;
            Some(ImportedFigure { name: column.name.clone(), ..ImportedFigure::from(&figure) })
        }));
    }
    found
}

static SYSBENCH_RUN: Section = Section {
    key: "sysbench",
    headings: &["sysbench"],
    first: &["Number of threads", "queries performed", "total time"],
    columns: &[
        known("threads", FigureUnit::COUNT, &["Number of threads"]),
        words("performed", &["queries performed"]),
        known("read_queries", FigureUnit::COUNT, &["read"]),
        known("write_queries", FigureUnit::COUNT, &["write"]),
        known("other_queries", FigureUnit::COUNT, &["other"]),
        known("total_queries", FigureUnit::COUNT, &["total"]),
        known("transactions", FigureUnit::COUNT, &["transactions"]),
        known("transactions_rate", FigureUnit::PER_S, &["transactions per second"]),
        known("queries", FigureUnit::COUNT, &["queries", "read/write requests"]),
        known("queries_rate", FigureUnit::PER_S, &["queries per second", "read/write requests per second"]),
        known("errors", FigureUnit::COUNT, &["ignored errors", "deadlocks"]),
        known("reconnects", FigureUnit::COUNT, &["reconnects"]),
        known("reads", FigureUnit::PER_S, &["reads/s"]),
        known("writes", FigureUnit::PER_S, &["writes/s"]),
        known("syncs", FigureUnit::PER_S, &["fsyncs/s"]),
        known("read_bytes", FigureUnit::MB_PER_S, &["read, MiB/s"]),
        known("written_bytes", FigureUnit::MB_PER_S, &["written, MiB/s"]),
        known("rate", FigureUnit::PER_S, &["events per second", "events/s (eps)"]),
        known("time", FigureUnit::S, &["total time", "time elapsed"]),
        known("events", FigureUnit::COUNT, &["total number of events"]),
        known("least", FigureUnit::MS, &["min"]),
        known("latency", FigureUnit::MS, &["avg"]),
        known("most", FigureUnit::MS, &["max"]),
        known("p95", FigureUnit::MS, &["95th percentile", "approx.  95 percentile", "approx. 95 percentile"]),
        known("p99", FigureUnit::MS, &["99th percentile", "approx.  99 percentile", "approx. 99 percentile"]),
        known("sum", FigureUnit::MS, &["sum"]),
    ],
};

static SYSBENCH: LineFormat = LineFormat {
    tables: &[],
    pairs: Some(&SYSBENCH_RUN),
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
    let Some((sheet, row)) = rows(&report, SYSBENCH_RUN.key).next() else { return report };
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
    answer(&mut report, &SYSBENCH_RUN, std::iter::once(rate).chain(rest));
    titled(report, "SYSBENCH")
}

const PER_SECOND: Rule = Rule {
    name: "total / time = per second",
    arithmetic: "a total over the total time is the rate behind it",
};
const MEAN: Rule = Rule {
    name: "sum / events = average",
    arithmetic: "the sum of all latencies over the events is the average",
};

fn sysbench_checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (sheet, row) in rows(report, SYSBENCH_RUN.key) {
        let figure = |key: &str| sheet.figure(row, key);
        for (key, rate) in [("transactions", "transactions_rate"), ("queries", "queries_rate")] {
            if let (Some(total), Some(rate), Some(time)) = (figure(key), figure(rate), figure("time"))
                && let Some(expected) = total.range.over(time.range)
            {
                // The rate is of the seconds until the last thread ends, which print a little more.
                let expected = ValueRange { low: expected.low * 0.999, high: expected.high * 1.001 };
                let sides = Sides { expected, found: rate.range, unit: "/s" };
                checks.push(PER_SECOND.meets(key, sides, &[&total, &time, &rate]));
            }
        }
        if let (Some(sum), Some(events), Some(latency)) = (figure("sum"), figure("events"), figure("latency"))
            && let Some(expected) = sum.range.over(events.range)
        {
            let sides = Sides { expected, found: latency.range, unit: "s" };
            checks.push(MEAN.meets("latency", sides, &[&sum, &events, &latency]));
        }
        if let (Some(rate), Some(latency), Some(threads)) =
            (figure("transactions_rate"), figure("latency"), figure("threads"))
        {
            let found = rate.range.times(latency.range);
            let sides = Sides { expected: threads.range, found, unit: "" };
            checks.push(CLIENTS.at_most("transactions", sides, &[&rate, &latency, &threads]));
        }
    }
    checks
}

const MBPS: FigureUnit = FigureUnit::MB_PER_S;

static ORION_RUN: Section = Section {
    key: "orion",
    headings: &["ORION"],
    first: &["ORION", "ORION VERSION", "Maximum Large MBPS", "Maximum Small IOPS"],
    columns: &[
        words("version", &["ORION", "ORION VERSION"]),
        words("command", &["Command line", "Commandline"]),
        known("throughput", MBPS, &["Maximum Large MBPS"]),
        known("throughput_small", FigureUnit::COUNT, &["Maximum Large MBPS @ Small"]),
        known("throughput_large", FigureUnit::COUNT, &["Maximum Large MBPS @ Large"]),
        known("rate", FigureUnit::PER_S, &["Maximum Small IOPS"]),
        known("rate_small", FigureUnit::COUNT, &["Maximum Small IOPS @ Small"]),
        known("rate_large", FigureUnit::COUNT, &["Maximum Small IOPS @ Large"]),
        known("latency", FigureUnit::MS, &["Minimum Small Latency"]),
        known("latency_small", FigureUnit::COUNT, &["Minimum Small Latency @ Small"]),
        known("latency_large", FigureUnit::COUNT, &["Minimum Small Latency @ Large"]),
        words("small_size", &["Small IO size"]),
        words("large_size", &["Large IO size"]),
        words("types", &["IO types", "IO Types"]),
        words("layout", &["Simulated Array Type", "Simulated array type"]),
        known("stripe", FigureUnit::BYTES, &["Stripe Depth"]),
        known("written", FigureUnit::PERCENT, &["Write"]),
        words("cache", &["Cache Size"]),
        words("duration", &["Duration for each Data Point", "Duration"]),
    ],
};

/// The matrix of a CSV file: a row a number of outstanding large requests, a column of small ones.
static ORION_MATRIX: Section = Section {
    key: "orion_matrix",
    headings: &["Large/Small"],
    first: &[],
    columns: &[known("large", FigureUnit::COUNT, &["Large/Small"])],
};

static ORION: LineFormat = LineFormat {
    tables: &[LineTable {
        section: &ORION_MATRIX,
        between: Between::Commas,
        needs: &["Large/Small"],
        loose: "",
    }],
    pairs: Some(&ORION_RUN),
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

const OUTSTANDING: Rule = Rule {
    name: "IOPS x latency <= outstanding",
    arithmetic: "Little's law: requests a second x the least time of one <= the requests that were outstanding",
};

fn orion_checks(report: &Report) -> Vec<Consistency> {
    let of_row = |(sheet, row): (&Sheet, &SheetRow)| {
        let figure = |key: &str| sheet.figure(row, key);
        let (rate, latency, small) = (figure("rate")?, figure("latency")?, figure("rate_small")?);
        let found = rate.range.times(latency.range);
        let sides = Sides { expected: small.range, found, unit: "" };
        Some(OUTSTANDING.at_most("Maximum Small IOPS", sides, &[&rate, &latency, &small]))
    };
    rows(report, ORION_RUN.key).filter_map(of_row).collect()
}

static CALIBRATED: Section = Section {
    key: "calibrated",
    headings: &["I/O calibration"],
    first: &["max_iops", "START_TIME"],
    columns: &[
        words("begin", &["START_TIME"]),
        words("end", &["END_TIME"]),
        known("rate", FigureUnit::PER_S, &["MAX_IOPS", "max_iops"]),
        known("throughput", MBPS, &["MAX_MBPS", "max_mbps"]),
        known("process_throughput", MBPS, &["MAX_PMBPS", "max_pmbps"]),
        known("latency", FigureUnit::MS, &["LATENCY", "actual_latency"]),
        known("disks", FigureUnit::COUNT, &["NUM_PHYSICAL_DISKS"]),
    ],
};

static FILES: Section = Section {
    key: "iostat_file",
    headings: &["v$iostat_file"],
    first: &[],
    columns: &[
        known("number", FigureUnit::COUNT, &["FILE_ID", "FILE_NO"]),
        words("file", &["FILE_NAME", "FILETYPE_NAME"]),
        known("number_again", FigureUnit::COUNT, &["FILE_NO"]),
        words("asynchronous", &["ASYNCH_IO"]),
        known("small_reads", FigureUnit::COUNT, &["SMALL_READ_REQS"]),
        known("small_read_bytes", FigureUnit::MB, &["SMALL_READ_MEGABYTES"]),
        known("large_reads", FigureUnit::COUNT, &["LARGE_READ_REQS"]),
        known("large_read_bytes", FigureUnit::MB, &["LARGE_READ_MEGABYTES"]),
    ],
};

static CALIBRATION: LineFormat = LineFormat {
    tables: &[
        LineTable { section: &FILES, between: Between::Tabs, needs: &["FILE_NAME", "ASYNCH_IO"], loose: "" },
        LineTable {
            section: &FILES,
            between: Between::Blanks,
            needs: &["FILE_NAME", "ASYNCH_IO"],
            loose: "",
        },
        LineTable { section: &FILES, between: Between::Tabs, needs: &["FILE_NO", "ASYNCH_IO"], loose: "" },
        LineTable { section: &FILES, between: Between::Blanks, needs: &["FILE_NO", "ASYNCH_IO"], loose: "" },
    ],
    pairs: Some(&CALIBRATED),
    // The ruler of SQL*Plus, and its echo.
    aside: |_, text, _| {
        text.bytes().all(|byte| matches!(byte, b'-' | b' ' | b'\t')) || text.trim_start().starts_with("SQL>")
    },
    stamped: false,
};

const ONE_PROCESS: Rule =
    Rule { name: "one process <= all", arithmetic: "throughput of a single process <= that of all" };
const SMALL: Rule = Rule {
    name: "a small read is small",
    arithmetic: "bytes of small reads / small reads <= 128 KB, which is what small means",
};

fn calibration_checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for (sheet, row) in rows(report, CALIBRATED.key) {
        let figure = |key: &str| sheet.figure(row, key);
        if let (Some(one), Some(all)) = (figure("process_throughput"), figure("throughput")) {
            let sides = Sides { expected: all.range, found: one.range, unit: "bytes/s" };
            checks.push(ONE_PROCESS.at_most("MAX_PMBPS", sides, &[&one, &all]));
        }
    }
    for (sheet, row) in rows(report, FILES.key) {
        let figure = |key: &str| sheet.figure(row, key);
        if let (Some(bytes), Some(reads)) = (figure("small_read_bytes"), figure("small_reads"))
            && let Some(found) = bytes.range.over(reads.range)
        {
            let expected = ValueRange { low: 0.0, high: 131_072.0 };
            let sides = Sides { expected, found, unit: "bytes" };
            checks.push(SMALL.at_most(sheet.text(row, "number"), sides, &[&bytes, &reads]));
        }
    }
    checks
}
