//! pg_profile's report of a PostgreSQL server: a page whose tables are a JSON document in a script.
//!
//! A page draws its tables from `const data={...}`. Nothing is executed: the document is read as
//! JSON. Each list of `datasets` is a table. Subtotals have `*` or `Total` in place of a name.
//! Times are seconds, and sizes are texts such as `181 MB`, in multiples of 1024.

use crate::figure::check::Rule;
use crate::form::json;
use plumb_figures::relation::Test;
use plumb_figures::{CellReading, FigureUnit};

use crate::figure::rounding::whole;
use crate::figure::sheet::{Cell, Printed, Sheet, SheetRow};
use crate::format::sections::headed;
use crate::format::tool::derived;
use crate::reader::{Begins, Fill, Reader};
use crate::report::{Report, value};
use crate::source::SourcePart;
use plumb_events::Unit;
use plumb_record::{Consistency, ImportedFigure, Record, SettingRow, StatisticRow};
use plumb_units::ValueRange;

/// The reader of such pages.
pub const READERS: [Reader; 1] = [Reader::new("pg_profile page", Begins::Script(is_page), read)
    .checked(checks)
    .filling(sizes, Fill::With(fill))];

/// The text before the document.
pub(crate) const DATA: &str = "const data={";

/// True of a page of pg_profile in lower case. The version is at the end of the document, so that a
/// page that was cut short may lack it.
fn is_page(page: &str) -> bool {
    let is_cut = || !page.contains("</html") && page.contains("\"datasets\"");
    page.contains(DATA) && (page.contains("\"pgprofile_version\"") || is_cut())
}

fn read(part: &SourcePart<'_>) -> Report {
    let mut report = Report::default();
    let Some(at) = part.text.find(DATA) else { return report };
    let json = json::read(part, at);
    let property = |key: &str| json.text(&format!("properties/{key}"));
    for (name, key) in [
        ("Server", "server_name"),
        ("Version of pg_profile", "pgprofile_version"),
        ("Begin", "report_start1"),
        ("End", "report_end1"),
        ("Interval, seconds", "interval_duration_sec"),
    ] {
        let Printed { raw, line } = property(key);
        report.fact(name, &Cell { raw, line, reading: CellReading::Words });
    }
    let run = &mut report.run;
    run.title = "PG_PROFILE REPORT".to_string();
    run.workload = property("server_name").raw;
    (run.begin, run.end) = (property("report_start1").raw, property("report_end1").raw);
    let Printed { raw, line } = property("interval_duration_sec");
    let reading = plumb_figures::read(&raw, FigureUnit::S);
    run.elapsed = Some(Cell { raw, line, reading }).filter(|cell| value(Some(cell)).is_some());
    for list in json.members("datasets") {
        let path = format!("datasets/{list}");
        let section = headed(&list);
        let place = json::place(&path, 0) + "/";
        let first = json.below(&place).next();
        let line = first.map_or(part.first_line(), |(_, first)| first.line);
        let names = json.keys(&path).into_iter().take(crate::figure::sheet::COLUMNS_MOST).collect();
        let mut sheet = Sheet::new(section, Printed { raw: list, line }, names);
        json.rows(&path, &mut sheet);
        report.sheets.extend((!sheet.rows.is_empty()).then_some(sheet));
    }
    report.require_bracket(part, &json);
    report
}

const TOTAL: Rule = Rule::new("sum of rows = Total", "sum of the rows = the row Total");
const HIT: Rule = Rule::new(
    "hits / (hits + reads) = hit share",
    "blocks found in the cache / all blocks asked for = hit share",
);
const RATE: Rule = Rule::new("total / interval = per second", "total / length of the interval = per second");
const SIZE: Rule = Rule::new("bytes = size as text", "bytes = size in multiples of 1024");
const SHARE: Rule = Rule::new("time / Total = share", "time waited / time waited in Total = share");
const BLOCKS: Rule =
    Rule::new("reads x block = bytes", "blocks read x 8192 bytes = bytes read, before version 18");

/// Columns of which the row `Total` has the sums.
const ADDED: [&str; 9] =
    ["hits", "reads", "commits", "rollbacks", "inserted", "updated", "deleted", "temp_files", "waited"];

/// True from version 18 on, which counts requests of several blocks and those of the log.
fn counts_requests(report: &Report) -> bool {
    let is_18 = |text: &str| {
        let digits =
            text.trim_start_matches("PostgreSQL ").split(|letter: char| !letter.is_ascii_digit()).next();
        digits.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| (18..1000).contains(&major))
    };
    let is_version = |name: &str| ["server_version", "version"].contains(&name);
    let mut settings = report.rows("settings");
    settings.any(|(sheet, row)| is_version(sheet.text(row, "name")) && is_18(sheet.text(row, "value")))
        || report.rows("io").any(|(sheet, row)| sheet.text(row, "object") == "wal")
}

/// The size of a request, which version 18 counts.
fn sizes(report: &Report) -> Vec<ImportedFigure> {
    if !counts_requests(report) {
        return Vec::new();
    }
    let size = |(sheet, row): (&Sheet, &SheetRow)| {
        let (reads, bytes) = (sheet.figure(row, "reads")?, sheet.figure(row, "read_bytes")?);
        let name = format!("{}: size of a read", row.cells.first()?.raw);
        derived(name, "bytes", reads.line, bytes.value / reads.value, bytes.range.over(reads.range)?)
    };
    report.rows("io").filter_map(size).collect()
}

fn is_total(sheet: &Sheet, row: &SheetRow) -> bool {
    sheet.text(row, "name") == "Total"
}

fn checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in report.sheets_of("databases").chain(report.sheets_of("waits")) {
        checks.extend(TOTAL.of_total(sheet, is_total, &ADDED));
    }
    for (sheet, row) in report.rows("databases") {
        let figure = |key: &str| sheet.figure(row, key);
        // A count that did not change is not printed.
        let reads = figure("reads").map_or(ValueRange::exactly(0.0), |reads| reads.range);
        let of = sheet.text(row, "name");
        checks.extend(HIT.ask(of, ["hits", "hit_share"].map(figure), Test::Equal, |[hits, share]| {
            Some([hits.over(hits.plus(reads))?.times(ValueRange::exactly(100.0)), share])
        }));
    }
    for (sheet, row) in report.rows("wal") {
        let figure = |key: &str| sheet.figure(row, key);
        let elapsed = report.run.elapsed.as_ref().and_then(|cell| cell.reading.range());
        for [total, rate] in [["writes", "writes_per_s"], ["syncs", "syncs_per_s"]] {
            let of = figure(rate).map_or(String::new(), |rate| rate.name);
            checks.extend(RATE.ask(&of, [total, rate].map(figure), Test::Equal, |[total, rate]| {
                Some([total.over(elapsed?)?, rate])
            }));
        }
        checks.extend(SIZE.ask("wal_bytes", ["bytes", "bytes_again"].map(figure), Test::Equal, Some));
    }
    for (sheet, row) in report.rows("waits").filter(|(sheet, row)| !is_total(sheet, row)) {
        let total = sheet.rows.iter().find(|row| is_total(sheet, row));
        let total = total.and_then(|row| sheet.figure(row, "waited"));
        let figures = [sheet.figure(row, "waited"), total, sheet.figure(row, "share")];
        checks.extend(SHARE.ask(sheet.text(row, "name"), figures, Test::Equal, |[own, all, share]| {
            Some([own.over(all)?.times(ValueRange::exactly(100.0)), share])
        }));
    }
    let has_requests = counts_requests(report);
    for (sheet, row) in report.rows("io").filter(|_| !has_requests) {
        let of = ["name", "object", "context"].map(|key| sheet.text(row, key)).join(" ");
        let figures = ["reads", "read_bytes"].map(|key| sheet.figure(row, key));
        checks.extend(BLOCKS.ask(&of, figures, Test::Equal, |[reads, bytes]| {
            Some([reads.times(ValueRange::exactly(8192.0)), bytes])
        }));
    }
    checks
}

fn fill(report: &Report, record: &mut Record) {
    let total = |section: &'static str, key: &str| {
        let mut rows = report.rows(section);
        let row = rows.find(|(sheet, row)| section != "databases" || is_total(sheet, row));
        row.and_then(|(sheet, row)| sheet.figure(row, key)).map(|figure| whole(figure.value))
    };
    for (name, section, key, unit) in [
        ("user commits", "databases", "commits", Unit::Count),
        ("user rollbacks", "databases", "rollbacks", Unit::Count),
        ("physical reads", "databases", "reads", Unit::Count),
        ("redo writes", "wal", "writes", Unit::Count),
        ("redo size", "wal", "bytes", Unit::Bytes),
    ] {
        let name = name.to_string();
        record.statistics.extend(total(section, key).map(|total| StatisticRow { name, total, unit }));
    }
    let setting = |(sheet, row): (&Sheet, &SheetRow)| SettingRow {
        name: sheet.text(row, "name").to_string(),
        value: [sheet.text(row, "value"), sheet.text(row, "unit")].join(" ").trim_end().to_string(),
        taken: None,
        is_default: sheet.text(row, "source") == "default",
        source: sheet.text(row, "source").to_string(),
        description: String::new(),
    };
    record.settings = report.rows("settings").map(setting).collect();
}
