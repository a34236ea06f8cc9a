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

use crate::event::comm_text;
use crate::join::{CallLine, How, RequestLine, disk_text};
use crate::process::Processes;
use crate::syscalls::Effect;
use plumb_record::calendar::Moment;
use plumb_record::{Snoop, SnoopCalls, SnoopRequests, TraceBucket};
use plumb_units::{Bytes, Nanos, RowCount, visible};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// Characters of a histogram's longest bar.
const BAR: u64 = 40;

/// Conversion of monotonic times to the time of day.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    wall: Duration,
    monotonic: u64,
}

impl Clock {
    #[must_use]
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
#[must_use]
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

#[must_use]
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

#[must_use]
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

/// Sums of calls by one of their names.
fn averages(text: &mut String, title: &str, rows: &[SnoopCalls], name: fn(&SnoopCalls) -> String) {
    let mut sums: BTreeMap<String, SnoopCalls> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(name(row)).or_default();
        sum.calls += row.calls;
        sum.bytes += row.bytes;
        sum.time_ns += row.time_ns;
        sum.max_ns = sum.max_ns.max(row.max_ns);
        sum.disk_time_ns += row.disk_time_ns;
        sum.errors += row.errors;
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.time_ns));
    let _ = writeln!(
        text,
        "\n{title:<44} {:>9} {:>14} {:>10} {:>11} {:>11} {:>12}",
        "CALLS", "BYTES", "AVG BYTES", "AVG(us)", "MAX(us)", "DISK AVG(us)"
    );
    for (name, sum) in sums.iter().take(ROWS_SHOWN) {
        let mean = |total: u64| total as f64 / sum.calls.max(1) as f64;
        let _ = writeln!(
            text,
            "{:<44} {:>9} {:>14} {:>10.0} {:>11.1} {:>11.1} {:>12.1}",
            visible(name),
            sum.calls,
            sum.bytes,
            mean(sum.bytes),
            mean(sum.time_ns) / 1e3,
            sum.max_ns as f64 / 1e3,
            mean(sum.disk_time_ns) / 1e3
        );
    }
    if sums.len() > ROWS_SHOWN {
        let _ = writeln!(text, "and {} more", sums.len() - ROWS_SHOWN);
    }
}

/// Rows of a table on the terminal; the record has all.
const ROWS_SHOWN: usize = 20;

fn disks(text: &mut String, rows: &[SnoopRequests]) {
    let _ = writeln!(
        text,
        "\n{:<7} {:<5} {:<12} {:<13} {:>7} {:>9} {:>14} {:>10} {:>11} {:>11} PATHNAME",
        "DEVICE", "D", "HOW", "CALL", "PID", "REQUESTS", "BYTES", "QUEUE(us)", "AVG(us)", "MAX(us)"
    );
    for row in rows.iter().take(ROWS_SHOWN) {
        let mean = |total: u64| total as f64 / row.requests.max(1) as f64 / 1e3;
        let _ = writeln!(
            text,
            "{:<7} {:<5} {:<12} {:<13} {:>7} {:>9} {:>14} {:>10.1} {:>11.1} {:>11.1} {}",
            row.disk,
            row.flags,
            row.how,
            row.call,
            row.pid,
            row.requests,
            row.bytes,
            mean(row.queue_ns),
            mean(row.time_ns),
            row.max_ns as f64 / 1e3,
            visible(&row.file)
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
    let most = buckets.iter().map(|bucket| bucket.reads + bucket.writes).max().unwrap_or(0).max(1);
    let _ = writeln!(text, "\n{title}\n{:>12} {:>10} {:>10}", "up to", "reads", "others");
    for bucket in buckets {
        let bar = |count: u64, letter: char| letter.to_string().repeat((count * BAR).div_ceil(most) as usize);
        let bars = bar(bucket.reads, 'r') + &bar(bucket.writes, 'w');
        let line = format!("{:>12} {:>10} {:>10} {bars}", label(bucket.to), bucket.reads, bucket.writes);
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Returns the sums at the end of a trace: averages, requests, histograms, patterns, losses.
#[must_use]
pub fn sums(snoop: &Snoop, elapsed: Nanos) -> String {
    let mut text = String::new();
    let calls = &snoop.calls;
    if !calls.is_empty() {
        averages(&mut text, "PROCESS", calls, |row| format!("{} {}", row.pid, row.process));
        averages(&mut text, "OPERATION", calls, |row| row.operation.clone());
        averages(&mut text, "FILE", calls, |row| row.file.clone());
    }
    if !snoop.requests.is_empty() {
        disks(&mut text, &snoop.requests);
    }
    histogram(&mut text, "Calls by bytes", &snoop.call_sizes, |to| Bytes(to).as_setting());
    histogram(&mut text, "Calls by time", &snoop.call_times, |to| Nanos(to).to_string());
    histogram(&mut text, "Requests by bytes", &snoop.request_sizes, |to| Bytes(to).as_setting());
    histogram(&mut text, "Requests by time at the disk", &snoop.request_times, |to| Nanos(to).to_string());
    patterns(&mut text, snoop);
    text + &footer(snoop, elapsed)
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
#[must_use]
pub fn footer(snoop: &Snoop, elapsed: Nanos) -> String {
    let total = |count: fn(&SnoopCalls) -> u64| snoop.calls.iter().map(count).sum::<u64>();
    let requests: u64 = snoop.requests.iter().map(|row| row.requests).sum();
    let others: u64 = snoop.others.iter().map(|row| row.requests).sum();
    let events: u64 = snoop.buffers.iter().map(|buffer| buffer.events).sum();
    let mut text = format!(
        "\n{} calls and {} requests of {} in {elapsed}; {} requests of other processes\n",
        RowCount(total(|row| row.calls)),
        RowCount(requests),
        snoop.target,
        RowCount(others)
    );
    if !snoop.buffers.is_empty() {
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
    use crate::descriptor::FileKind;
    use crate::join::Share;
    use crate::process::FileName;
    use std::path::Path;

    #[test]
    fn lines_are_aligned_under_the_head_and_name_a_thread_only_if_it_is_another() {
        let mut processes = Processes::new(Path::new("/proc"));
        let path = "/a b".to_string();
        let file = processes.add_file(FileName { path, disk: 4095 << 20, inode: 7, kind: FileKind::Regular });
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
            depth: 1,
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
