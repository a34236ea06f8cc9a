//! fio's JSON and JSON+.

use super::{PRINTED_JOBS, PRINTED_PERCENTILES, SYNC, longest};
use crate::figure::sheet::{Cell, Printed, Sheet};
use crate::form::json::{self, Json, place};
use crate::format::sections::with_columns;
use crate::report::Report;
use crate::source::SourcePart;

/// Kinds of requests; those of the last one have a latency alone.
const DIRECTIONS: [&str; 5] = ["read", "write", "trim", "mixed", SYNC];

pub(super) fn read(part: &SourcePart<'_>) -> Report {
    let json = json::read_behind(part, 0);
    let find = |path: &str| json.text(path);
    let mut report = Report::default();
    report.run.title = "FIO REPORT".to_string();
    for (name, path) in [("Version", "fio version"), ("Time", "time")] {
        let Printed { raw, line } = find(path);
        report.fact(name, &Cell { raw, line, reading: plumb_figures::CellReading::Words });
    }
    report.run.begin = find("time").raw;
    let entries = entries(&json);
    let has = |is_it: fn(&str) -> bool| json.below("").any(|(path, _)| is_it(path));
    let is_ns = has(|path| path.contains("/clat_ns/"));
    let is_kib = has(|path| path.ends_with("/io_bytes"))
        && !has(|path| path.ends_with("/io_kbytes"))
        && is_old(&find("fio version").raw);
    let mut jobs = sheet_of_jobs(is_ns, is_kib, find("fio version").line);
    let mut percentiles = sheet_of_percentiles(is_ns, find("fio version").line);
    for entry in &entries {
        let job = find(&format!("{entry}/jobname"));
        report.run.workload =
            if report.run.workload.is_empty() { job.raw.clone() } else { report.run.workload };
        for direction in DIRECTIONS {
            let of = format!("{entry}/{direction}");
            // Version 2.1 prints no requests.
            let moved = ["total_ios", "io_bytes"].map(|key| find(&format!("{of}/{key}")));
            let is_some = |moved: &&Printed| moved.raw.parse().is_ok_and(|count: u64| count > 0);
            let Some(first) = moved.iter().find(is_some) else { continue };
            let row = row(&json, entry, direction, is_ns);
            jobs.push(first.line, row);
            push_percentiles(&json, &of, &job, &mut percentiles, is_ns);
        }
    }
    for entry in &entries {
        let (job, error) = (find(&format!("{entry}/jobname")), find(&format!("{entry}/error")));
        report.fail(&job.raw, &error);
    }
    super::text::errors(&part.above(super::HEAD_LINES_MOST), &mut report);
    report.run.elapsed = longest(&jobs);
    report.sheets.extend([jobs, percentiles].into_iter().filter(|sheet| !sheet.rows.is_empty()));
    let last = part.line_of(json.end.saturating_sub(1));
    printed(&part.behind(last), &mut report);
    report.require_bracket(part, &json);
    report
}

/// Reads the text behind a document, such as that of `--output-format=json,normal`: the same jobs
/// again, under keys of their own.
fn printed(part: &SourcePart<'_>, report: &mut Report) {
    let found = super::text::read(part);
    for mut sheet in found.sheets {
        sheet.section = match sheet.section {
            "jobs" => PRINTED_JOBS,
            "percentiles" => PRINTED_PERCENTILES,
            section => section,
        };
        report.sheets.push(sheet);
    }
    let brace = |remark: &crate::figure::sheet::Remark| matches!(remark.text.as_str(), "{" | "}");
    report.unread.extend(found.unread);
    report.prose.extend(found.prose.into_iter().filter(|remark| !brace(remark)));
}

/// True of versions before 2.21, whose `io_bytes` is KiB.
fn is_old(version: &str) -> bool {
    let mut parts =
        version.trim_start_matches("fio-").split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    major < 2 || major == 2 && minor < 21
}

/// Paths of the entries; of several machines that of all of them together is left out.
fn entries(json: &Json) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for list in ["jobs", "client_stats"] {
        let job = |number: usize| json.get(&(place(list, number) + "/jobname"));
        let own = (0..).map_while(|number| Some((number, job(number)?)));
        let of_one = own.filter(|(_, name)| name.raw != "All clients");
        entries.extend(of_one.map(|(number, _)| place(list, number)));
    }
    entries
}

fn sheet_of_jobs(is_ns: bool, is_kib: bool, line: u32) -> Sheet {
    let (clat, lat) = if is_ns { ("clat_ns", "lat_ns") } else { ("clat", "lat") };
    let bytes = if is_kib { "io_bytes in KiB" } else { "io_bytes" };
    let names =
        ["job", "direction", bytes, "bw", "iops", "runtime", "total_ios", "short_ios"].map(String::from);
    let times = ["min", "max", "mean"].map(|of| format!("{clat} {of}"));
    let slat = if is_ns { "slat_ns mean" } else { "slat mean" };
    let others = [&format!("{lat} mean"), slat, "sum of bins", "bs"].map(String::from);
    let options = ["iodepth", "numjobs", "direct", "iops_mean", "iops_samples", "usr_cpu", "sys_cpu"];
    let names = names.into_iter().chain(times).chain(others).chain(options.map(String::from));
    with_columns("jobs", line, names)
}

fn sheet_of_percentiles(is_ns: bool, line: u32) -> Sheet {
    let clat = if is_ns { "clat_ns" } else { "clat" };
    with_columns("percentiles", line, ["job", "direction", "percentile", clat])
}

/// The key of the time from submission to completion, which a sync does not have apart.
fn of_completion(direction: &str, is_ns: bool) -> &'static str {
    match (direction, is_ns) {
        (SYNC, _) => "lat_ns",
        (_, true) => "clat_ns",
        (_, false) => "clat",
    }
}

/// The cells of an entry and a direction, in the order of [`sheet_of_jobs`].
fn row(json: &Json, entry: &str, direction: &str, is_ns: bool) -> Vec<Printed> {
    let of = format!("{entry}/{direction}");
    let find = |name: &str| json.text(&format!("{of}/{name}"));
    let lat = if is_ns { "lat_ns" } else { "lat" };
    let clat = of_completion(direction, is_ns);
    let job = json.text(&format!("{entry}/jobname"));
    let line = find("total_ios").line.max(find("io_bytes").line);
    let mut cells = vec![job, Printed { raw: direction.to_string(), line }];
    cells.extend(["io_bytes", "bw", "iops", "runtime", "total_ios", "short_ios"].map(find));
    cells.extend(["min", "max", "mean"].map(|name| find(&format!("{clat}/{name}"))));
    cells.push(find(&format!("{lat}/mean")));
    cells.push(find(&format!("{}/mean", lat.replace("lat", "slat"))));
    cells.push(bins(json, &format!("{of}/{clat}/bins/")));
    cells.push(size(json, entry));
    // Where options are printed, one that was not given has its default: one request at a time.
    let has_options = [format!("{entry}/job options/"), "global options/".to_string()]
        .iter()
        .any(|options| json.below(options).next().is_some());
    let by_default = |raw: &str| Printed { raw: if has_options { raw } else { "" }.to_string(), line };
    cells.push(option(json, entry, "iodepth").unwrap_or(by_default("1")));
    let grouped = option(json, entry, "group_reporting").is_some_and(|option| option.raw != "0");
    let processes = option(json, entry, "numjobs").filter(|_| grouped);
    cells.push(processes.unwrap_or(by_default("1")));
    cells.push(option(json, entry, "direct").unwrap_or(by_default("0")));
    // A log of each request ruins the samples.
    let is_logged = ["write_iops_log", "write_bw_log"].iter().any(|name| option(json, entry, name).is_some());
    cells.push(find("iops_mean"));
    cells.push(if is_logged { Printed::default() } else { find("iops_samples") });
    cells.extend(["usr_cpu", "sys_cpu"].map(|name| json.text(&format!("{entry}/{name}"))));
    cells
}

/// An option of a job, or of all.
fn option(json: &Json, entry: &str, name: &str) -> Option<Printed> {
    let own = json.get(&format!("{entry}/job options/{name}"));
    own.or_else(|| json.get(&format!("global options/{name}"))).cloned()
}

/// The size of every request, in bytes; blank where sizes vary.
fn size(json: &Json, entry: &str) -> Printed {
    let varies =
        ["bsrange", "bssplit", "bs_unaligned"].iter().any(|name| option(json, entry, name).is_some());
    let Some(Printed { raw, line }) = option(json, entry, "bs").filter(|_| !varies) else {
        return Printed::default();
    };
    let raw = raw.trim_end_matches(['b', 'B', 'i']).to_uppercase();
    let is_one = raw.chars().all(|letter| letter.is_ascii_digit() || "KMG".contains(letter));
    if is_one { Printed { raw, line } } else { Printed::default() }
}

/// The requests in the bins of JSON+.
fn bins(json: &Json, path: &str) -> Printed {
    let mut bins = json.below(path).peekable();
    let Some(line) = bins.peek().map(|(_, bin)| bin.line) else { return Printed::default() };
    let sum: u64 = bins.map(|(_, bin)| bin.raw.parse::<u64>().unwrap_or(0)).fold(0, u64::saturating_add);
    Printed { raw: sum.to_string(), line }
}

fn push_percentiles(json: &Json, of: &str, job: &Printed, sheet: &mut Sheet, is_ns: bool) {
    let direction = of.rsplit('/').next().unwrap_or_default();
    let path = format!("{of}/{}/percentile/", of_completion(direction, is_ns));
    let mut rows: Vec<(f64, &str, &Printed)> = json
        .below(&path)
        .filter_map(|(percent, time)| {
            // Early versions print places that have none as 0.00.
            percent.parse().ok().filter(|value: &f64| *value > 0.0).map(|value| (value, percent, time))
        })
        .collect();
    rows.sort_by(|one, other| one.0.total_cmp(&other.0));
    for (_, percent, time) in rows {
        let words = [direction, percent].map(|raw| Printed { raw: raw.to_string(), line: time.line });
        let cells = [job.clone()].into_iter().chain(words).chain([time.clone()]);
        sheet.push(time.line, cells.collect());
    }
}
