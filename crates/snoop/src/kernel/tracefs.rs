//! Instances of tracefs: ring buffers of this process's own, with their own events and filters.
//!
//! ```text
//! instances/plumb-4711-812345-calls/
//!     trace_clock = mono     options/overwrite = 0     options/event-fork = 1
//!     set_event_pid          the threads whose events are kept, with those that they fork
//!     events/SYSTEM/EVENT/{enable,filter,format}
//!     per_cpu/cpuN/{trace_pipe_raw,stats}
//! ```
//!
//! Steps: make the directory, set clock and size, enable events, read pages, remove the directory.
//! `free_buffer` is held open with `disable_on_free`: if this process is killed, the kernel frees
//! the buffers and stops tracing. The next trace removes the directory ([`remove_orphans`]).
//!
//! Why an instance and not perf events: see docs/adr/0025. In short, on kernel 6.18 a perf sample
//! taken in an interrupt of an idle processor is counted and not written, and that is where most
//! requests of a waiting process complete.
//!
//! I1 A full buffer drops new events and counts them; it never overwrites unread ones. So the
//! events kept are whole up to the loss, and `read + dropped` is the number that happened.

use crate::error::SnoopError;
use crate::kernel::format::Format;
use plumb_host::kernel::start_time;
use plumb_host::leftover::{Fate, Leftover, Remains};
use plumb_units::{Bytes, counters};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Times that a busy instance is tried again, and the pause before each.
const TRIES: u32 = 20;
const BUSY_WAIT: Duration = Duration::from_millis(10);

/// Returns the mount point of tracefs.
/// Fails if it is not mounted, or this user may not read it.
pub fn find() -> Result<PathBuf, SnoopError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let root = mount_point(&mounts).ok_or(SnoopError::NotMounted)?;
    let instances = root.join("instances");
    match fs::read_dir(&instances) {
        Ok(_) => Ok(root),
        Err(source) => Err(SnoopError::of_file(instances, "opened", source)),
    }
}

/// Finds tracefs in the text of `/proc/self/mountinfo`, where blanks are written `\040`.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    let tracefs = mounts.lines().filter(|line| line.contains(" - tracefs "));
    let mut points = tracefs.filter_map(|line| line.split(' ').nth(4));
    points.next().map(|point| PathBuf::from(point.replace("\\040", " ")))
}

/// Ring buffers with their own events, removed on drop.
#[derive(Debug)]
pub(crate) struct Instance {
    root: PathBuf,
    path: PathBuf,
    /// Closing it frees the buffers and stops tracing, however this process ends.
    free: Option<File>,
    readers: Vec<Reader>,
}

/// Numbers of events of an instance, from the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Events written and not yet read.
    pub unread: u64,
    pub read: u64,
    /// Events for which there was no room.
    pub lost: u64,
}

impl Instance {
    /// Makes an instance named after this process and a role, with buffers of `bytes` for each CPU.
    /// Fails if this user may not, or the kernel lacks instances.
    pub fn create(root: &Path, role: &str, bytes: u64) -> Result<Instance, SnoopError> {
        let path = root.join("instances").join(format!("{}-{role}", own_prefix()));
        fs::create_dir(&path).map_err(|source| SnoopError::of_file(path.clone(), "made", source))?;
        let mut instance = Instance { root: root.to_path_buf(), path, free: None, readers: Vec::new() };
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        // I1
        instance.set("options/overwrite", "0")?;
        instance.set("options/event-fork", "1")?;
        instance.set("options/disable_on_free", "1")?;
        instance.set("buffer_size_kb", &(bytes / 1024).to_string())?;
        instance.free = File::options().write(true).open(instance.path.join("free_buffer")).ok();
        instance.readers = instance.open_readers()?;
        Ok(instance)
    }

    /// Returns an instance over a directory of the same form, without buffers.
    #[cfg(test)]
    pub fn imitation(directory: &Path) -> Instance {
        let path = directory.to_path_buf();
        Instance { root: path.clone(), path, free: None, readers: Vec::new() }
    }

    fn open_readers(&self) -> Result<Vec<Reader>, SnoopError> {
        let directory = self.path.join("per_cpu");
        let failed = |source| SnoopError::of_file(directory.clone(), "opened", source);
        let entries = fs::read_dir(&directory).map_err(failed)?;
        let mut names: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        names.sort_by_key(|path| (path.as_os_str().len(), path.clone()));
        names.iter().map(|cpu| Reader::open(cpu)).collect()
    }

    fn set(&self, file: &str, text: &str) -> Result<(), SnoopError> {
        write(&self.path.join(file), text)
    }

    /// Enables an event, with a filter unless it is empty; returns its format.
    /// Fails if the kernel lacks the event or refuses the filter.
    pub fn enable(&self, event: &str, filter: &str) -> Result<Format, SnoopError> {
        let directory = self.path.join("events").join(event);
        if !directory.exists() {
            return Err(missing(&self.root, event));
        }
        let path = directory.join("format");
        let text = fs::read_to_string(&path)
            .map_err(|source| SnoopError::of_file(path.clone(), "opened", source))?;
        let format = Format::parse(&text).map_err(|why| SnoopError::Format {
            name: event.to_string(),
            why,
            path: path.clone(),
        })?;
        if !filter.is_empty() {
            write(&directory.join("filter"), filter)?;
        }
        write(&directory.join("enable"), "1")?;
        Ok(format)
    }

    /// Disables the events of a group; a group that the kernel lacks is no error.
    /// Fails if the kernel refuses.
    pub fn disable(&self, system: &str) -> Result<(), SnoopError> {
        let path = self.path.join("events").join(system).join("enable");
        if path.exists() { write(&path, "0") } else { Ok(()) }
    }

    pub fn handle(&self) -> Handle {
        Handle { path: self.path.clone() }
    }

    /// Wakes a poll of [`Instance::files`] at each event instead of at half a buffer.
    /// Fails if the kernel refuses.
    pub fn wake_at_once(&self) -> Result<(), SnoopError> {
        self.set("buffer_percent", "0")
    }

    /// Passes all unread pages to `page`; returns the number of bytes.
    /// Fails if the kernel fails a read.
    pub fn drain(&mut self, page: &mut impl FnMut(&[u8])) -> Result<usize, SnoopError> {
        let mut bytes = 0;
        for reader in &mut self.readers {
            bytes += reader.drain(page)?;
        }
        Ok(bytes)
    }

    /// Returns the kernel's counts of events of all CPUs.
    pub fn counts(&self) -> Counts {
        let texts = self.readers.iter().map(|reader| fs::read_to_string(&reader.stats).unwrap_or_default());
        let mut sum = Counts::default();
        texts.for_each(|text| sum.add(&counts(&text)));
        sum
    }

    /// Returns the files to poll for new events.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.readers.iter().map(|reader| &reader.file)
    }
}

/// The controls of an instance, for other threads than the one that reads it.
#[derive(Debug, Clone)]
pub(crate) struct Handle {
    path: PathBuf,
}

impl Handle {
    /// Returns the directory of the instance.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Keeps only events of these threads and of those that they make, in addition to earlier ones.
    /// Fails if the kernel refuses; a thread that has ended is no error.
    pub fn follow(&self, threads: &[u32]) -> Result<(), SnoopError> {
        let path = self.path.join("set_event_pid");
        for thread in threads {
            let appended = File::options()
                .append(true)
                .open(&path)
                .and_then(|mut file| file.write_all(thread.to_string().as_bytes()));
            appended.map_err(|source| SnoopError::of_file(path.clone(), "written", source))?;
        }
        Ok(())
    }

    /// Starts or goes on recording.
    /// Fails if the kernel refuses.
    pub fn start(&self) -> Result<(), SnoopError> {
        write(&self.path.join("tracing_on"), "1")
    }

    /// Stops recording; unread events stay.
    /// Fails if the kernel refuses.
    pub fn stop(&self) -> Result<(), SnoopError> {
        write(&self.path.join("tracing_on"), "0")
    }
}

counters!(Counts { unread, read, lost });

/// Parses the text of a `stats` file.
fn counts(text: &str) -> Counts {
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let lost = value("overrun:") + value("commit overrun:") + value("dropped events:");
    Counts { unread: value("entries:"), read: value("read events:"), lost }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.readers.clear();
        self.free = None;
        let _ = remove_instance(&self.path);
    }
}

#[derive(Debug)]
struct Reader {
    file: File,
    stats: PathBuf,
    page: Vec<u8>,
}

impl Reader {
    fn open(cpu: &Path) -> Result<Reader, SnoopError> {
        let path = cpu.join("trace_pipe_raw");
        let mut options = File::options();
        options.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let file = options.open(&path).map_err(|source| SnoopError::of_file(path, "opened", source))?;
        Ok(Reader { file, stats: cpu.join("stats"), page: vec![0; rustix::param::page_size()] })
    }

    fn drain(&mut self, page: &mut impl FnMut(&[u8])) -> Result<usize, SnoopError> {
        let mut bytes = 0;
        loop {
            match self.file.read(&mut self.page) {
                Ok(0) => return Ok(bytes),
                Ok(length) => {
                    page(&self.page[..length]);
                    bytes += length;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(bytes),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => {
                    return Err(SnoopError::of_file(
                        self.stats.with_file_name("trace_pipe_raw"),
                        "read",
                        source,
                    ));
                }
            }
        }
    }
}

/// Returns the error for a tracepoint that the kernel lacks.
fn missing(root: &Path, event: &str) -> SnoopError {
    let option = match event.split('/').next() {
        Some("syscalls") => "CONFIG_FTRACE_SYSCALLS",
        Some("block") => "CONFIG_BLOCK",
        _ => "CONFIG_EVENT_TRACING",
    };
    SnoopError::NoTracepoint {
        name: event.to_string(),
        kernel: plumb_host::kernel::Host::this().kernel_release.unwrap_or_default(),
        path: root.join("events").join(event),
        option,
    }
}

fn write(path: &Path, text: &str) -> Result<(), SnoopError> {
    fs::write(path, text).map_err(|source| SnoopError::of_file(path.to_path_buf(), "written", source))
}

/// Returns the beginning of the names of this process's instances: number and start time, because
/// numbers are reused.
fn own_prefix() -> String {
    let own = std::process::id();
    format!("plumb-{own}-{}", start_time(own).unwrap_or(0))
}

/// The kernel's buffers of killed traces.
#[derive(Debug)]
pub struct TraceLeftover;

impl Leftover for TraceLeftover {
    fn elsewhere(&self) -> Vec<Remains> {
        let found = find().map(|root| orphans_in(&root)).unwrap_or_default();
        let remains = found.into_iter().map(|instance| {
            let name = instance.display().to_string();
            let fate = Fate::Ends("the kernel's buffers of a killed trace");
            Remains::new(name.clone(), Bytes(0), fate, move || {
                remove_instance(&instance)
                    .map_err(|error| format!("cannot remove {name}: {error}; end the program that reads it"))
            })
        });
        remains.collect()
    }
}

fn orphans_in(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root.join("instances")).into_iter().flatten().flatten();
    let is_of_dead = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(is_orphan);
    entries.map(|entry| entry.path()).filter(is_of_dead).collect()
}

/// Removes instances whose process has ended. One that stays in use is left for the next start.
pub(crate) fn remove_orphans(root: &Path) {
    for orphan in orphans_in(root) {
        let _ = remove_instance(&orphan);
    }
}

fn is_orphan(name: &str) -> bool {
    let mut parts = name.split('-');
    let (Some("plumb"), Some(pid), Some(start)) = (parts.next(), parts.next(), parts.next()) else {
        return false;
    };
    let (Ok(pid), Ok(start)) = (pid.parse::<u32>(), start.parse::<u64>()) else { return false };
    start_time(pid) != Some(start)
}

/// Removes an instance with its buffers. Fails if the kernel refuses, or another program keeps a
/// file of the instance open.
fn remove_instance(instance: &Path) -> std::io::Result<()> {
    // An instance in use cannot be removed, and without these the kernel would go on.
    for file in ["tracing_on", "events/enable"] {
        let opened = File::options().write(true).open(instance.join(file));
        let _ = opened.and_then(|mut file| file.write_all(b"0"));
    }
    let mut tries = TRIES;
    loop {
        match fs::remove_dir(instance) {
            // A killed process still closes its files for a while.
            Err(error) if error.kind() == ErrorKind::ResourceBusy && tries > 0 => {
                tries -= 1;
                std::thread::sleep(BUSY_WAIT);
            }
            removed => return removed,
        }
    }
}

/// True if an error means that another may have the rights.
pub fn is_refusal(error: &SnoopError) -> bool {
    matches!(error, SnoopError::NoRights { .. } | SnoopError::NotMounted)
        || matches!(error, SnoopError::File { source, .. } if source.kind() == ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_point_is_found_with_its_blanks() {
        let mounts = "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw\n\
                      90 23 0:13 / /sys/kernel/my\\040tracing rw,nosuid shared:1 - tracefs tracefs rw\n";
        assert_eq!(mount_point(mounts), Some(PathBuf::from("/sys/kernel/my tracing")));
        assert_eq!(mount_point("25 24 0:23 / /tracefs rw - tmpfs tracefs rw\n"), None);
    }

    #[test]
    fn counts_add_all_ways_to_lose_an_event() {
        let text = "entries: 12\noverrun: 3\ncommit overrun: 2\nbytes: 5212\n\
                    oldest event ts: 2.1\nnow ts: 5.2\ndropped events: 40\nread events: 99\n";
        assert_eq!(counts(text), Counts { unread: 12, read: 99, lost: 45 });
        let mut sum = counts(text);
        sum.add(&counts(""));
        assert_eq!(sum, counts(text));
    }

    #[test]
    fn the_instances_of_a_killed_process_go_before_its_parent_waits_for_it() {
        let _turn = crate::turn();
        let root = tempfile::tempdir().expect("a directory");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        let start = start_time(child.id()).expect("it runs");
        let name = format!("plumb-{}-{start}-calls", child.id());
        let instances = root.path().join("instances");
        fs::create_dir_all(instances.join(&name)).expect("a directory");
        fs::create_dir(instances.join("mine")).expect("a directory");
        remove_orphans(root.path());
        let was_kept = instances.join(&name).exists();
        child.kill().expect("it runs");
        let is_zombie = || {
            (0..1000).any(|_| {
                std::thread::sleep(BUSY_WAIT);
                start_time(child.id()).is_none()
            })
        };
        let is_zombie = is_zombie();
        remove_orphans(root.path());
        let stays = instances.join(&name).exists();
        let _ = child.wait();
        assert!(was_kept && is_zombie && !stays, "{was_kept} {is_zombie} {stays}");
        assert!(instances.join("mine").exists());
    }

    #[test]
    fn an_instance_is_an_orphan_when_its_process_has_ended_or_its_number_was_given_again() {
        let own = std::process::id();
        assert!(!is_orphan(&format!("{}-calls", own_prefix())));
        assert!(is_orphan(&format!("plumb-{own}-1-calls")), "another start: the number was reused");
        assert!(is_orphan("plumb-4194304-77-calls"), "no process has this number");
        assert!(!is_orphan("mine") && !is_orphan("plumb-x-y-calls"), "instances of others stay");
    }
}
