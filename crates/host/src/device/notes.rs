//! Facts about a device that change how a report is read, one line each.
//!
//! A note states a fact and its consequence for a measurement. It gives no advice about settings,
//! because only a study can prove that.

use super::{BlockDevice, DeviceDescription, DirectIoSupport, IoUringSupport, Queue, RingPart, WriteCache};
use plumb_units::Bytes;

/// File systems whose files are on another machine.
const REMOTE_FILE_SYSTEMS: [&str; 9] =
    ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "ceph", "fuse", "glusterfs"];
/// Mount options under which a sync does not reach the disk.
const UNSAFE_OPTIONS: [&str; 4] = ["nobarrier", "barrier=0", "volatile", "fsync=volatile"];
/// Limit on locked memory below which an arena cannot be registered whole.
const MEMLOCK_SMALL: Bytes = Bytes(64 * Bytes::M);

/// Returns the facts that a reader of measurements made here needs, most important first.
pub fn notes(description: &DeviceDescription) -> Vec<String> {
    let mut notes = file_system_notes(description);
    if let Some(block) = &description.block {
        notes.extend(cache_notes(block, description.virtualization.disk));
        notes.extend(queue_notes(block, description));
        notes.extend(layer_notes(block));
    }
    notes.extend(method_notes(description));
    notes
}

fn file_system_notes(description: &DeviceDescription) -> Vec<String> {
    let mount = &description.mount;
    let file_system = &mount.file_system;
    let mut notes = Vec::new();
    if super::direct::is_memory_file_system(file_system) {
        notes.push(format!("{file_system} has no device: times here are those of memory"));
    } else if REMOTE_FILE_SYSTEMS.iter().any(|name| is_or_extends(file_system, name)) {
        notes.push(format!(
            "{file_system} is served from elsewhere ({}): network and server are part of every time",
            mount.source
        ));
    } else if description.block.is_none() {
        notes.push(format!(
            "no block device is visible under {file_system} ({}): write cache, scheduler and queue are unknown",
            mount.source
        ));
    }
    if description.space.read_only {
        notes.push(format!("{} is mounted read-only", mount.mount_point.display()));
    }
    for option in mount.options.iter().filter(|option| UNSAFE_OPTIONS.contains(&option.as_str())) {
        notes.push(format!(
            "mounted with {option}: a sync returns before the disk has flushed, commit times are not those of durable commits"
        ));
    }
    if file_system == "ext4" && mount.options.iter().any(|option| option == "data=journal") {
        notes.push("ext4 with data=journal writes data twice and has no direct I/O".to_owned());
    }
    if mount.options.iter().any(|option| option == "discard" || option.starts_with("discard=")) {
        notes.push(
            "mounted with discard: removing files sends discards that compete with measured I/O".to_owned(),
        );
    }
    notes
}

/// True for the name and its subtypes: `fuse` covers `fuse.sshfs`.
fn is_or_extends(file_system: &str, name: &str) -> bool {
    file_system.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Notes about syncs, from the device that the file system sees: its promise is all that holds.
fn cache_notes(block: &BlockDevice, virtual_disk: bool) -> Vec<String> {
    let (name, queue) = seen_by_file_system(block);
    let mut notes = Vec::new();
    match (queue.write_cache, queue.fua) {
        (Some(WriteCache::WriteBack), Some(false)) => notes.push(format!(
            "{name} has a write-back cache and no FUA: an O_DSYNC write is a write and a flush, so O_DSYNC against fdatasync is a matter of system calls, not of the device"
        )),
        (Some(WriteCache::WriteBack), Some(true)) => notes.push(format!(
            "{name} has a write-back cache and FUA: an O_DSYNC direct write to allocated blocks may be one FUA write, while fdatasync flushes the whole cache"
        )),
        (Some(WriteCache::WriteThrough), _) => notes.push(format!(
            "{name} has no volatile write cache: a sync sends no flush, and the device's word is all there is for durability"
        )),
        _ => {}
    }
    if virtual_disk {
        notes.push(format!(
            "{} is virtual: the layer beneath may cache reads, absorb writes and answer flushes early, none of which is visible from here",
            block.disk
        ));
    }
    notes
}

fn seen_by_file_system(block: &BlockDevice) -> (&str, &Queue) {
    match &block.upper_queue {
        Some(upper) => (&block.name, upper),
        None => (&block.disk, &block.queue),
    }
}

fn queue_notes(block: &BlockDevice, description: &DeviceDescription) -> Vec<String> {
    let (disk, queue) = (&block.disk, &block.queue);
    let mut notes = Vec::new();
    if queue.rotational == Some(true) && description.virtualization.disk {
        notes.push(format!(
            "{disk} says it rotates, which is likely misreported on a virtual disk; the kernel chooses scheduler and read-ahead by it"
        ));
    }
    notes.extend(split_note(block, description.host.page_size));
    if let (Some(1), Some(scheduler)) = (queue.hardware_queues, queue.scheduler.as_deref())
        && scheduler != "none"
    {
        notes.push(format!(
            "{disk} has one hardware queue under {scheduler}: requests of all processors pass one lock and may be merged and reordered"
        ));
    }
    match queue.io_poll {
        Some(true) => {}
        _ => notes.push(format!("{disk} has no polled queues: an IOPOLL ring cannot be used")),
    }
    if queue.atomic_write_unit_max.is_none_or(|largest| largest.0 == 0) {
        notes.push(format!(
            "{disk} has no atomic writes: a block larger than {} may be torn by a power cut",
            queue.logical_block_size.map_or("a sector".to_owned(), |size| size.to_string())
        ));
    }
    notes
}

/// Notes the split of large requests: each page that does not adjoin the
/// one before takes a segment.
fn split_note(block: &BlockDevice, page_size: Bytes) -> Option<String> {
    let (name, queue) = seen_by_file_system(block);
    let segments = queue.max_segments?;
    let request_size_max = queue.request_size_max?;
    let scattered_max = Bytes(segments.saturating_mul(page_size.0));
    (scattered_max < request_size_max).then(|| {
        format!(
            "{name} takes {segments} segments: a request above {} ({segments} pages of {}) is split unless its memory is in huge pages; above {} always",
            scattered_max.as_setting(),
            page_size.as_setting(),
            request_size_max.as_setting()
        )
    })
}

fn layer_notes(block: &BlockDevice) -> Vec<String> {
    let mut notes = Vec::new();
    if block.name.starts_with("loop") {
        let way = match block.loop_direct_io {
            Some(true) => {
                ", which it reaches by direct I/O (loop/dio is 1): a layer more, and no second cache"
            }
            Some(false) => {
                ", which it reaches through the page cache (loop/dio is 0): every block may be cached twice"
            }
            None => ": every block may be cached twice",
        };
        notes.push(format!("{} is a file on another file system{way}", block.name));
    }
    if block.disks.len() > 1 {
        notes.push(format!(
            "{} lies on {} disks ({}): the queue described is that of {}",
            block.name,
            block.disks.len(),
            block.disks.join(", "),
            block.disk
        ));
    }
    notes
}

fn method_notes(description: &DeviceDescription) -> Vec<String> {
    let mut notes = Vec::new();
    if let DirectIoSupport::No { why } = &description.direct_io {
        notes.push(format!("no direct I/O: {why}"));
    }
    match &description.io_uring {
        IoUringSupport::No { why, cure } => notes.push(format!("no io_uring: {why}; {cure}")),
        support @ IoUringSupport::Yes { .. } => {
            let refused = support.refusal(RingPart::RegisteredBuffers);
            notes.extend(
                refused.map(|(why, cure)| format!("io_uring without registered buffers: {why}; {cure}")),
            );
        }
    }
    let host = &description.host;
    if let Some(limit) = host.memlock_soft.filter(|limit| *limit < MEMLOCK_SMALL)
        && !host.memlock_exempt
    {
        notes.push(format!(
            "locked memory is limited to {}: a larger buffer arena cannot be registered (ulimit -l)",
            limit.as_setting()
        ));
    }
    if host.transparent_huge_pages.as_deref() == Some("never") {
        notes.push("transparent huge pages are off: large requests are made of single pages".to_owned());
    }
    notes
}
