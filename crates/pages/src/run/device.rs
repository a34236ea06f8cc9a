//! Devices under each path, and their limits.

use plumb_record::{
    Device, DeviceLimits, DirectIoAnswer, IoUringAnswer, LimitShare, MeasuredLimits, MixLimit, Record,
    StoredCalibration,
};
use plumb_report::format::{Count, Decimal, Duration, Figure, Megabytes, Percent, Size, Total};
use plumb_report::table::{Cell, Facts, Table, Tone};
use plumb_report::{Section, cells, table};

/// Shows the devices under the paths that the work used.
pub(super) fn devices(devices: &[Device]) -> Section {
    let section = Section::front("device", "What Lies Under the Path");
    devices.iter().fold(section, |section, device| section.facts(facts(device)))
}

/// Lists the facts of a device.
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

fn direct_io(direct_io: &DirectIoAnswer) -> Cell {
    match direct_io {
        DirectIoAnswer::Available { memory_alignment_bytes, offset_alignment_bytes } => Cell::from(format!(
            "available, aligned to {memory_alignment_bytes} B in memory and {offset_alignment_bytes} B in the file"
        )),
        DirectIoAnswer::Unavailable { reason } => {
            Cell::from(format!("not available: {reason}")).with_tone(Tone::Bad)
        }
    }
}

fn io_uring(io_uring: &IoUringAnswer) -> Cell {
    match io_uring {
        IoUringAnswer::Available { detail } if detail.is_empty() => Cell::from("available"),
        IoUringAnswer::Available { detail } => Cell::from(format!("available, {detail}")),
        IoUringAnswer::Unavailable { reason } => {
            Cell::from(format!("not available: {reason}")).with_tone(Tone::Bad)
        }
    }
}

/// Shows the device's limits and the share of them that the run reached.
pub(super) fn calibration(record: &Record) -> Option<Section> {
    let mut section = Section::front("calibration", "I/O Calibration");
    let measured = record.calibration.as_ref();
    if measured.is_none() && record.limits.is_none() && record.mix.is_none() {
        return None;
    }
    if let Some(limits) = &record.limits {
        section = section.note(limits_in_one_line(limits));
    }
    let probed = measured.filter(|measured| measured.sequential_read_bytes_per_s.is_some());
    if let Some(measured) = probed {
        section =
            section.note("measured in this run: on its path, with reads of its own files; MB is 2^20 bytes");
        let facts = measured_limits(measured, record.calibrated());
        section = section.facts(facts);
    }
    if let Some(stored) = record.calibrated() {
        section = section.table(figures(stored));
    }
    if let Some(mix) = &record.mix {
        section = section.table(self::mix(mix));
    }
    let shares = measured.map(|measured| measured.shares.as_slice()).unwrap_or_default();
    Some(if shares.is_empty() { section } else { section.table(self::shares(shares)) })
}

/// Compares the work with the device's own rate for the workload's mix.
fn mix(mix: &MixLimit) -> Table {
    let caption = format!(
        "Random reads and writes of {} at once to one file, {} outstanding: the device alone, and the work, whose \
         database writers come on top of its sessions{}",
        Size(mix.block_bytes).figure(),
        mix.outstanding,
        if mix.refused.is_empty() { String::new() } else { format!(" ({})", mix.refused) }
    );
    let mut table = Table::default()
        .text(["Mix"])
        .numbers(["% writes", "Requests/s", "Lowest", "Highest", "% of the\ndevice's"])
        .with_caption(caption);
    for (name, (percent, rate)) in ["device, before", "device, after"].into_iter().zip(mix.points()) {
        if let Some(rate) = rate {
            let cells = [rate.median, rate.least, rate.most].map(|rate| Count(rate.round() as u64));
            let [median, least, most] = cells;
            table.row(cells![name, percent.to_string(), median, least, most, ""]);
        }
    }
    let part = mix.share().map(|[of_mean, ..]| of_mean);
    let share = part.map(|part| Percent { part, whole: 1.0 });
    table.row(cells![
        "the work",
        Decimal(mix.reached_write_percent),
        Count(mix.reached_per_s.round() as u64),
        "",
        "",
        Cell::of(share).with_share(part)
    ]);
    table
}

/// Shows the devices of many runs, and their limits.
pub(crate) fn devices_of(found: &[Device], calibration: Option<&MeasuredLimits>) -> Vec<Section> {
    let limits = calibration.map(|calibration| {
        let section =
            Section::front("calibration", "I/O Calibration").note("of the path below; MB is 2^20 bytes");
        let section = section.facts(measured_limits(calibration, None));
        if calibration.shares.is_empty() { section } else { section.table(shares(&calibration.shares)) }
    });
    std::iter::once(devices(found)).chain(limits).collect()
}

/// Describes the calibration behind the limits, or says how to make one.
pub(crate) fn limits_in_one_line(limits: &DeviceLimits) -> String {
    match limits {
        DeviceLimits::Calibrated(stored) => {
            let age = stored.age_s.map(|seconds| format!(", {} before this run", age(seconds)));
            let (date, mode) = (&stored.date, &stored.mode);
            // A doubt may name a dozen figures, so the line has the first; the calibration's report
            // has all.
            let doubts: Vec<&str> = stored.doubts.iter().flat_map(|doubt| doubt.split("; ")).collect();
            let doubt = match &doubts[..] {
                [] => String::new(),
                [doubt] => format!(", IN DOUBT: {doubt}"),
                [doubt, more @ ..] => format!(", IN DOUBT: {doubt}, and {} more", more.len()),
            };
            format!("calibrated {date} ({mode}{}){doubt}: {}", age.unwrap_or_default(), stored.source)
        }
        DeviceLimits::NotCalibrated { reason, cure } => format!("not calibrated: {reason}; {cure}"),
    }
}

/// Prints a time in the largest unit of which it has at least two.
fn age(seconds: u64) -> String {
    match seconds {
        seconds if seconds >= 2 * 86_400 => format!("{} days", seconds / 86_400),
        seconds if seconds >= 2 * 3_600 => format!("{} hours", seconds / 3_600),
        seconds if seconds >= 2 * 60 => format!("{} minutes", seconds / 60),
        seconds => format!("{seconds} s"),
    }
}

fn measured_limits(calibration: &MeasuredLimits, stored: Option<&StoredCalibration>) -> Facts {
    let mut facts = Facts::default();
    // The share of the calibrated rate shows if the device has changed.
    let throughput = |bytes_per_s: Option<f64>, calibrated: Option<f64>| {
        let share = |rate| calibrated.map(|whole| Percent { part: rate, whole }.figure());
        let share =
            |rate| share(rate).map(|share| format!(", {share}% of the calibrated")).unwrap_or_default();
        let figure = |rate| Megabytes(rate).figure();
        let ends =
            calibration.sequential_read_low_bytes_per_s.zip(calibration.sequential_read_high_bytes_per_s);
        let ends = ends.map_or(String::new(), |(low, high)| format!(" [{}, {}]", figure(low), figure(high)));
        let unsettled = calibration.sequential_read_unsettled.as_ref();
        let unsettled = unsettled.map_or(String::new(), |why| format!("; no share is stated: {why}"));
        bytes_per_s
            .map(|rate| format!("{} MB/s{ends}{}{unsettled}", figure(rate), share(rate)))
            .unwrap_or_default()
    };
    let read = stored.and_then(|stored| stored.sequential_read_bytes_per_s);
    facts.add("Path", &calibration.path);
    facts.add("Sequential Read", throughput(calibration.sequential_read_bytes_per_s, read));
    let latency = calibration.random_read_8k_ns.map(Duration);
    facts.add("Random 8K Read", Cell::of(latency));
    facts
}

fn figures(stored: &StoredCalibration) -> Table {
    table!(figure in &stored.figures; {
        let tone = if figure.settled { Tone::Plain } else { Tone::Open };
    } [
        text "Calibrated figure" => figure.name.replace('_', " "),
        numbers "Median" => Total(figure.value),
        text "Unit" => &figure.unit,
        numbers "Low" => Total(figure.low),
        numbers "High" => Total(figure.high),
        text "Settled" => Cell::from(figure.settled.figure()).with_tone(tone),
        wrapped(44) "Found at" => &figure.at,
    ])
    .with_caption("The device's limits as calibrated")
}

fn shares(shares: &[LimitShare]) -> Table {
    table!(share in shares; {
        let part = Percent { part: share.reached_bytes_per_s, whole: share.limit_bytes_per_s };
        let beyond = part.share().is_some_and(|share| share > 1.0);
    } [
        wrapped(44) "Reached by the run" => &share.what,
        numbers "MB/s" => Megabytes(share.reached_bytes_per_s),
        wrapped(32) "Limit" => &share.limit,
        numbers "MB/s" => Megabytes(share.limit_bytes_per_s),
        numbers "% of\nlimit" => Cell::of(part).with_share(part.share()).with_tone(if beyond { Tone::Bad } else { Tone::Plain }),
    ])
}

/// Describes a device in a line for a terminal.
pub(crate) fn in_one_line(device: &Device) -> String {
    let nature = device.virtual_reason.as_ref().map(|_| "virtual".to_string());
    // The access used if there was a run, otherwise the access possible.
    let direct = match (device.used_direct_io, &device.direct_io) {
        (Some(true), _) => "direct I/O",
        (Some(false), _) => "page cache",
        (None, DirectIoAnswer::Available { .. }) => "direct I/O available",
        (None, DirectIoAnswer::Unavailable { .. }) => "no direct I/O",
    };
    let cache = device.write_cache.as_ref().map(|cache| format!("{cache} cache"));
    let what = joined(&[
        format!("{} on {}", device.filesystem, device.device),
        nature.unwrap_or_default(),
        cache.unwrap_or_default(),
        direct.to_string(),
        device.caches.join(", "),
        format!("method {}", device.io_method),
    ]);
    format!("{}: {what}", device.path)
}
