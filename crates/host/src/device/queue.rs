//! The request queue of a disk, from its directory in sysfs.

use super::{Queue, WriteCache};
use crate::roots::{bracketed, names, number, text};
use plumb_units::Bytes;
use std::path::Path;

/// Reads the queue of the disk with this sysfs directory.
pub(super) fn read(disk: &Path) -> Queue {
    let queue = disk.join("queue");
    let value = |name: &str| number(&queue.join(name));
    let bytes = |name: &str| value(name).map(Bytes);
    let flag = |name: &str| value(name).map(|value| value != 0);
    let kib = |name: &str| value(name).map(|kib| Bytes(kib.saturating_mul(Bytes::K)));
    let schedulers = text(&queue.join("scheduler")).unwrap_or_default();
    Queue {
        write_cache: text(&queue.join("write_cache")).as_deref().and_then(parse_write_cache),
        fua: flag("fua"),
        scheduler: bracketed(&schedulers).map(str::to_owned),
        schedulers: schedulers
            .split_whitespace()
            .map(|name| name.trim_matches(['[', ']']).to_owned())
            .collect(),
        nr_requests: value("nr_requests"),
        request_size_max: kib("max_sectors_kb"),
        max_segments: value("max_segments"),
        hardware_queues: hardware_queues(&disk.join("mq")),
        io_poll: flag("io_poll"),
        rotational: flag("rotational"),
        logical_block_size: bytes("logical_block_size"),
        physical_block_size: bytes("physical_block_size"),
        discard_max: bytes("discard_max_bytes"),
        atomic_write_unit_max: bytes("atomic_write_unit_max_bytes"),
        read_ahead: kib("read_ahead_kb"),
    }
}

fn parse_write_cache(text: &str) -> Option<WriteCache> {
    match text {
        "write back" => Some(WriteCache::WriteBack),
        "write through" => Some(WriteCache::WriteThrough),
        _ => None,
    }
}

/// Counts the directories 0, 1, 2...; a device without a queue of its own (dm, md) has none.
fn hardware_queues(mq: &Path) -> Option<usize> {
    let count = names(mq).iter().filter(|name| name.parse::<u32>().is_ok()).count();
    (count > 0).then_some(count)
}
