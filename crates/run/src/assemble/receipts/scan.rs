//! Parameters of full scans that a study may vary, compared with what the scans read and found.

use super::super::Evidence;
use super::{Ruling, counted};
use crate::evidence::ScanDone;
use plumb_engine::view::copy::LoadDegree;
use plumb_engine::view::totals::Checksum;
use plumb_events::Role;
use plumb_io::DirectIo;
use plumb_record::Receipt;
use plumb_units::{Bytes, Nanos, RowCount};

/// Bytes from which the kernel's count is compared, and the share that a device must have given.
const BYTES_TO_JUDGE: u64 = 16 * Bytes::M;
const SHARE_MIN: f64 = 0.95;

pub(super) fn parameters(seen: &Evidence) -> Vec<Receipt> {
    let Some(done) = &seen.measured.outcome.scan else { return Vec::new() };
    let count = |things: usize| things.to_string();
    let mut receipts = vec![streams(seen, done).inside("streams", count(done.streams.len()))];
    if !done.instances.is_empty() {
        let asked = count(done.instances.len());
        receipts.push(instances(seen, done).receipt("instances", asked));
    }
    if !done.columns.is_empty() {
        receipts.push(columns(done).inside("columns", done.columns.join(",").to_lowercase()));
    }
    if let Some(predicate) = &done.predicate {
        receipts.push(predicate_of(done).inside("where", predicate));
    }
    if done.checksum == Checksum::Taken {
        receipts.push(checksum(done).inside("checksum", "true"));
    }
    receipts
}

/// Servers that read the table and loaded its copy; a serial load runs in the coordinator.
/// Instances are processes with servers of their own, which this one does not see.
pub(super) fn degree(seen: &Evidence) -> Option<Ruling> {
    let sessions = &seen.measured.period.sessions;
    let worked =
        |role| sessions.iter().filter(|session| session.role == role && session.elapsed > Nanos(0)).count();
    let (scan, load) = (worked(Role::ScanServer), worked(Role::LoadServer));
    let (outcome, degree) = (&seen.measured.outcome, seen.inside.degree);
    let agrees = match (&outcome.copy, &outcome.scan) {
        (Some(_), _) if degree == 1 => (scan, load) == (0, 0),
        (Some(copy), _) if copy.load == LoadDegree::Serial => (scan, load) == (degree, 0),
        (Some(_), _) => (scan, load) == (0, degree),
        (None, Some(done)) if done.instances.is_empty() => scan == degree * done.streams.len(),
        _ => return None,
    };
    let lived = (scan + load) as u64;
    let (scan, load) = (counted(scan as u64, "scan server"), counted(load as u64, "load server"));
    Some(Ruling::that(agrees, format!("{scan} and {load} worked")).counted(lived))
}

/// Every stream reads each block of the table once, and directly.
fn streams(seen: &Evidence, done: &ScanDone) -> Ruling {
    let instances = done.instances_of(&seen.measured.period);
    let (requests, bytes) = instances.iter().fold((0, 0), |(requests, bytes), instance| {
        (requests + instance.direct_reads.requests, bytes + instance.direct_reads.bytes)
    });
    let cached: u64 = instances.iter().map(|instance| instance.cache_reads.requests).sum();
    let evidence = format!(
        "{} read directly in {}, {} into the buffer cache; the table has {}, and {} read it",
        Bytes(bytes),
        counted(requests, "request"),
        counted(cached, "request"),
        Bytes(done.block_count * done.block_bytes),
        counted(done.streams.len() as u64, "stream")
    );
    Ruling::that(bytes == done.bytes(), evidence)
}

/// Every instance reads its share, and gets it from a device rather than a page cache.
fn instances(seen: &Evidence, done: &ScanDone) -> Ruling {
    let shares: u64 = done.instances.iter().map(|instance| instance.seen.share_bytes).sum();
    let idle = done.instances.iter().filter(|instance| instance.seen.extents == 0).count();
    let fetched = done.instances.iter().map(|instance| instance.fetched).sum::<Option<u64>>();
    let of_kernel = fetched.map_or(String::new(), |fetched| {
        format!("; /proc/self/io: {} fetched from a device for them", Bytes(fetched))
    });
    let evidence = format!(
        "each read the bytes of its extents, {} in all, {idle} of them had none{of_kernel}",
        Bytes(shares)
    );
    let alike =
        done.instances.iter().all(|instance| instance.seen.direct_reads.bytes == instance.seen.share_bytes);
    let is_direct = seen.inside.access.direct == DirectIo::Required && shares >= BYTES_TO_JUDGE;
    let past_cache = !is_direct || fetched.is_none_or(|fetched| fetched as f64 >= shares as f64 * SHARE_MIN);
    Ruling::that(alike && past_cache && shares == done.bytes(), evidence)
}

fn columns(done: &ScanDone) -> Ruling {
    let Some(first) = done.streams.first() else { return Ruling::unknown("no stream") };
    let sums = done.columns.iter().zip(&first.totals.sums);
    let shown: Vec<String> = sums.map(|(name, sum)| format!("{name} {sum}")).collect();
    let alike = done.streams.iter().all(|stream| stream.totals.sums == first.totals.sums);
    Ruling::that(alike, format!("every stream found {}", shown.join(", ")))
}

fn predicate_of(done: &ScanDone) -> Ruling {
    let Some(first) = done.streams.first() else { return Ruling::unknown("no stream") };
    let found = first.totals.row_count;
    let scanned = first.totals.scanned;
    let alike = done.streams.iter().all(|stream| stream.totals.row_count == found);
    let evidence = format!("{} of {} rows of every stream satisfy it", RowCount(found), RowCount(scanned));
    Ruling::that(alike && found <= scanned, evidence)
}

fn checksum(done: &ScanDone) -> Ruling {
    let Some(first) = done.streams.first() else { return Ruling::unknown("no stream") };
    let sum = first.totals.row_sum;
    let alike = done.streams.iter().all(|stream| stream.totals.row_sum == sum);
    Ruling::that(alike, format!("every stream found the sum {sum:x} of CRC-64"))
}
