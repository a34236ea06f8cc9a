//! What lies under each path, and what it can do.

use super::Section;
use crate::ReportContext;
use crate::context::{Calibration, Device, DirectIo, IoUring, LimitShare};
use crate::format::{Duration, Figure, Megabytes, Percent};
use crate::table::{Cell, Column, Facts, Table, Tone};

/// The devices under the paths that the work used.
pub(super) fn devices(devices: &[Device]) -> Section {
    let section = Section::front("device", "What Lies Under the Path");
    devices.iter().fold(section, |section, device| section.facts(facts(device)))
}

/// A device, fact by fact.
pub(crate) fn facts(device: &Device) -> Facts {
    let mut facts = Facts { caption: Some(device.path.clone()), ..Facts::default() };
    facts.add("File System", joined(&[device.filesystem.clone(), device.mount_options.clone()]));
    facts.add("Device", joined(&[device.device.clone(), device.model.clone().unwrap_or_default()]));
    let nature = device.virtual_reason.as_ref().map(|reason| format!("yes: {reason}"));
    facts.add("Virtual", nature.unwrap_or_else(|| "no sign of it".to_string()));
    facts.add("Write Cache", write_cache(device));
    facts.add("Blocks", blocks(device));
    facts.add("Queue", queue(device));
    facts.add("Direct I/O", direct_io(&device.direct_io));
    facts.add("io_uring", io_uring(&device.io_uring));
    facts.add("I/O Method", format!("{}: {}", device.io_method, device.io_method_reason));
    for note in &device.notes {
        facts.add("Note", note);
    }
    facts
}

fn joined(parts: &[String]) -> String {
    let parts = parts.iter().filter(|part| !part.is_empty()).cloned();
    parts.collect::<Vec<_>>().join(", ")
}

fn write_cache(device: &Device) -> String {
    let fua = device.fua.map(|fua| format!("FUA {}", fua.figure()));
    joined(&[device.write_cache.clone().unwrap_or_default(), fua.unwrap_or_default()])
}

fn blocks(device: &Device) -> String {
    let size =
        |name: &str, bytes: Option<u64>| bytes.map(|bytes| format!("{name} {bytes} B")).unwrap_or_default();
    let nature = device.rotational.map(|rotates| if rotates { "rotational" } else { "solid state" });
    joined(&[
        size("logical", device.logical_block_bytes),
        size("physical", device.physical_block_bytes),
        nature.unwrap_or_default().to_string(),
    ])
}

fn queue(device: &Device) -> String {
    let queue = &device.queue;
    let limit =
        |name: &str, value: Option<u64>| value.map(|value| format!("{name} {value}")).unwrap_or_default();
    let poll = queue.io_poll.map(|poll| format!("io_poll {}", poll.figure()));
    joined(&[
        queue.scheduler.as_ref().map(|name| format!("scheduler {name}")).unwrap_or_default(),
        limit("nr_requests", queue.nr_requests),
        limit("max_sectors_kb", queue.max_sectors_kb),
        limit("max_segments", queue.max_segments),
        limit("hardware queues", queue.hardware_queues),
        poll.unwrap_or_default(),
    ])
}

fn direct_io(direct_io: &DirectIo) -> Cell {
    match direct_io {
        DirectIo::Available { memory_alignment_bytes, offset_alignment_bytes } => Cell::from(format!(
            "available, aligned to {memory_alignment_bytes} B in memory and {offset_alignment_bytes} B in the file"
        )),
        DirectIo::Unavailable { reason } => {
            Cell::from(format!("not available: {reason}")).with_tone(Tone::Bad)
        }
    }
}

fn io_uring(io_uring: &IoUring) -> Cell {
    match io_uring {
        IoUring::Available { detail } if detail.is_empty() => Cell::from("available"),
        IoUring::Available { detail } => Cell::from(format!("available, {detail}")),
        IoUring::Unavailable { reason } => {
            Cell::from(format!("not available: {reason}")).with_tone(Tone::Bad)
        }
    }
}

/// The device's limits and what the run reached of them.
pub(super) fn calibration(context: &ReportContext) -> Option<Section> {
    let note = "measured in this run, on the path below; MB is 2^20 bytes";
    context.calibration.as_ref().map(|calibration| calibration_noted(calibration, note))
}

fn calibration_noted(calibration: &Calibration, note: &str) -> Section {
    let section = Section::front("calibration", "I/O Calibration").note(note).facts(limits(calibration));
    if calibration.shares.is_empty() { section } else { section.table(shares(&calibration.shares)) }
}

/// What lies under the paths of many runs, and its limits.
pub(crate) fn devices_of(found: &[Device], calibration: Option<&Calibration>) -> Vec<Section> {
    let note = "of the path below; MB is 2^20 bytes";
    let calibration = calibration.map(|calibration| calibration_noted(calibration, note));
    std::iter::once(devices(found)).chain(calibration).collect()
}

fn limits(calibration: &Calibration) -> Facts {
    let mut facts = Facts::default();
    let throughput = |bytes_per_s: Option<f64>| {
        bytes_per_s.map(|rate| format!("{} MB/s", Megabytes(rate).figure())).unwrap_or_default()
    };
    facts.add("Path", &calibration.path);
    facts.add("Sequential Read", throughput(calibration.sequential_read_bytes_per_s));
    facts.add("Sequential Write", throughput(calibration.sequential_write_bytes_per_s));
    let latency = calibration.random_read_8k_ns.map(Duration);
    facts.add("Random 8K Read", Cell::of(latency));
    facts
}

fn shares(shares: &[LimitShare]) -> Table {
    let mut table = Table::new(vec![
        Column::wrapped("Reached by the run", 44),
        Column::number("MB/s"),
        Column::wrapped("Limit", 32),
        Column::number("MB/s"),
        Column::number("% of\nlimit"),
    ]);
    for share in shares {
        let part = Percent { part: share.reached_bytes_per_s, whole: share.limit_bytes_per_s };
        let beyond = part.share().is_some_and(|share| share > 1.0);
        table.row(vec![
            Cell::from(&share.what),
            Cell::of(Megabytes(share.reached_bytes_per_s)),
            Cell::from(&share.limit),
            Cell::of(Megabytes(share.limit_bytes_per_s)),
            Cell::of(part).with_share(part.share()).with_tone(if beyond { Tone::Bad } else { Tone::Plain }),
        ]);
    }
    table
}

/// One line for a terminal.
pub(crate) fn in_one_line(device: &Device) -> String {
    let nature = device.virtual_reason.as_ref().map(|_| "virtual".to_string());
    let direct = match device.direct_io {
        DirectIo::Available { .. } => "direct I/O",
        DirectIo::Unavailable { .. } => "no direct I/O",
    };
    let cache = device.write_cache.as_ref().map(|cache| format!("{cache} cache"));
    let what = joined(&[
        format!("{} on {}", device.filesystem, device.device),
        nature.unwrap_or_default(),
        cache.unwrap_or_default(),
        direct.to_string(),
        format!("method {}", device.io_method),
    ]);
    format!("{}: {what}", device.path)
}
