//! Description of the device under a path, for reports.

use crate::{Device, DirectIoAnswer, IoUringAnswer, QueueLimits};
use plumb_host::device::{
    self, BlockDevice, DeviceDescription, DirectIoSupport, IoUringSupport, RingPart, RingSetup,
};
use plumb_units::{Bytes, path_text};

impl Device {
    /// Describes the device under a path, with the I/O method in use and the reason for it.
    pub fn of(description: &DeviceDescription, method: &str, method_reason: &str) -> Device {
        let block = description.block.as_ref();
        let queue = block.map(|block| block.upper_queue.as_ref().unwrap_or(&block.queue));
        Device {
            path: path_text(&description.path),
            filesystem: description.mount.file_system.clone(),
            mount_options: description.mount.options.join(","),
            device: block.map_or_else(|| description.mount.source.clone(), name),
            model: block.and_then(model),
            virtual_reason: description
                .virtualization
                .disk
                .then(|| description.virtualization.evidence.join("; ")),
            write_cache: queue.and_then(|queue| queue.write_cache).map(|cache| cache.to_string()),
            fua: queue.and_then(|queue| queue.fua),
            rotational: block.and_then(|block| block.queue.rotational),
            logical_block_bytes: queue.and_then(|queue| queue.logical_block_size).map(|size| size.0),
            physical_block_bytes: queue.and_then(|queue| queue.physical_block_size).map(|size| size.0),
            queue: block.map(limits).unwrap_or_default(),
            direct_io: direct_io(&description.direct_io),
            io_uring: io_uring(&description.io_uring),
            used_direct_io: None,
            caches: block.map(|block| block.caches.clone()).unwrap_or_default(),
            io_method: method.to_string(),
            io_method_reason: method_reason.to_string(),
            notes: device::notes(description),
        }
    }
}

fn name(block: &BlockDevice) -> String {
    if block.name == block.disk {
        block.name.clone()
    } else {
        format!("{} on {}", block.name, block.disks.join(", "))
    }
}

fn model(block: &BlockDevice) -> Option<String> {
    let words = [&block.vendor, &block.model, &block.driver].map(|word| word.as_deref().unwrap_or(""));
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Scheduler and hardware queues are those of the disk, limits those of the
/// device under the file system.
fn limits(block: &BlockDevice) -> QueueLimits {
    let seen = block.upper_queue.as_ref().unwrap_or(&block.queue);
    QueueLimits {
        scheduler: block.queue.scheduler.clone(),
        nr_requests: seen.nr_requests,
        max_sectors_kb: seen.request_size_max.map(|size| size.0 / Bytes::K),
        max_segments: seen.max_segments,
        hardware_queues: block.queue.hardware_queues.map(|queues| queues as u64),
        io_poll: block.queue.io_poll,
    }
}

fn direct_io(support: &DirectIoSupport) -> DirectIoAnswer {
    match support {
        DirectIoSupport::Yes { memory_align, offset_align, .. } => DirectIoAnswer::Available {
            memory_alignment_bytes: memory_align.0,
            offset_alignment_bytes: offset_align.0,
        },
        DirectIoSupport::No { why } => DirectIoAnswer::Unavailable { reason: why.clone() },
    }
}

fn io_uring(support: &IoUringSupport) -> IoUringAnswer {
    match support {
        IoUringSupport::Yes { file_read, .. } => {
            let works = |part| support.refusal(part).is_none();
            let deferred = works(RingPart::Setup(RingSetup::Deferred));
            let registered = works(RingPart::RegisteredBuffers);
            let parts = [
                (*file_read, "a file was read through a ring", "no file could be read through a ring"),
                (registered, "buffers can be registered", "buffers cannot be registered"),
                (deferred, "deferred task work", "no deferred task work"),
            ];
            let detail = parts.map(|(works, yes, no)| if works { yes } else { no }).join(", ");
            IoUringAnswer::Available { detail }
        }
        IoUringSupport::No { why, cure } => IoUringAnswer::Unavailable { reason: format!("{why}; {cure}") },
    }
}
