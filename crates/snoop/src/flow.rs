//! The flow of single calls through file system and block layer, indented, with times.
//!
//! ```text
//!       0.0 -> pwrite64
//!       2.1   -> iomap_dio_rw_begin
//!       6.0      block_io_start
//!       7.2      -> device vda
//!     391.5      <- device vda                 384.3
//!     399.0   <- iomap_dio_complete            396.9
//!     401.2 <- pwrite64                        401.2
//! ```
//!
//! Steps: all tracepoints of the file systems and the block layer are enabled for the threads of
//! the target, until one buffered write, one direct write and one sync have been seen. Then they
//! are disabled, and the same calls are timed without them, because the trace itself costs: both
//! means are printed.
//!
//! Why tracepoints: kernels without function_graph and kprobes have no other entries and exits.
//! Limits: only pairs of tracepoints ([`PAIRS`], `_enter`/`_exit`, `_begin`/`_end`) have times of
//! their own; work that other threads do for the call (journal, io-wq) shows as time between them.

use crate::error::SnoopError;
use crate::format::Slot;
use crate::page;
use crate::process::{Processes, disk_name};
use crate::target::{self, SnoopTarget};
use crate::tracefs::{self, Instance};
use std::collections::HashMap;
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

#[derive(Debug, Clone)]
struct Step {
    time: u64,
    name: String,
    /// Disk and sector of a block request.
    place: Option<(u32, u64)>,
}

/// A call that was seen, with the completions of its requests by disk and sector.
#[derive(Debug, Clone)]
struct Seen {
    steps: Vec<Step>,
    completed: HashMap<(u32, u64), u64>,
}

/// Fields of a tracepoint that a flow needs.
#[derive(Debug, Clone)]
struct Known {
    name: String,
    device: Option<Slot>,
    sector: Option<Slot>,
}

#[derive(Debug)]
pub struct Flow {
    calls: Instance,
    disk: Instance,
    known: HashMap<u16, Known>,
    processes: Processes,
    open: HashMap<u32, Vec<Step>>,
    /// Completions by disk and sector.
    completed: HashMap<(u32, u64), u64>,
    flows: HashMap<Kind, Seen>,
    /// Count and sum of times with all tracepoints, and with those of calls only.
    times: [HashMap<String, (u64, u64)>; 2],
    is_full: bool,
}

impl Flow {
    /// Starts to trace the flows of a running target. Fails as a trace does.
    pub fn start(target: &SnoopTarget) -> Result<Flow, SnoopError> {
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
            completed: HashMap::new(),
            flows: HashMap::new(),
            times: [HashMap::new(), HashMap::new()],
            is_full: true,
        };
        for pid in target::find(target)? {
            let threads = flow.processes.add(pid);
            flow.calls.handle().follow(&threads)?;
        }
        for call in CALLS {
            for side in ["enter", "exit"] {
                flow.enable(&format!("syscalls/sys_{side}_{call}"))?;
            }
        }
        for system in SYSTEMS {
            let entries = fs::read_dir(root.join("events").join(system)).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.path().is_dir()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                // Completions run in any thread.
                if name != "block_rq_complete" && !name.contains("shrink") && !name.contains("_es_") {
                    flow.enable(&format!("{system}/{name}"))?;
                }
            }
        }
        let format = flow.disk.enable("block/block_rq_complete", "")?;
        let known = Known {
            name: "block_rq_complete".to_string(),
            device: format.slot("dev"),
            sector: format.slot("sector"),
        };
        flow.known.insert(format.id, known);
        flow.calls.handle().start()?;
        flow.disk.handle().start()?;
        Ok(flow)
    }

    fn enable(&mut self, event: &str) -> Result<(), SnoopError> {
        match self.calls.enable(event, "") {
            Ok(format) => {
                let name = event.rsplit('/').next().unwrap_or(event).to_string();
                let known = Known { name, device: format.slot("dev"), sector: format.slot("sector") };
                self.known.insert(format.id, known);
                Ok(())
            }
            Err(SnoopError::NoTracepoint { .. } | SnoopError::Format { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the directories of the kernel's buffers.
    #[must_use]
    pub fn directories(&self) -> Vec<std::path::PathBuf> {
        vec![self.calls.handle().path(), self.disk.handle().path()]
    }

    /// Takes the events so far and waits for more. Fails if the kernel fails a read.
    pub fn step(&mut self) -> Result<(), SnoopError> {
        let known = &self.known;
        let mut events: Vec<(u32, Step)> = Vec::new();
        for instance in [&mut self.calls, &mut self.disk] {
            instance.drain(&mut |page| {
                page::walk(page, &mut |time, record| events.extend(step(known, time, record)));
            })?;
        }
        events.sort_by_key(|(_, step)| step.time);
        for (thread, step) in events {
            self.take(thread, step);
        }
        if self.is_full && self.flows.len() == 3 {
            self.is_full = false;
            for system in SYSTEMS {
                self.calls.disable(system)?;
            }
        }
        std::thread::sleep(WAIT);
        Ok(())
    }

    fn take(&mut self, thread: u32, step: Step) {
        if let Some(place) = step.place.filter(|_| step.name == "block_rq_complete") {
            self.completed.insert(place, step.time);
            return;
        }
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
        if self.is_full && steps.len() > 2 && !name.starts_with("pread") {
            // A later request to the same sector would replace the completion.
            let places = steps.iter().filter_map(|step| step.place);
            let ends = places.filter_map(|place| Some((place, *self.completed.get(&place)?)));
            let completed = ends.collect();
            self.flows.entry(kind).or_insert(Seen { steps, completed });
        }
    }

    /// Returns the flows and the cost of seeing them.
    #[must_use]
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
            let Seen { steps, completed } = &self.flows[&kind];
            text += &drawn(steps, completed);
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

fn step(known: &HashMap<u16, Known>, time: u64, record: &[u8]) -> Option<(u32, Step)> {
    let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
    let thread = u32::from_le_bytes(record.get(4..8)?.try_into().ok()?);
    let Known { name, device, sector } = known.get(&id)?;
    let place =
        device.zip(*sector).map(|(device, sector)| (device.number(record) as u32, sector.number(record)));
    Some((thread, Step { time, name: name.clone(), place }))
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

fn drawn(steps: &[Step], completed: &HashMap<(u32, u64), u64>) -> String {
    let Some(first) = steps.first() else { return String::new() };
    let micros = |time: u64| time.saturating_sub(first.time) as f64 / 1e3;
    let last = steps.last().map_or(0, |step| step.time);
    let mut all: Vec<(u64, String, bool)> = Vec::new();
    // The device is apart: its part of the time is the finding.
    for step in steps.iter().filter(|step| step.name == "block_rq_issue") {
        let Some(place) = step.place else { continue };
        if let Some(end) = completed.get(&place).filter(|end| **end >= step.time && **end <= last) {
            let took = (*end - step.time) as f64 / 1e3;
            all.push((*end, format!("<- device {} {took:.1}", disk_name(place.0)), false));
        }
    }
    let mut text = String::new();
    let mut open: Vec<(String, u64)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        for (time, line, shown) in all.iter_mut().filter(|(time, _, shown)| *time <= step.time && !*shown) {
            *shown = true;
            let _ = writeln!(text, "{:>10.1} {}{line}", micros(*time), "  ".repeat(open.len()));
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
                let device = step.place.filter(|_| step.name == "block_rq_issue");
                let device =
                    device.map_or(String::new(), |place| format!(" -> device {}", disk_name(place.0)));
                let _ = writeln!(text, "{:>10.1} {indent}{mark}{name}{device}", micros(step.time));
                if begins {
                    open.push((step.name.clone(), step.time));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_indented_and_the_device_is_apart() {
        let step = |time, name: &str| Step { time, name: name.to_string(), place: None };
        let issue = Step { place: Some((4095 << 20, 8)), ..step(7_000, "block_rq_issue") };
        let steps = [
            step(1_000, "sys_enter_pwrite64"),
            step(2_000, "iomap_dio_rw_begin"),
            step(6_000, "block_io_start"),
            issue,
            step(392_000, "iomap_dio_complete"),
            step(395_000, "sys_exit_pwrite64"),
        ];
        let completed = HashMap::from([((4095 << 20, 8), 391_000)]);
        let expected = "       0.0 -> pwrite64
       1.0   -> iomap_dio_rw_begin
       5.0        block_io_start
       6.0        block_rq_issue -> device 4095:0
     390.0     <- device 4095:0 384.0
     391.0   <- iomap_dio_complete 390.0
     394.0 <- pwrite64 394.0
";
        assert_eq!(drawn(&steps, &completed), expected);
        assert_eq!(beginning("ext4_sync_file_exit").as_deref(), Some("ext4_sync_file_enter"));
        assert_eq!(beginning("ext4_da_write_end").as_deref(), Some("ext4_da_write_begin"));
        assert_eq!(beginning("block_io_start"), None);
    }
}
