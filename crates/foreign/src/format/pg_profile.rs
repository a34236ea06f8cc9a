//! pg_profile's report of a PostgreSQL server: a page whose tables are a JSON document in a script.
//!
//! A page draws its tables from `const data={...}`. Nothing is executed: the document is read as
//! JSON. Each list of `datasets` is a table. Subtotals have `*` or `Total` in place of a name.
//! Times are seconds, and sizes are texts such as `181 MB`, in multiples of 1024.

use crate::figure::check::{Rule, Sides};
use crate::form::json;
use plumb_figures::{CellReading, FigureUnit};

use crate::figure::rounding::whole;
use crate::figure::sheet::{Cell, Figure, Printed, Section, Sheet, SheetRow, known, words};
use crate::format::tool::derived;
use crate::reader::{Begins, Fill, Reader};
use crate::report::{Report, value};
use crate::source::SourcePart;
use plumb_events::Unit;
use plumb_record::{Consistency, ImportedFigure, Record, SettingRow, StatisticRow};
use plumb_units::ValueRange;

/// The reader of such pages.
pub const READERS: [Reader; 1] = [Reader {
    kind: "pg_profile page",
    begins: Begins::Script(is_page),
    read,
    check: checks,
    derive: sizes,
    fill: Fill::With(fill),
}];

/// The text before the document.
pub(crate) const DATA: &str = "const data={";

/// True of a page of pg_profile in lower case. The version is at the end of the document, so that a
/// page that was cut short may lack it.
fn is_page(page: &str) -> bool {
    let is_cut = || !page.contains("</html") && page.contains("\"datasets\"");
    page.contains(DATA) && (page.contains("\"pgprofile_version\"") || is_cut())
}

static SECTIONS: [Section; 6] = [
    Section {
        key: "databases",
        headings: &["dbstat"],
        first: &[],
        columns: &[
            words("name", &["dbname"]),
            known("hits", FigureUnit::COUNT, &["blks_hit"]),
            known("reads", FigureUnit::COUNT, &["blks_read"]),
            known("hit_share", FigureUnit::PERCENT, &["blks_hit_pct"]),
            known("read_time", FigureUnit::S, &["blk_read_time"]),
            known("write_time", FigureUnit::S, &["blk_write_time"]),
            known("commits", FigureUnit::COUNT, &["xact_commit"]),
            known("rollbacks", FigureUnit::COUNT, &["xact_rollback"]),
            known("temp_files", FigureUnit::COUNT, &["temp_files"]),
            known("temp_bytes", FigureUnit::BYTES, &["temp_bytes"]),
            known("inserted", FigureUnit::COUNT, &["tup_inserted"]),
            known("updated", FigureUnit::COUNT, &["tup_updated"]),
            known("deleted", FigureUnit::COUNT, &["tup_deleted"]),
            known("active_time", FigureUnit::S, &["active_time"]),
        ],
    },
    Section {
        key: "wal",
        headings: &["wal_stats"],
        first: &[],
        columns: &[
            known("bytes", FigureUnit::COUNT, &["wal_bytes"]),
            known("bytes_again", FigureUnit::BYTES, &["wal_bytes_text"]),
            known("writes", FigureUnit::COUNT, &["wal_write"]),
            known("writes_per_s", FigureUnit::PER_S, &["wal_write_per_sec"]),
            known("syncs", FigureUnit::COUNT, &["wal_sync"]),
            known("syncs_per_s", FigureUnit::PER_S, &["wal_sync_per_sec"]),
            known("write_time", FigureUnit::S, &["wal_write_time"]),
            known("sync_time", FigureUnit::S, &["wal_sync_time"]),
            known("records", FigureUnit::COUNT, &["wal_records"]),
            known("images", FigureUnit::COUNT, &["wal_fpi"]),
            known("full", FigureUnit::COUNT, &["wal_buffers_full"]),
        ],
    },
    Section {
        key: "io",
        headings: &["stat_io"],
        first: &[],
        columns: &[
            words("name", &["backend_type"]),
            words("object", &["object"]),
            words("context", &["context"]),
            known("reads", FigureUnit::COUNT, &["reads"]),
            known("read_bytes", FigureUnit::BYTES, &["read_sz"]),
            known("read_time", FigureUnit::S, &["read_time"]),
            known("writes", FigureUnit::COUNT, &["writes"]),
            known("written_bytes", FigureUnit::BYTES, &["write_sz"]),
            known("write_time", FigureUnit::S, &["write_time"]),
            known("extends", FigureUnit::COUNT, &["extends"]),
            known("hits", FigureUnit::COUNT, &["hits"]),
            known("syncs", FigureUnit::COUNT, &["fsyncs"]),
            known("sync_time", FigureUnit::S, &["fsync_time"]),
        ],
    },
    Section {
        key: "waits",
        headings: &["wait_sampling_total_stats"],
        first: &[],
        columns: &[
            words("name", &["event_type"]),
            known("waited", FigureUnit::S, &["tot_waited"]),
            known("share", FigureUnit::PERCENT, &["tot_waited_pct"]),
            known("statements_waited", FigureUnit::S, &["stmt_waited"]),
        ],
    },
    Section {
        key: "cluster",
        headings: &["cluster_stats"],
        first: &[],
        columns: &[
            known("checkpoints_timed", FigureUnit::COUNT, &["checkpoints_timed"]),
            known("checkpoints_asked", FigureUnit::COUNT, &["checkpoints_req"]),
            known("checkpoint_write_time", FigureUnit::S, &["checkpoint_write_time"]),
            known("checkpoint_sync_time", FigureUnit::S, &["checkpoint_sync_time"]),
            known("checkpoint_buffers", FigureUnit::COUNT, &["buffers_checkpoint"]),
            known("backend_buffers", FigureUnit::COUNT, &["buffers_backend"]),
            known("wal_bytes", FigureUnit::COUNT, &["wal_size"]),
        ],
    },
    Section {
        key: "settings",
        headings: &["settings"],
        first: &[],
        columns: &[
            words("name", &["name"]),
            words("value", &["reset_val"]),
            words("unit", &["unit"]),
            words("source", &["source"]),
        ],
    },
];

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
    let mut lists: Vec<String> = Vec::new();
    for (path, _) in json.below("datasets/") {
        let list = path.split('/').next().unwrap_or_default();
        if lists.last().is_none_or(|last| last != list) {
            lists.push(list.to_string());
        }
    }
    for list in lists {
        let path = format!("datasets/{list}");
        let section = SECTIONS.iter().find(|section| section.headings[0] == list);
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

const TOTAL: Rule = Rule { name: "sum of rows = Total", arithmetic: "sum of the rows = the row Total" };
const HIT: Rule = Rule {
    name: "hits / (hits + reads) = hit share",
    arithmetic: "blocks found in the cache / all blocks asked for = hit share",
};
const RATE: Rule =
    Rule { name: "total / interval = per second", arithmetic: "total / length of the interval = per second" };
const SIZE: Rule = Rule { name: "bytes = size as text", arithmetic: "bytes = size in multiples of 1024" };
const SHARE: Rule =
    Rule { name: "time / Total = share", arithmetic: "time waited / time waited in Total = share" };
const BLOCKS: Rule = Rule {
    name: "reads x block = bytes",
    arithmetic: "blocks read x 8192 bytes = bytes read, before version 18",
};

/// True from version 18 on, which counts requests of several blocks and those of the log.
fn counts_requests(report: &Report) -> bool {
    let is_18 = |text: &str| {
        let digits =
            text.trim_start_matches("PostgreSQL ").split(|letter: char| !letter.is_ascii_digit()).next();
        digits.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| (18..1000).contains(&major))
    };
    let is_version = |name: &str| ["server_version", "version"].contains(&name);
    let mut settings = rows(report, "settings");
    settings.any(|(sheet, row)| is_version(sheet.text(row, "name")) && is_18(sheet.text(row, "value")))
        || rows(report, "io").any(|(sheet, row)| sheet.text(row, "object") == "wal")
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
    rows(report, "io").filter_map(size).collect()
}

fn rows<'a>(report: &'a Report, section: &'static str) -> impl Iterator<Item = (&'a Sheet, &'a SheetRow)> {
    report.sheets_of(section).flat_map(|sheet| sheet.rows.iter().map(move |row| (sheet, row)))
}

fn is_total(sheet: &Sheet, row: &SheetRow) -> bool {
    sheet.text(row, "name") == "Total"
}

fn checks(report: &Report) -> Vec<Consistency> {
    let mut checks = Vec::new();
    for sheet in report.sheets_of("databases").chain(report.sheets_of("waits")) {
        totals(sheet, &mut checks);
    }
    for (sheet, row) in rows(report, "databases") {
        let figure = |key: &str| sheet.figure(row, key);
        // A count that did not change is not printed.
        let reads = figure("reads").map_or(ValueRange::exactly(0.0), |reads| reads.range);
        if let (Some(hits), Some(share)) = (figure("hits"), figure("hit_share"))
            && let Some(part) = hits.range.over(hits.range.plus(reads))
        {
            let expected = part.times(ValueRange::exactly(100.0));
            let sides = Sides { expected, found: share.range, unit: "%" };
            checks.push(HIT.meets(sheet.text(row, "name"), sides, &[&hits, &share]));
        }
    }
    for (sheet, row) in rows(report, "wal") {
        let figure = |key: &str| sheet.figure(row, key);
        let elapsed = report.run.elapsed.as_ref().and_then(|cell| cell.reading.range());
        for [total, rate] in [["writes", "writes_per_s"], ["syncs", "syncs_per_s"]] {
            if let (Some(total), Some(rate), Some(elapsed)) = (figure(total), figure(rate), elapsed)
                && let Some(expected) = total.range.over(elapsed)
            {
                let sides = Sides { expected, found: rate.range, unit: "/s" };
                checks.push(RATE.meets(&rate.name, sides, &[&total, &rate]));
            }
        }
        if let (Some(bytes), Some(again)) = (figure("bytes"), figure("bytes_again")) {
            let sides = Sides { expected: bytes.range, found: again.range, unit: "bytes" };
            checks.push(SIZE.meets("wal_bytes", sides, &[&bytes, &again]));
        }
    }
    for (sheet, row) in rows(report, "waits").filter(|(sheet, row)| !is_total(sheet, row)) {
        let total = sheet.rows.iter().find(|row| is_total(sheet, row));
        let total = total.and_then(|row| sheet.figure(row, "waited"));
        if let (Some(own), Some(all), Some(share)) =
            (sheet.figure(row, "waited"), total, sheet.figure(row, "share"))
            && let Some(part) = own.range.over(all.range)
        {
            let sides =
                Sides { expected: part.times(ValueRange::exactly(100.0)), found: share.range, unit: "%" };
            checks.push(SHARE.meets(sheet.text(row, "name"), sides, &[&own, &all, &share]));
        }
    }
    let has_requests = counts_requests(report);
    for (sheet, row) in rows(report, "io").filter(|_| !has_requests) {
        if let (Some(reads), Some(bytes)) = (sheet.figure(row, "reads"), sheet.figure(row, "read_bytes")) {
            let expected = reads.range.times(ValueRange::exactly(8192.0));
            let of = ["name", "object", "context"].map(|key| sheet.text(row, key)).join(" ");
            let sides = Sides { expected, found: bytes.range, unit: "bytes" };
            checks.push(BLOCKS.meets(&of, sides, &[&reads, &bytes]));
        }
    }
    checks
}

/// The row `Total` of a table against the sum of the others.
fn totals(sheet: &Sheet, checks: &mut Vec<Consistency>) {
    const ADDED: [&str; 9] =
        ["hits", "reads", "commits", "rollbacks", "inserted", "updated", "deleted", "temp_files", "waited"];
    let Some(total) = sheet.rows.iter().find(|row| is_total(sheet, row)) else { return };
    for key in ADDED {
        let parts = sheet.rows.iter().filter(|row| !is_total(sheet, row));
        let parts: Vec<Figure> = parts.filter_map(|row| sheet.figure(row, key)).collect();
        let Some(found) = sheet.figure(total, key).filter(|_| !parts.is_empty()) else { continue };
        let expected = parts.iter().fold(ValueRange::exactly(0.0), |sum, part| sum.plus(part.range));
        let figures: Vec<&Figure> = parts.iter().chain([&found]).collect();
        let sides = Sides { expected, found: found.range, unit: found.unit };
        checks.push(TOTAL.meets(&found.name, sides, &figures));
    }
}

fn fill(report: &Report, record: &mut Record) {
    let total = |section: &'static str, key: &str| {
        let mut rows = rows(report, section);
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
    record.settings = rows(report, "settings").map(setting).collect();
}
