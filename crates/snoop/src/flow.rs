//! The flow of single calls through file system and block layer, indented, with times.
//!
//! ```text
//!       0.0 -> pwrite64
//!       2.1   -> iomap_dio_rw_begin
//!       6.0      block_io_start
//!       7.2      -> device vda WS
//!     391.5      <- device vda WS          384.3
//!     399.0   <- iomap_dio_complete        396.9
//!     401.2 <- pwrite64                    401.2
//! ```
//!
//! Steps: all tracepoints of the file systems and the block layer are enabled for the threads of
//! the target, until one buffered write, one direct write and one sync have been seen. Then they
//! are disabled, and the same calls are timed without them, because the trace itself costs: both
//! means are printed.
//!
//! Requests are issued and completed in any thread, so they are joined by disk and time
//! ([`Request::serves`]): to the sector that the call made a request for, and, while the call waits
//! for durability, each flush of its disk and each request of the journal there.
//!
//! Why tracepoints: kernels without function_graph and kprobes have no other entries and exits.
//! Limits: only pairs of tracepoints ([`PAIRS`], `_enter`/`_exit`, `_begin`/`_end`) have times of
//! their own. A flush or a journal's request may serve other calls, too. Work of other threads
//! without a request shows as time between the lines.

use crate::capture::start_followed;
use crate::error::SnoopError;
use crate::kernel::event::comm_text;
use crate::kernel::format::{Format, Slot};
use crate::kernel::page;
use crate::kernel::tracefs::{self, Handle, Instance};
use crate::owner::process::{Processes, disk_name};
use crate::target::{self, SnoopTarget};
use plumb_host::process::{self, Started};
use plumb_units::visible;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Groups of tracepoints of a flow.
const SYSTEMS: [&str; 8] = ["ext4", "xfs", "btrfs", "iomap", "jbd2", "filemap", "readahead", "block"];
/// Calls whose flows are shown.
const CALLS: [&str; 9] = [
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "pread64",
];
/// Pairs whose names do not say so.
const PAIRS: [(&str, &str); 5] = [
    ("iomap_dio_rw_begin", "iomap_dio_complete"),
    ("ext4_writepages", "ext4_writepages_result"),
    ("block_plug", "block_unplug"),
    ("ext4_ext_convert_to_initialized_enter", "ext4_ext_convert_to_initialized_fastpath"),
    ("ext4_journal_start_inode", "jbd2_handle_stats"),
];
const ISSUE: &str = "block_rq_issue";
/// Tracepoints of requests, which run in any thread.
const OF_DISKS: [&str; 2] = [ISSUE, "block_rq_complete"];
/// Steps of a call that returns when its bytes are durable.
const WAITS: [&str; 5] = [
    "sys_enter_fsync",
    "sys_enter_fdatasync",
    "sys_enter_sync_file_range",
    "ext4_sync_file_enter",
    "xfs_file_fsync",
];
/// Requests that are remembered for the calls in flight.
const REQUESTS_MAX: usize = 4096;
const BUFFER_BYTES: u64 = 4 << 20;
const WAIT: Duration = Duration::from_millis(20);
/// Events of a call; a call with more is shown up to here.
const STEPS_MAX: usize = 400;

/// Kind of a flow; one of each is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Buffered,
    Direct,
    Sync,
}

#[derive(Debug, Clone, Default)]
struct Step {
    time: u64,
    name: String,
    /// Disk, where the event names a device.
    disk: Option<u32>,
    /// Sector of a block request.
    sector: Option<u64>,
}

/// A request of a disk, made by any thread.
#[derive(Debug, Clone, PartialEq)]
struct Request {
    disk: u32,
    sector: u64,
    /// Number of sectors; 0 for a flush.
    sectors: u64,
    flags: String,
    issued: u64,
    /// None while it is at the disk.
    completed: Option<u64>,
    /// Number and name of the thread that issued it.
    thread: u32,
    comm: String,
}

impl Request {
    /// True if a call of these steps made it or waited for it. It is issued and completed within
    /// the call.
    fn serves(&self, thread: u32, steps: &[Step]) -> bool {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return false };
        if self.issued < first.time || self.completed.is_none_or(|end| end > last.time) {
            return false;
        }
        let is_of_sector = |step: &Step| {
            let inside = step.sector.is_some_and(|at| self.sector <= at && at < self.sector + self.sectors);
            step.disk == Some(self.disk) && step.time <= self.issued && inside
        };
        let disk = || steps.iter().any(|step| step.disk == Some(self.disk));
        let waits = || steps.iter().any(|step| WAITS.contains(&step.name.as_str()));
        let is_for_durability = self.sectors == 0 || self.comm.starts_with("jbd2/");
        self.thread == thread && self.sectors > 0 && disk()
            || steps.iter().any(is_of_sector)
            || is_for_durability && disk() && waits()
    }

    fn title(&self) -> String {
        let kind =
            if self.sectors == 0 { " flush".to_string() } else { format!(" {} sectors", self.sectors) };
        format!("device {} {}{kind}", disk_name(self.disk), self.flags)
    }
}

/// A call that was seen, with its requests.
#[derive(Debug, Clone)]
struct Seen {
    thread: u32,
    steps: Vec<Step>,
    requests: Vec<Request>,
}

/// Fields of a tracepoint that a flow needs.
#[derive(Debug, Clone)]
struct Known {
    name: String,
    slots: HashMap<&'static str, Slot>,
}

/// Fields of tracepoints that a flow shows or joins by.
const FIELDS: [&str; 5] = ["dev", "sector", "nr_sector", "rwbs", "comm"];

/// An event of a thread, or of a disk.
#[derive(Debug)]
enum Taken {
    Step(u32, Step),
    Issued(Request),
    Completed(Request),
}

#[derive(Debug)]
pub struct Flow {
    calls: Instance,
    disk: Instance,
    known: HashMap<u16, Known>,
    processes: Processes,
    open: HashMap<u32, Vec<Step>>,
    /// Requests of all disks, in the order of their issues.
    requests: VecDeque<Request>,
    command: Option<Started>,
    flows: HashMap<Kind, Seen>,
    /// Count and sum of times with all tracepoints, and with those of calls only.
    times: [HashMap<String, (u64, u64)>; 2],
    is_full: bool,
}

impl Flow {
    /// Starts to trace the flows of a running target, or starts a command. Fails as a trace does.
    pub fn start(target: &SnoopTarget) -> Result<Flow, SnoopError> {
        let pids = target::find(target)?;
        let root = tracefs::find()?;
        tracefs::remove_orphans(&root);
        let calls = Instance::create(&root, "flow", BUFFER_BYTES)?;
        let disk = Instance::create(&root, "flow-disk", BUFFER_BYTES)?;
        let mut flow = Flow {
            calls,
            disk,
            known: HashMap::new(),
            processes: Processes::new(Path::new("/proc")),
            open: HashMap::new(),
            requests: VecDeque::new(),
            command: None,
            flows: HashMap::new(),
            times: [HashMap::new(), HashMap::new()],
            is_full: true,
        };
        flow.enable_all(&root)?;
        for pid in pids {
            let threads = flow.processes.add(pid);
            flow.calls.handle().follow(&threads)?;
        }
        let handles = [flow.calls.handle(), flow.disk.handle()];
        match target {
            SnoopTarget::Command(words) => {
                let (_, started) = start_followed(words, &handles[..1], &handles)?;
                flow.command = Some(started);
            }
            _ => handles.iter().try_for_each(Handle::start)?,
        }
        Ok(flow)
    }

    fn enable_all(&mut self, root: &Path) -> Result<(), SnoopError> {
        for call in CALLS {
            for side in ["enter", "exit"] {
                self.enable(&format!("syscalls/sys_{side}_{call}"))?;
            }
        }
        for system in SYSTEMS {
            let entries = fs::read_dir(root.join("events").join(system)).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.path().is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if !OF_DISKS.contains(&name.as_str()) && !name.contains("shrink") && !name.contains("_es_") {
                    self.enable(&format!("{system}/{name}"))?;
                }
            }
        }
        for name in OF_DISKS {
            let format = self.disk.enable(&format!("block/{name}"), "")?;
            self.know(name, &format);
        }
        Ok(())
    }

    fn enable(&mut self, event: &str) -> Result<(), SnoopError> {
        match self.calls.enable(event, "") {
            Ok(format) => {
                self.know(event.rsplit('/').next().unwrap_or(event), &format);
                Ok(())
            }
            Err(SnoopError::NoTracepoint { .. } | SnoopError::Format { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn know(&mut self, name: &str, format: &Format) {
        let slots = FIELDS.into_iter().filter_map(|field| Some((field, format.slot(field)?)));
        self.known.insert(format.id, Known { name: name.to_string(), slots: slots.collect() });
    }

    /// Returns the directories of the kernel's buffers.
    pub fn directories(&self) -> Vec<std::path::PathBuf> {
        vec![self.calls.handle().path(), self.disk.handle().path()]
    }

    /// True unless a command was started and has ended.
    pub fn is_alive(&self) -> bool {
        self.command.as_ref().is_none_or(|started| !started.has_ended())
    }

    /// Waits for the end of the command; none without one.
    pub fn wait(&mut self) -> Option<std::io::Result<process::Ended>> {
        self.command.take().map(Started::wait)
    }

    /// Takes the events so far and waits for more. Fails if the kernel fails a read.
    pub fn step(&mut self) -> Result<(), SnoopError> {
        let (known, processes) = (&self.known, &mut self.processes);
        let mut events: Vec<(u64, Taken)> = Vec::new();
        for instance in [&mut self.calls, &mut self.disk] {
            instance.drain(&mut |page| {
                page::walk(page, &mut |time, record| {
                    events.extend(taken(known, processes, time, record).map(|event| (time, event)));
                });
            })?;
        }
        events.sort_by_key(|(time, _)| *time);
        for (_, event) in events {
            match event {
                Taken::Step(thread, step) => self.take(thread, step),
                Taken::Issued(request) => self.issued(request),
                Taken::Completed(request) => self.completed(&request),
            }
        }
        if self.is_full && self.flows.len() == 3 {
            self.is_full = false;
            for system in SYSTEMS {
                self.calls.disable(system)?;
            }
            self.disk.disable("block")?;
        }
        std::thread::sleep(WAIT);
        Ok(())
    }

    fn issued(&mut self, request: Request) {
        self.requests.push_back(request);
        if self.requests.len() > REQUESTS_MAX {
            self.requests.pop_front();
        }
    }

    /// Ends the oldest request at the place of the completion; a flush has no place.
    fn completed(&mut self, end: &Request) {
        // A request that asked for a flush ends again, without sectors, after the flush itself.
        if end.sectors == 0 && !end.flags.starts_with('F') {
            return;
        }
        let is_it = |request: &&mut Request| {
            let same = match end.sectors {
                0 => request.sectors == 0,
                _ => request.sectors > 0 && request.sector == end.sector,
            };
            same && request.disk == end.disk && request.completed.is_none()
        };
        if let Some(request) = self.requests.iter_mut().find(is_it) {
            request.completed = Some(end.issued);
        }
    }

    fn take(&mut self, thread: u32, step: Step) {
        if step.name.starts_with("sys_enter_") {
            self.open.insert(thread, vec![step]);
            return;
        }
        let Some(steps) = self.open.get_mut(&thread) else { return };
        let is_exit = step.name.starts_with("sys_exit_");
        if steps.len() < STEPS_MAX || is_exit {
            steps.push(step);
        }
        if !is_exit {
            return;
        }
        let Some(steps) = self.open.remove(&thread) else { return };
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return };
        let name = first.name.trim_start_matches("sys_enter_").to_string();
        let time = last.time.saturating_sub(first.time);
        let sums = self.times[usize::from(!self.is_full)].entry(name.clone()).or_default();
        *sums = (sums.0 + 1, sums.1 + time);
        let kind = match name.as_str() {
            "fsync" | "fdatasync" | "sync_file_range" => Kind::Sync,
            _ if steps.iter().any(|step| step.name == "iomap_dio_rw_begin") => Kind::Direct,
            _ => Kind::Buffered,
        };
        // A call on a socket or pipe passes no file system.
        if self.is_full && steps.len() > 2 && !name.starts_with("pread") && !self.flows.contains_key(&kind) {
            let of_call = self.requests.iter().filter(|request| request.serves(thread, &steps));
            let requests = of_call.cloned().collect();
            self.flows.insert(kind, Seen { thread, steps, requests });
        }
    }

    /// Returns the flows and the cost of seeing them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut kinds: Vec<Kind> = self.flows.keys().copied().collect();
        kinds.sort_unstable();
        for kind in kinds {
            let title = match kind {
                Kind::Buffered => "A write through the page cache",
                Kind::Direct => "A direct write",
                Kind::Sync => "A sync",
            };
            let _ =
                writeln!(text, "\n{title}, microseconds from its entry, and since the entry of each pair");
            text += &drawn(&self.flows[&kind]);
        }
        let mut names: Vec<&String> = self.times[0].keys().collect();
        names.sort_unstable();
        for name in names {
            let mean = |(count, sum): (u64, u64)| sum as f64 / count.max(1) as f64 / 1e3;
            let under = self.times[0][name];
            let without = match self.times[1].get(name) {
                Some(sums) => format!("{:.1} us without ({} calls)", mean(*sums), sums.0),
                None => "no call without".to_string(),
            };
            let _ = writeln!(
                text,
                "\n{name}: {:.1} us on average under this trace ({} calls), {without}",
                mean(under),
                under.0
            );
        }
        if self.flows.is_empty() {
            text += "no write and no sync of a file was seen\n";
        }
        text
    }
}

fn taken(known: &HashMap<u16, Known>, processes: &mut Processes, time: u64, record: &[u8]) -> Option<Taken> {
    let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
    let thread = u32::from_le_bytes(record.get(4..8)?.try_into().ok()?);
    let Known { name, slots } = known.get(&id)?;
    let number = |field: &str| slots.get(field).map(|slot| slot.number(record));
    let text = |field: &str| slots.get(field).map_or(String::new(), |slot| comm_text(slot.text(record)));
    // Events of a file system name its partition, those of requests the disk.
    let disk = number("dev").map(|device| processes.disk_of(device as u32));
    if !OF_DISKS.contains(&name.as_str()) {
        return Some(Taken::Step(thread, Step { time, name: name.clone(), disk, sector: number("sector") }));
    }
    let request = Request {
        disk: disk?,
        sector: number("sector")?,
        sectors: number("nr_sector")?,
        flags: text("rwbs"),
        issued: time,
        completed: None,
        thread,
        comm: text("comm"),
    };
    Some(if name == ISSUE { Taken::Issued(request) } else { Taken::Completed(request) })
}

/// Returns the name of what an event ends; none if it ends nothing.
fn beginning(name: &str) -> Option<String> {
    if let Some((begin, _)) = PAIRS.iter().find(|(_, end)| *end == name) {
        return Some((*begin).to_string());
    }
    let ends = [("_exit", "_enter"), ("_end", "_begin"), ("_end", "_start")];
    if let Some(call) = name.strip_prefix("sys_exit_") {
        return Some(format!("sys_enter_{call}"));
    }
    ends.iter().find_map(|(end, begin)| Some(format!("{}{begin}", name.strip_suffix(end)?)))
}

/// True if an event begins a pair that ends later in the same call.
fn ends_later(name: &str, later: &[Step]) -> bool {
    later.iter().any(|step| beginning(&step.name).as_deref() == Some(name))
}

/// Returns the time within which any of the requests was at its disk.
fn at_disk(requests: &[Request]) -> u64 {
    let mut spans: Vec<(u64, u64)> =
        requests.iter().filter_map(|request| Some((request.issued, request.completed?))).collect();
    spans.sort_unstable();
    let (mut sum, mut end) = (0, 0);
    for (from, to) in spans {
        sum += to.saturating_sub(from.max(end));
        end = end.max(to);
    }
    sum
}

/// Issues and completions of the requests, in the order of their times.
fn of_devices(requests: &[Request], thread: u32) -> VecDeque<(u64, String)> {
    let mut lines: Vec<(u64, String)> = Vec::new();
    for request in requests {
        let by = match request.thread == thread {
            true => String::new(),
            false => format!(" by {} {}", request.comm, request.thread),
        };
        let title = request.title();
        lines.push((request.issued, format!("-> {title}{by}")));
        if let Some(end) = request.completed {
            let took = end.saturating_sub(request.issued) as f64 / 1e3;
            lines.push((end, format!("<- {title} {took:.1}")));
        }
    }
    lines.sort_by_key(|(time, _)| *time);
    lines.into()
}

fn drawn(seen: &Seen) -> String {
    let Seen { thread, steps, requests } = seen;
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return String::new() };
    let micros = |time: u64| time.saturating_sub(first.time) as f64 / 1e3;
    // The device is apart: its part of the time is the finding.
    let mut of_devices = of_devices(requests, *thread);
    let mut text = String::new();
    let mut open: Vec<(String, u64)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        while of_devices.front().is_some_and(|(time, _)| *time <= step.time) {
            let Some((time, line)) = of_devices.pop_front() else { break };
            let _ = writeln!(text, "{:>10.1} {}{}", micros(time), "  ".repeat(open.len()), visible(&line));
        }
        let name = step.name.trim_start_matches("sys_enter_").trim_start_matches("sys_exit_");
        let ended =
            beginning(&step.name).and_then(|begin| open.iter().rposition(|(known, _)| *known == begin));
        match ended {
            Some(depth) => {
                let begin = open[depth].1;
                open.truncate(depth);
                let took = step.time.saturating_sub(begin) as f64 / 1e3;
                let indent = "  ".repeat(depth);
                let _ = writeln!(text, "{:>10.1} {indent}<- {name} {took:.1}", micros(step.time));
            }
            None => {
                let begins = ends_later(&step.name, &steps[at + 1..]);
                let indent = "  ".repeat(open.len());
                let mark = if begins { "-> " } else { "   " };
                let _ = writeln!(text, "{:>10.1} {indent}{mark}{name}", micros(step.time));
                if begins {
                    open.push((step.name.clone(), step.time));
                }
            }
        }
    }
    let (whole, part) = (last.time.saturating_sub(first.time), at_disk(requests));
    let share = 100.0 * part as f64 / whole.max(1) as f64;
    let _ = writeln!(
        text,
        "{:>10.1} of {:.1} us at the device ({share:.0}%)",
        part as f64 / 1e3,
        whole as f64 / 1e3
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const DISK: u32 = 4095 << 20;

    fn step(time: u64, name: &str) -> Step {
        Step { time, name: name.to_string(), ..Step::default() }
    }

    fn request(at: [u64; 2], sectors: u64, thread: u32, comm: &str) -> Request {
        let flags = if sectors == 0 { "FF" } else { "WS" }.to_string();
        let [issued, completed] = [at[0], at[1]];
        Request {
            disk: DISK,
            sector: if sectors == 0 { 0 } else { 8 },
            sectors,
            flags,
            issued,
            completed: Some(completed),
            thread,
            comm: comm.to_string(),
        }
    }

    #[test]
    fn pairs_are_indented_and_the_device_is_apart() {
        let steps = vec![
            step(1_000, "sys_enter_pwrite64"),
            step(2_000, "iomap_dio_rw_begin"),
            Step { disk: Some(DISK), sector: Some(8), ..step(6_000, "block_io_start") },
            step(392_000, "iomap_dio_complete"),
            step(395_000, "sys_exit_pwrite64"),
        ];
        let requests = vec![request([7_000, 391_000], 16, 7, "dd")];
        let expected = "       0.0 -> pwrite64
       1.0   -> iomap_dio_rw_begin
       5.0        block_io_start
       6.0     -> device 4095:0 WS 16 sectors
     390.0     <- device 4095:0 WS 16 sectors 384.0
     391.0   <- iomap_dio_complete 390.0
     394.0 <- pwrite64 394.0
     384.0 of 394.0 us at the device (97%)
";
        assert_eq!(drawn(&Seen { thread: 7, steps, requests }), expected);
        assert_eq!(beginning("ext4_sync_file_exit").as_deref(), Some("ext4_sync_file_enter"));
        assert_eq!(beginning("ext4_da_write_end").as_deref(), Some("ext4_da_write_begin"));
        assert_eq!(beginning("block_io_start"), None);
    }

    /// Workers of the kernel issue a flush, and an interrupt ends it in whatever thread runs.
    #[test]
    fn a_sync_has_the_flush_of_its_disk_and_the_requests_of_the_journal() {
        let steps = vec![
            step(1_000, "sys_enter_fsync"),
            Step { disk: Some(DISK), ..step(2_000, "ext4_sync_file_enter") },
            Step { disk: Some(DISK), sector: Some(8), ..step(6_000, "block_io_start") },
            step(900_000, "ext4_sync_file_exit"),
            step(901_000, "sys_exit_fsync"),
        ];
        let data = request([100_000, 200_000], 16, 8, "kworker/0:1H");
        let journal = Request { sector: 99, ..request([210_000, 300_000], 8, 9, "jbd2/vda-8") };
        let flush = request([290_000, 890_000], 0, 8, "kworker/0:1H");
        for (with, request) in [(true, &data), (true, &journal), (true, &flush)] {
            assert_eq!(request.serves(7, &steps), with, "{request:?}");
        }
        let elsewhere = Request { disk: DISK + 1, ..flush.clone() };
        let later = Request { completed: Some(902_000), ..flush.clone() };
        let others = Request { sector: 800, ..data.clone() };
        for request in [&elsewhere, &later, &others] {
            assert!(!request.serves(7, &steps), "{request:?}");
        }
        let is_durable = |step: &Step| !WAITS.contains(&step.name.as_str());
        let buffered: Vec<Step> = steps.iter().filter(|step| is_durable(step)).cloned().collect();
        assert!(!flush.serves(7, &buffered), "a write that does not wait");
        let shown = drawn(&Seen { thread: 7, steps, requests: vec![data, journal, flush] });
        for line in [
            "     289.0     -> device 4095:0 FF flush by kworker/0:1H 8\n",
            "     889.0     <- device 4095:0 FF flush 600.0\n",
            "     780.0 of 900.0 us at the device (87%)\n",
        ] {
            assert!(shown.contains(line), "{line} in\n{shown}");
        }
    }
}
