//! Lines of a trace on a terminal: one for each call and each request, and tables.
//!
//! ```text
//! STRTIME        VIEW D  CALL/DEVICE  OFFSET/BLOCK BYTES QUEUE(us) DELTA(us)  PID COMM PATHNAME
//! 12:00:01.00012 call W  pwrite            1048576  8192         -       412 4711 lgwr /redo01.log
//! 12:00:01.00010 disk WS vda 254,0        22293312  8192         3       388 4711 lgwr /redo01.log
//!
//! The head has the date, and the number of a thread follows its process's where they differ, so
//! that most lines fit on a terminal.
//! ```
//!
//! The block of a disk counts 512-byte sectors from its start, as iosnoop's BLOCK does.

use crate::kernel::event::comm_text;
use crate::kernel::syscalls::Effect;
use crate::owner::join::{CallLine, How, RequestLine, disk_text};
use crate::owner::process::Processes;
use plumb_record::calendar::Moment;
use plumb_record::trace::write_histogram;
use plumb_record::{Snoop, SnoopCalls, SnoopRequests, TraceBucket};
use plumb_units::{Bytes, Nanos, RowCount, visible};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Conversion of monotonic times to the time of day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    wall: Duration,
    monotonic: u64,
}

impl Clock {
    pub fn now() -> Clock {
        Clock { wall: plumb_events::clock::wall(), monotonic: plumb_events::clock::now().0 }
    }

    /// Returns the time of day, with nanoseconds.
    fn text(self, time: u64) -> String {
        let at = self.wall_of(time);
        let iso = Moment::of(at).iso();
        format!("{}.{:09}", iso.get(11..19).unwrap_or(&iso), at.subsec_nanos())
    }

    /// Returns the date of the start.
    fn date(self) -> String {
        let iso = Moment::of(self.wall).iso();
        iso.get(..10).unwrap_or(&iso).to_string()
    }

    fn wall_of(self, time: u64) -> Duration {
        match time.checked_sub(self.monotonic) {
            Some(after) => self.wall + Duration::from_nanos(after),
            None => self.wall.saturating_sub(Duration::from_nanos(self.monotonic - time)),
        }
    }
}

/// Returns the date and the names of the columns.
pub fn head(clock: Clock) -> String {
    format!(
        "{}\n{:<18} {:<4} {:<4} {:<15} {:>12} {:>8} {:>9} {:>9} {:>11} {:<15} PATHNAME\n",
        clock.date(),
        "STRTIME",
        "VIEW",
        "D",
        "CALL/DEVICE",
        "OFFSET/BLOCK",
        "BYTES",
        "QUEUE(us)",
        "DELTA(us)",
        "PID",
        "COMM"
    )
}

/// Returns the number of a process, with that of its thread if it is another.
fn numbers(process: u32, thread: u32) -> String {
    match process == thread {
        true => process.to_string(),
        false => format!("{process}/{thread}"),
    }
}

pub fn call(call: &CallLine, clock: Clock, processes: &Processes) -> String {
    let letter = match (call.effect, call.is_direct) {
        (Effect::Read, false) => "R",
        (Effect::Read, true) => "RD",
        (Effect::Write, false) => "W",
        (Effect::Write, true) => "WD",
        _ => "S",
    };
    let offset = call.offset.map_or("-".to_string(), |offset| offset.to_string());
    let error = if call.error == 0 { String::new() } else { format!(" (error {})", call.error) };
    format!(
        "{:<18} call {:<4} {:<15} {:>12} {:>8} {:>9} {:>9.1} {:>11} {:<15} {}{error}\n",
        clock.text(call.begin),
        letter,
        call.name,
        offset,
        call.bytes,
        "-",
        call.duration as f64 / 1e3,
        numbers(call.process, call.thread),
        visible(&processes.name(call.process)),
        visible(&processes.file(call.file).path)
    )
}

pub fn request(request: &RequestLine, clock: Clock, processes: &Processes) -> String {
    let (disk, major, minor) = disk_text(request.disk);
    let how = match (request.how, request.call) {
        (How::WriteBack, _) => "written back by the kernel".to_string(),
        (how, "") => how.words().to_string(),
        (How::Call, call) => call.to_string(),
        (how, call) => format!("{}, {call}", how.words()),
    };
    format!(
        "{:<18} disk {:<4} {:<15} {:>12} {:>8} {:>9.1} {:>9.1} {:>11} {:<15} {} ({how})\n",
        clock.text(request.queued),
        comm_text(&request.flags),
        format!("{disk} {major},{minor}"),
        request.sector,
        request.bytes,
        request.issued.saturating_sub(request.queued) as f64 / 1e3,
        request.completed.saturating_sub(request.issued) as f64 / 1e3,
        numbers(request.process, request.thread),
        visible(&processes.name(request.process)),
        visible(&processes.file(request.file).path)
    )
}

/// A figure that samples do not have.
const UNKNOWN: &str = "-";

/// Adds the sums of calls by one of their names. Samples have no times (`is_sampled`), and no calls
/// of a file.
fn averages<'r>(
    text: &mut String,
    title: &str,
    is_sampled: bool,
    rows: impl Iterator<Item = &'r SnoopCalls>,
    name: fn(&SnoopCalls) -> String,
) {
    let mut sums: BTreeMap<String, SnoopCalls> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(name(row)).or_default();
        sum.calls += row.calls;
        sum.bytes += row.bytes;
        sum.time_ns += row.time_ns;
        sum.max_ns = sum.max_ns.max(row.max_ns);
        sum.disk_time_ns += row.disk_time_ns;
    }
    if sums.is_empty() {
        return;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.time_ns, sum.bytes)));
    let _ = writeln!(
        text,
        "\n{title:<44} {:>9} {:>14} {:>10} {:>11} {:>11} {:>12}",
        "CALLS", "BYTES", "AVG BYTES", "AVG(us)", "MAX(us)", "DISK AVG(us)"
    );
    for (name, sum) in sums.iter().take(ROWS_SHOWN) {
        let mean = |total: u64| total as f64 / sum.calls.max(1) as f64;
        let counted = |shown: String| if is_sampled && sum.calls == 0 { UNKNOWN.to_string() } else { shown };
        let micros = |ns: f64| if is_sampled { UNKNOWN.to_string() } else { format!("{:.1}", ns / 1e3) };
        let _ = writeln!(
            text,
            "{:<44} {:>9} {:>14} {:>10} {:>11} {:>11} {:>12}",
            visible(name),
            counted(sum.calls.to_string()),
            sum.bytes,
            counted(format!("{:.0}", mean(sum.bytes))),
            micros(mean(sum.time_ns)),
            micros(sum.max_ns as f64),
            micros(mean(sum.disk_time_ns))
        );
    }
    if sums.len() > ROWS_SHOWN {
        let _ = writeln!(text, "and {} more", sums.len() - ROWS_SHOWN);
    }
}

/// Rows of a table on the terminal; the record has all.
const ROWS_SHOWN: usize = 20;

fn disks(text: &mut String, is_sampled: bool, rows: &[SnoopRequests]) {
    let _ = writeln!(
        text,
        "\n{:<7} {:<5} {:<12} {:<13} {:>7} {:>9} {:>14} {:>10} {:>11} {:>11} PATHNAME",
        "DEVICE", "D", "HOW", "CALL", "PID", "REQUESTS", "BYTES", "QUEUE(us)", "AVG(us)", "MAX(us)"
    );
    for row in rows.iter().take(ROWS_SHOWN) {
        let known = |shown: String| if is_sampled { UNKNOWN.to_string() } else { shown };
        let mean = |total: u64| known(format!("{:.1}", total as f64 / row.requests.max(1) as f64 / 1e3));
        let named =
            |name: &str| if name.is_empty() { UNKNOWN.to_string() } else { visible(name).into_owned() };
        let _ = writeln!(
            text,
            "{:<7} {:<5} {:<12} {:<13} {:>7} {:>9} {:>14} {:>10} {:>11} {:>11} {}",
            row.disk,
            row.flags,
            row.how,
            named(&row.call),
            row.pid,
            known(row.requests.to_string()),
            row.bytes,
            mean(row.queue_ns),
            mean(row.time_ns),
            known(format!("{:.1}", row.max_ns as f64 / 1e3)),
            named(&row.file)
        );
    }
    if rows.len() > ROWS_SHOWN {
        let _ = writeln!(text, "and {} more", rows.len() - ROWS_SHOWN);
    }
}

fn histogram(text: &mut String, title: &str, buckets: &[TraceBucket], label: fn(u64) -> String) {
    if buckets.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{title}");
    write_histogram(text, "others", buckets, label);
}

/// Returns the sums at the end of a trace: averages, requests, histograms, patterns, losses.
pub fn sums(snoop: &Snoop, elapsed: Nanos) -> String {
    let mut text = String::new();
    let is_sampled = snoop.is_sampled();
    let calls = || snoop.calls.iter().filter(|row| !row.is_position());
    averages(&mut text, "PROCESS", is_sampled, calls(), |row| format!("{} {}", row.pid, row.process));
    averages(&mut text, "OPERATION", is_sampled, calls(), |row| row.operation.clone());
    // Samples know the bytes of a file by its positions alone.
    let (title, rows): (_, Vec<&SnoopCalls>) = match is_sampled {
        true => ("FILE, BY POSITION", snoop.calls.iter().filter(|row| row.is_position()).collect()),
        false => ("FILE", calls().collect()),
    };
    averages(&mut text, title, is_sampled, rows.into_iter(), |row| row.file.clone());
    if !snoop.requests.is_empty() {
        disks(&mut text, is_sampled, &snoop.requests);
    }
    histogram(&mut text, "Calls by bytes", &snoop.call_sizes, |to| Bytes(to).as_setting());
    histogram(&mut text, "Calls by time", &snoop.call_times, |to| Nanos(to).to_string());
    histogram(&mut text, "Requests by bytes", &snoop.request_sizes, |to| Bytes(to).as_setting());
    histogram(&mut text, "Requests by time at the disk", &snoop.request_times, |to| Nanos(to).to_string());
    depths(&mut text, snoop);
    patterns(&mut text, snoop);
    text + &footer(snoop, elapsed)
}

fn depths(text: &mut String, snoop: &Snoop) {
    if snoop.depths.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\nRequests of the traced programs by requests in flight, itself included\n\
         {:<7} {:>9} {:>10} {:>13}",
        "DEVICE", "IN FLIGHT", "THEIR OWN", "OF THE DEVICE"
    );
    for row in snoop.depths.iter().take(ROWS_SHOWN) {
        let _ = writeln!(text, "{:<7} {:>9} {:>10} {:>13}", row.disk, row.depth, row.own, row.requests);
    }
    if snoop.depths.len() > ROWS_SHOWN {
        let _ = writeln!(text, "and {} more", snoop.depths.len() - ROWS_SHOWN);
    }
}

fn patterns(text: &mut String, snoop: &Snoop) {
    if !snoop.patterns.is_empty() {
        let _ = writeln!(text, "\nPatterns");
    }
    for pattern in &snoop.patterns {
        let _ = writeln!(
            text,
            "  {:<5} {} ({} of {}): {}; {}",
            pattern.view,
            pattern.name,
            pattern.requests,
            pattern.of,
            visible(&pattern.file),
            pattern.arithmetic
        );
    }
    for row in &snoop.amplification {
        let ratio = match (row.call_bytes, row.disk_bytes) {
            (0, _) | (_, 0) => String::new(),
            (asked, moved) => format!(", {:.2} times", moved as f64 / asked as f64),
        };
        let parts: Vec<String> =
            row.parts.iter().map(|part| format!("{} {}", Bytes(part.bytes), part.how)).collect();
        let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
        let _ = writeln!(
            text,
            "  {}: {} by calls, {} at the disks{ratio}{parts}",
            row.direction,
            Bytes(row.call_bytes),
            Bytes(row.disk_bytes)
        );
    }
}

/// Returns the last lines: number of events, losses, and what the trace cannot see.
pub fn footer(snoop: &Snoop, elapsed: Nanos) -> String {
    let total = |count: fn(&SnoopCalls) -> u64| snoop.calls.iter().map(count).sum::<u64>();
    let requests: u64 = snoop.requests.iter().map(|row| row.requests).sum();
    let others: u64 = snoop.others.iter().map(|row| row.requests).sum();
    let events: u64 = snoop.buffers.iter().map(|buffer| buffer.events).sum();
    let calls = RowCount(total(|row| row.calls));
    let mut text = match snoop.is_sampled() {
        true => format!("\n{calls} calls of {} in {elapsed}; requests are not seen\n", snoop.target),
        false => format!(
            "\n{calls} calls and {} requests of {} in {elapsed}; {} requests of other processes\n",
            RowCount(requests),
            snoop.target,
            RowCount(others)
        ),
    };
    if snoop.other_calls > 0 {
        let _ = writeln!(
            text,
            "{} calls on pipes, sockets, terminals and files without a disk are not shown",
            RowCount(snoop.other_calls)
        );
    }
    if !snoop.is_sampled() {
        let by: Vec<String> = snoop
            .buffers
            .iter()
            .filter(|buffer| buffer.lost > 0)
            .map(|buffer| format!("{} {}", buffer.name, RowCount(buffer.lost)))
            .collect();
        let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
        let _ = writeln!(
            text,
            "{} events of the kernel, {} of them lost{by}; {} completions and {} exits without a \
             beginning, {} in flight",
            RowCount(events),
            RowCount(snoop.lost()),
            snoop.unmatched_completions,
            snoop.unmatched_exits,
            snoop.in_flight
        );
    }
    snoop.cannot_see.iter().for_each(|limit| {
        let _ = writeln!(text, "{limit}");
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::descriptor::FileKind;
    use crate::owner::join::{Depth, Share};
    use crate::owner::process::FileName;
    use std::path::Path;

    #[test]
    fn sums_of_samples_have_no_times_and_count_no_byte_twice() {
        let call = |operation: &str, effect: &str, file: &str, calls| SnoopCalls {
            pid: 7,
            process: "dd".to_string(),
            operation: operation.to_string(),
            effect: effect.to_string(),
            file: file.to_string(),
            calls,
            bytes: 8_000,
            ..SnoopCalls::default()
        };
        let request = SnoopRequests { disk: "all".to_string(), bytes: 4096, ..SnoopRequests::default() };
        let snoop = Snoop {
            target: "pid 7".to_string(),
            calls: vec![
                call("write calls", "write", "<all>", 4),
                call("position moved", SnoopCalls::POSITION, "/f", 0),
            ],
            requests: vec![request],
            ..Snoop::default()
        };
        let shown = sums(&snoop, Nanos(1_000_000_000));
        let words: Vec<Vec<&str>> =
            shown.lines().map(|line| line.split_ascii_whitespace().collect()).collect();
        assert!(words.contains(&vec!["7", "dd", "4", "8000", "2000", "-", "-", "-"]), "{shown}");
        assert!(words.contains(&vec!["/f", "-", "8000", "-", "-", "-", "-"]), "{shown}");
        assert!(words.contains(&vec!["all", "-", "0", "-", "4096", "-", "-", "-", "-"]), "{shown}");
        assert!(shown.contains("\n4 calls of pid 7 in 1.00 s; requests are not seen\n"), "{shown}");
        assert!(!shown.contains("position moved") && !shown.contains(" 0.0"), "{shown}");
    }

    #[test]
    fn lines_are_aligned_under_the_head_and_name_a_thread_only_if_it_is_another() {
        let mut processes = Processes::new(Path::new("/proc"));
        let path = "/a b".to_string();
        let (kind, disk) = (FileKind::Regular, 4095 << 20);
        let file = processes.add_file(FileName { path, disk, inode: 7, kind, size: None });
        let clock = Clock { wall: Duration::from_secs(1_700_000_000), monotonic: 5_000_000_000 };
        let one = CallLine {
            begin: 6_000_000_012,
            duration: 412_300,
            thread: 4712,
            process: 4711,
            name: "sync_file_range",
            effect: Effect::Sync,
            file,
            offset: Some(1_048_576),
            bytes: 8192,
            error: 5,
            is_direct: false,
            is_durable: false,
            disk: Share::default(),
        };
        let other = RequestLine {
            queued: 4_000_000_000,
            issued: 4_000_003_000,
            completed: 4_000_391_000,
            disk: 4095 << 20,
            sector: 22_293_312,
            bytes: 8192,
            flags: *b"WS\0\0\0\0\0\0\0\0",
            process: 4711,
            thread: 4711,
            file,
            how: How::Flush,
            call: "fsync",
            depth: Depth { all: 1, own: 1 },
        };
        let shown = head(clock) + &call(&one, clock, &processes) + &request(&other, clock, &processes);
        let expected = concat!(
            "2023-11-14\n",
            "STRTIME            VIEW D    CALL/DEVICE     OFFSET/BLOCK    BYTES QUEUE(us) ",
            "DELTA(us)         PID COMM            PATHNAME\n",
            "22:13:21.000000012 call S    sync_file_range      1048576     8192         - ",
            "    412.3   4711/4712                 /a b (error 5)\n",
            "22:13:19.000000000 disk WS   4095:0 4095,0       22293312     8192       3.0 ",
            "    388.0        4711                 /a b (flush, fsync)\n",
        );
        assert_eq!(shown, expected);
    }
}
