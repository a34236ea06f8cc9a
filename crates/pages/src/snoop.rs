//! The report of a trace of other programs: what was asked for next to what the disks did.

use plumb_record::{Record, Snoop, SnoopCalls, SnoopMap, TraceBucket};
use plumb_report::document::Drawing;
use plumb_report::format::{Figure, Reading};
use plumb_report::plot::Heat;
use plumb_report::table::{Facts, Table, Tone};
use plumb_report::{Document, Headline, ReportAnswer, Section, State, Summary, cells, table, text};
use plumb_units::{Bytes, Nanos, RowCount};
use std::collections::BTreeMap;

/// Rows of a table; the record has all.
const ROWS: usize = 60;

/// Returns the report of a record of a trace.
pub(crate) fn of_record(record: &Record, snoop: &Snoop) -> Document {
    let elapsed = Nanos(record.header.elapsed_ns);
    let lost = snoop.lost();
    let is_sampled = snoop.is_sampled();
    let (word, tone) = match (is_sampled, lost) {
        (true, _) => ("SAMPLED", Tone::Open),
        (false, 0) => ("COMPLETE", Tone::Good),
        _ => ("EVENTS LOST", Tone::Bad),
    };
    let events: u64 = snoop.buffers.iter().map(|buffer| buffer.events).sum();
    let basis = match is_sampled {
        true => snoop.source.clone(),
        false => format!("{} of {} events of the kernel lost", RowCount(lost), RowCount(events)),
    };
    let headline = headline(snoop, elapsed);
    Document {
        title: record.header.title.clone(),
        answer: answer(record, snoop, word, &basis),
        question: format!("The requests of {}, at the call and at the disk.", snoop.target),
        running_head: format!("Snoop: {}  Host: {}", snoop.target, record.header.host.name),
        width: text::WIDTH,
        state: State { of: "Trace".to_string(), word: word.to_string(), tone },
        basis,
        reasons: snoop.cannot_see.clone(),
        headline,
        sections: sections(record, snoop),
        summary: Summary { subject: snoop.target.clone(), ..Summary::default() },
        footer: format!(
            "plumb {}, record schema {}. The record of this trace is embedded in this file as JSON.",
            record.header.plumb_version, record.schema_version
        ),
        data: serde_json::to_string(record).unwrap_or_else(|_| "null".to_string()),
    }
}

/// Returns the operation that took most of the calls' time, with its part at the disks. Samples
/// have no times: their answer is the bytes of calls.
fn answer(record: &Record, snoop: &Snoop, word: &str, basis: &str) -> ReportAnswer {
    let elapsed = Nanos(record.header.elapsed_ns);
    let all: u64 = snoop.calls.iter().map(|row| row.time_ns).sum();
    let mut operations: BTreeMap<&str, SnoopCalls> = BTreeMap::new();
    snoop.calls.iter().for_each(|row| add(operations.entry(&row.operation).or_default(), row));
    let longest = operations.iter().max_by_key(|(_, sum)| sum.time_ns).filter(|_| all > 0);
    let found = match longest {
        Some((operation, sum)) => format!(
            "{operation} took {} of {} in calls, {} of {} each, {} of it at the disk",
            Nanos(sum.time_ns),
            Nanos(all),
            RowCount(sum.calls),
            mean(sum.time_ns, sum.calls),
            mean(sum.disk_time_ns, sum.calls)
        ),
        None => match snoop.amplification.is_empty() {
            true => "no read, write or sync was seen".to_string(),
            false => {
                let bytes = |row: &plumb_record::SnoopAmplification| {
                    format!("{} {} by calls", row.direction, Bytes(row.call_bytes))
                };
                snoop.amplification.iter().map(bytes).collect::<Vec<_>>().join(", ")
            }
        },
    };
    let judged = plumb_findings::findings(&plumb_findings::Signals::of(record));
    let finding = judged.first();
    ReportAnswer {
        asked: format!("{} in {elapsed}", snoop.target),
        found: finding.map_or_else(
            || found.clone(),
            |finding| format!("{found}; {}", ReportAnswer::part(&finding.what)),
        ),
        sure: format!("{word}: {basis}"),
        advice: finding.map_or_else(String::new, crate::advice),
        lines: headline(snoop, elapsed),
    }
}

/// A figure that samples do not have.
const UNKNOWN: &str = "-";

/// Returns calls, requests and bytes of a trace, with their rates.
pub(crate) fn headline(snoop: &Snoop, elapsed: Nanos) -> Vec<Headline> {
    let calls: u64 = snoop.calls.iter().map(|row| row.calls).sum();
    let time: u64 = snoop.calls.iter().map(|row| row.time_ns).sum();
    let requests: u64 = snoop.requests.iter().map(|row| row.requests).sum();
    let at_disk: u64 = snoop.requests.iter().map(|row| row.time_ns).sum();
    let rate =
        |count: u64| format!("{} a second", Reading(count as f64 / elapsed.seconds().max(1e-9)).figure());
    let figure = |name: &str, count: u64, total: u64| Headline {
        name: name.to_string(),
        value: format!("{}, {} on average", RowCount(count), mean(total, count)),
        aside: rate(count),
    };
    let counted =
        Headline { name: "Calls".to_string(), value: RowCount(calls).to_string(), aside: rate(calls) };
    let mut figures = match snoop.is_sampled() {
        true => vec![counted],
        false => vec![figure("Calls", calls, time), figure("Requests", requests, at_disk)],
    };
    figures.extend(snoop.amplification.iter().map(|row| Headline {
        name: format!("Bytes ({})", row.direction),
        value: format!("{} by calls", Bytes(row.call_bytes)),
        aside: format!("{} at the disks", Bytes(row.disk_bytes)),
    }));
    figures
}

fn mean(total: u64, count: u64) -> String {
    total.checked_div(count).map_or(String::new(), |mean| Nanos(mean).to_string())
}

fn sections(record: &Record, snoop: &Snoop) -> Vec<Section> {
    let all = [
        amplification(snoop),
        patterns(snoop),
        maps(snoop),
        sums("operations", "Calls by Operation", snoop, |row| row.operation.clone()),
        requests(snoop),
        sums("processes", "Calls by Process", snoop, |row| format!("{} {}", row.pid, row.process)),
        sums("files", "Calls by File", snoop, |row| row.file.clone()),
        places(snoop),
        depths(snoop),
        histograms(snoop),
        others(snoop),
        Some(circumstances(record, snoop)),
    ];
    all.into_iter().flatten().collect()
}

fn with_rows(section: Section, table: Table) -> Option<Section> {
    (!table.rows.is_empty()).then(|| section.table(table))
}

fn amplification(snoop: &Snoop) -> Option<Section> {
    let mut table = Table::default()
        .text(["Direction"])
        .numbers(["Bytes of\ncalls", "Bytes of\ndisks", "Times"])
        .wrapped("Of the disks' bytes", 60);
    for row in &snoop.amplification {
        let times = match (row.call_bytes, row.disk_bytes) {
            (0, _) | (_, 0) => String::new(),
            (asked, moved) => format!("{:.2}", moved as f64 / asked as f64),
        };
        let parts: Vec<String> =
            row.parts.iter().map(|part| format!("{} {}", Bytes(part.bytes), part.how)).collect();
        let [asked, moved] = [row.call_bytes, row.disk_bytes].map(|bytes| Bytes(bytes).to_string());
        table.row(cells![&row.direction, asked, moved, times, parts.join(", ")]);
    }
    let note =
        "bytes that calls moved, and that disks moved for them; less means that the page cache answered";
    with_rows(Section::front("amplification", "Calls and Disks").note(note), table)
}

fn patterns(snoop: &Snoop) -> Option<Section> {
    let mut table = Table::default()
        .text(["View"])
        .wrapped("Pattern", 26)
        .numbers(["Requests", "Of"])
        .wrapped("Arithmetic", 40)
        .wrapped("File", 36);
    for row in &snoop.patterns {
        let [requests, of] = [row.requests, row.of].map(|count| RowCount(count).to_string());
        table.row(cells![&row.view, &row.name, requests, of, &row.arithmetic, &row.file]);
    }
    let note = "BLOCK counts 512-byte sectors of the disk, offset bytes of the file";
    with_rows(Section::front("patterns", "Patterns").note(note), table)
}

fn maps(snoop: &Snoop) -> Option<Section> {
    let drawings: Vec<Drawing> = snoop.maps.iter().map(|map| Drawing::Heat(heat(map))).collect();
    let section = Section::front("maps", "Over Time");
    (!drawings.is_empty()).then(|| section.note("darker cells have more requests").drawings(drawings))
}

const TICKS: usize = 4;

fn heat(map: &SnoopMap) -> Heat {
    let columns = map.cells.len().max(1);
    let used = |row: usize| map.cells.iter().any(|column| column.get(row).is_some_and(|count| *count > 0));
    let rows = map.cells.iter().map(Vec::len).max().unwrap_or(0);
    let first = (0..rows).find(|row| used(*row)).unwrap_or(0);
    let last = (0..rows).rfind(|row| used(*row)).unwrap_or(0);
    let shown = last - first + 1;
    let cells = map.cells.iter().map(|column| column[first..=last].to_vec()).collect();
    let seconds = |at: f64| at * columns as f64 * map.time_step_ns as f64 / 1e9;
    let x_ticks = (0..=TICKS).map(|tick| tick as f64 / TICKS as f64);
    let label = |row: usize| match map.row_step {
        0 => Nanos((1_u64 << row.min(50)) * 500).to_string(),
        step => Bytes(map.row_from + step * row as u64).to_string(),
    };
    let step = shown.div_ceil(2 * TICKS).max(1);
    let y_ticks = (0..shown).step_by(step).map(|row| (row as f64 / shown as f64, label(first + row)));
    Heat {
        title: map.title.clone(),
        x_title: "seconds from the start".to_string(),
        x_ticks: x_ticks.map(|at| (at, Reading(seconds(at)).figure())).collect(),
        y_ticks: y_ticks.collect(),
        cells,
    }
}

fn add(sum: &mut SnoopCalls, row: &SnoopCalls) {
    sum.calls += row.calls;
    sum.errors += row.errors;
    sum.bytes += row.bytes;
    sum.time_ns += row.time_ns;
    sum.max_ns = sum.max_ns.max(row.max_ns);
    sum.disk_requests += row.disk_requests;
    sum.disk_time_ns += row.disk_time_ns;
}

fn sums(id: &'static str, title: &str, snoop: &Snoop, name: fn(&SnoopCalls) -> String) -> Option<Section> {
    let mut sums: BTreeMap<String, SnoopCalls> = BTreeMap::new();
    let is_sampled = snoop.is_sampled();
    // Samples know the bytes of a file by its positions alone, and those of calls without them.
    let by_position = is_sampled && id == "files";
    for row in snoop.calls.iter().filter(|row| row.is_position() == by_position) {
        add(sums.entry(name(row)).or_default(), row);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.time_ns, sum.bytes)));
    let timed = |shown: String| if is_sampled { UNKNOWN.to_string() } else { shown };
    let table = table!((name, sum) in sums.iter().take(ROWS); [
        wrapped(44) "Name" => name,
        numbers "Calls" => if by_position { UNKNOWN.to_string() } else { RowCount(sum.calls).to_string() },
        numbers "Errors" => if sum.errors == 0 { String::new() } else { RowCount(sum.errors).to_string() },
        numbers "Bytes" => Bytes(sum.bytes).to_string(),
        numbers "Time" => timed(Nanos(sum.time_ns).to_string()),
        numbers "Average" => timed(mean(sum.time_ns, sum.calls)),
        numbers "Longest" => timed(Nanos(sum.max_ns).to_string()),
        numbers "Requests\nwithin" => timed(RowCount(sum.disk_requests).to_string()),
        numbers "At the\ndisk" => timed(mean(sum.disk_time_ns, sum.calls)),
    ]);
    let note = match (by_position, is_sampled) {
        (true, _) => {
            "bytes by which positions in the file moved, a lower bound; calls and times are not known"
        }
        (false, true) => "samples have no times and no requests",
        _ => "times from entry to exit; at the disk: time of the requests that ended within the call, a call",
    };
    with_rows(Section::front(id, title).note(note), table)
}

fn requests(snoop: &Snoop) -> Option<Section> {
    let known = |shown: String| if snoop.is_sampled() { UNKNOWN.to_string() } else { shown };
    let table = table!(row in snoop.requests.iter().take(ROWS); [
        text "Disk" => &row.disk,
        text "D" => &row.flags,
        text "Reason" => &row.how,
        text "Call" => &row.call,
        numbers "PID" => row.pid.to_string(),
        numbers "Requests" => known(RowCount(row.requests).to_string()),
        numbers "Bytes" => Bytes(row.bytes).to_string(),
        numbers "In\nqueue" => known(mean(row.queue_ns, row.requests)),
        numbers "At the\ndisk" => known(mean(row.time_ns, row.requests)),
        numbers "Longest" => known(Nanos(row.max_ns).to_string()),
        wrapped(40) "File" => &row.file,
    ]);
    let note = "D has the kernel's letters: R read, W write, F flush, S synchronous, A ahead, M metadata; \
                the kernel writes back later, for the process that wrote the file last";
    with_rows(Section::front("requests", "Requests of the Disks").note(note), table)
}

fn places(snoop: &Snoop) -> Option<Section> {
    let mut table = Table::default().text(["View"]).numbers(["Requests", "Sequential"]).wrapped("File", 60);
    for row in &snoop.places {
        let share = match row.placed {
            0 => String::new(),
            placed => format!("{:.1}%", 100.0 * row.follows as f64 / placed as f64),
        };
        table.row(cells![&row.view, RowCount(row.requests).to_string(), share, &row.file]);
    }
    let note = "sequential: begins where the one before in the same direction ended";
    with_rows(Section::detail("places", "Sequential Share").note(note), table)
}

fn depths(snoop: &Snoop) -> Option<Section> {
    let mut table =
        Table::default().text(["Disk"]).numbers(["In flight", "By their\nown", "By the\ndevice's"]);
    for row in snoop.depths.iter().take(ROWS) {
        let [own, all] = [row.own, row.requests].map(|count| RowCount(count).to_string());
        table.row(cells![&row.disk, row.depth.to_string(), own, all]);
    }
    let note = "requests of the traced programs, by the number in flight when each was issued, itself \
                included: their own, and those of all processes at the device";
    with_rows(Section::detail("depths", "Queue Depth").note(note), table)
}

fn histograms(snoop: &Snoop) -> Option<Section> {
    let bytes: fn(u64) -> String = |to| Bytes(to).as_setting();
    let time: fn(u64) -> String = |to| Nanos(to).to_string();
    let tables = [
        ("Calls by bytes", &snoop.call_sizes, bytes),
        ("Calls by time", &snoop.call_times, time),
        ("Requests by bytes", &snoop.request_sizes, bytes),
        ("Requests by time at the disk", &snoop.request_times, time),
    ];
    let filled = tables.into_iter().filter(|(_, buckets, _)| !buckets.is_empty());
    let section = Section::detail("histograms", "Histograms");
    let section = filled.fold(section, |section, (caption, buckets, label)| {
        section.table(histogram(buckets, label).with_caption(caption))
    });
    (!section.blocks.is_empty()).then_some(section)
}

fn histogram(buckets: &[TraceBucket], label: fn(u64) -> String) -> Table {
    let mut table = Table::default().numbers(["Up to", "Reads", "Others"]);
    for bucket in buckets {
        let [reads, others] = [bucket.reads, bucket.writes].map(|count| RowCount(count).to_string());
        table.row(cells![label(bucket.to), reads, others]);
    }
    table
}

fn others(snoop: &Snoop) -> Option<Section> {
    let table = table!(row in &snoop.others; [
        text "Disk" => &row.disk,
        text "D" => &row.flags,
        numbers "Requests" => RowCount(row.requests).to_string(),
        numbers "Bytes" => Bytes(row.bytes).to_string(),
        numbers "At the disk" => mean(row.time_ns, row.requests),
    ]);
    let note = "requests of the same machine in the same time that belong to no traced process";
    with_rows(Section::detail("others", "Requests of Other Processes").note(note), table)
}

fn circumstances(record: &Record, snoop: &Snoop) -> Section {
    let mut facts = Facts::default();
    facts.add("Command", &record.header.command_line);
    facts.add("Source", &snoop.source);
    facts.add("Time", format!("{} from {}", Nanos(record.header.elapsed_ns), record.header.begin_time));
    facts.add("Machine", format!("{}, {}", record.header.host.processors(), record.header.host.kernel));
    for buffer in &snoop.buffers {
        let text = format!(
            "{} events, {} lost, buffer {}",
            RowCount(buffer.events),
            RowCount(buffer.lost),
            Bytes(buffer.bytes)
        );
        facts.add(format!("Events ({})", buffer.name), text);
    }
    let unmatched = [
        (snoop.unmatched_completions, "completions of requests that were issued before the trace"),
        (snoop.unmatched_exits, "exits of calls that began before the trace"),
        (snoop.in_flight, "requests in flight at the end"),
        (snoop.other_calls, "calls on pipes, sockets, terminals and files without a disk"),
    ];
    for (count, what) in unmatched.into_iter().filter(|(count, _)| *count > 0) {
        facts.add("Not shown", format!("{} {what}", RowCount(count)));
    }
    Section::detail("circumstances", "How It Was Traced").facts(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_record::{SnoopAmplification, SnoopBuffer, SnoopPart, SnoopPattern, SnoopPlace, SnoopRequests};

    fn snoop() -> Snoop {
        let call = |operation: &str, effect: &str, calls, bytes, time_ns| SnoopCalls {
            process: "ora_lgwr_DEM".to_string(),
            operation: operation.to_string(),
            effect: effect.to_string(),
            file: "/slice4/redolog/redo01.log".to_string(),
            calls,
            bytes,
            time_ns,
            max_ns: 23_045_000,
            disk_requests: calls,
            disk_bytes: bytes,
            disk_time_ns: time_ns * 3 / 4,
            ..SnoopCalls::default()
        };
        let bucket = |to, writes| TraceBucket { to, reads: 1, writes };
        Snoop {
            target: "name lgwr".to_string(),
            source: "tracepoints".to_string(),
            buffers: vec![SnoopBuffer { name: "calls".to_string(), bytes: 8 << 20, events: 4000, lost: 3 }],
            unmatched_completions: 2,
            calls: vec![
                call("pwrite", "write", 1000, 2_731_000, 3_932_139_000),
                call("pread", "read", 2, 2_097_152, 45_000_000),
            ],
            requests: vec![SnoopRequests {
                disk: "sd0".to_string(),
                flags: "WS".to_string(),
                how: "call".to_string(),
                call: "pwrite".to_string(),
                file: "/slice4/redolog/redo01.log".to_string(),
                requests: 1000,
                bytes: 8_192_000,
                queue_ns: 5_000_000,
                time_ns: 3_700_000_000,
                max_ns: 23_045_000,
                ..SnoopRequests::default()
            }],
            call_sizes: vec![bucket(512, 9), bucket(1024, 3)],
            patterns: vec![SnoopPattern {
                view: "disk".to_string(),
                file: "/slice4/redolog/redo01.log".to_string(),
                name: "one block written again".to_string(),
                requests: 750,
                of: 1000,
                arithmetic: "BLOCK 21946960 written 4 times in a row".to_string(),
            }],
            places: vec![SnoopPlace {
                view: "calls".to_string(),
                file: "/slice4/redolog/redo01.log".to_string(),
                requests: 1002,
                follows: 990,
                placed: 1000,
            }],
            amplification: vec![SnoopAmplification {
                direction: "write".to_string(),
                call_bytes: 2_731_000,
                disk_bytes: 8_192_000,
                parts: vec![SnoopPart { how: "call".to_string(), bytes: 8_192_000 }],
            }],
            maps: vec![SnoopMap {
                title: "Calls by time taken".to_string(),
                time_step_ns: 10_000_000,
                unit: "ns".to_string(),
                cells: vec![vec![0, 0, 7, 1], vec![0, 0, 9, 0]],
                ..SnoopMap::default()
            }],
            ..Snoop::default()
        }
    }

    #[test]
    fn both_views_patterns_and_losses_are_in_the_report() {
        let mut record = plumb_record::fixture::record(10_000_000_000, 0);
        record.header.title = "PLUMB SNOOP".to_string();
        (record.header.db_time_ns, record.header.db_cpu_ns, record.snoop) = (None, None, Some(snoop()));
        let document = of_record(&record, &snoop());
        let shown = text::render(&document);
        for part in [
            "EVENTS LOST",
            "3 of 4,000 events of the kernel lost",
            "BLOCK 21946960 written 4 times in a row",
            "ora_lgwr_DEM",
            "3.00",
            "99.0%",
            "completions of requests that were issued before the trace",
        ] {
            assert!(shown.contains(part), "{part} in {shown}");
        }
        let page = plumb_report::html::render(&document);
        assert_eq!(page.matches("fill-opacity").count(), 3, "a cell each");
        insta::assert_snapshot!(plumb_report::summary::answer(&document.answer, 100).join("\n"));
    }

    #[test]
    fn a_report_without_losses_is_complete_and_a_sampled_one_says_so() {
        let record = plumb_record::fixture::record(10_000_000_000, 0);
        let word = |snoop: &Snoop| of_record(&record, snoop).state.word;
        let mut snoop = snoop();
        assert_eq!(word(&snoop), "EVENTS LOST");
        snoop.buffers[0].lost = 0;
        assert_eq!(word(&snoop), "COMPLETE");
        snoop.buffers.clear();
        assert_eq!(word(&snoop), "SAMPLED");
        assert_eq!(word(&Snoop::default()), "SAMPLED", "an empty trace has a report");
    }
}
