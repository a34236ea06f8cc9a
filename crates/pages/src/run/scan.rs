//! Full scans: streams and sums, and I/O a second by instance.

use plumb_record::{IoTally, Record, Scan, ScanInstance};
use plumb_report::format::{Count, Decimal, Figure, Seconds};
use plumb_report::table::{Facts, Table};
use plumb_report::{Section, cells};
use plumb_units::{Bytes, Nanos};

/// The published scans next to which ours are shown: instances, MB and requests a second.
const PUBLISHED: [(&str, f64, f64); 2] =
    [("published, 1 instance", 13_539.89, 606.27), ("published, 2 instances", 20_355.73, 911.64)];

/// Shows what the scans found, and their reads by instance; `None` without a scan.
pub(super) fn scan(record: &Record) -> Option<Section> {
    let scan = record.scan.as_ref()?;
    let mut facts = Facts::default();
    facts.add("Rows", format!("{} in each of {} streams", Count(scan.rows).figure(), scan.streams_ns.len()));
    for sum in &scan.sums {
        facts.add(format!("Sum of {}", sum.column), sum.sum.clone());
    }
    if let (Some(least), Some(most)) = (scan.streams_ns.iter().min(), scan.streams_ns.iter().max()) {
        facts.add("Elapsed of a stream", format!("{} to {}", Nanos(*least), Nanos(*most)));
    }
    let section = Section::front("scan", "Full Scan")
        .note(
            "a row an instance, over its own time; Sum over the time of the longest; Avg of those that had extents to read",
        )
        .note(
            "published: Oracle on two servers with flash storage, 220 GB, reports of a whole interval; ratios may be compared, \
             rates not",
        );
    Some(section.facts(facts).table(by_instance(scan)))
}

fn by_instance(scan: &Scan) -> Table {
    let mut table = Table::default()
        .text(["Instance"])
        .numbers([
            "Extents",
            "Elapsed\n(s)",
            "Reads\nMB/s",
            "Buffer\nCache",
            "Direct\nReads",
            "Writes\nMB/s",
            "Reads/s",
            "MB a\nrequest",
        ])
        .with_caption("IOStat by Function (per Second)");
    let worked: Vec<&ScanInstance> =
        scan.instances.iter().filter(|instance| instance.direct_reads.requests > 0).collect();
    let mut row = |name: &str, extents: u64, elapsed_ns: u64, of: [f64; 4]| {
        let [cache, direct, writes, requests] = of;
        table.row(cells![
            name,
            Count(extents),
            Seconds(elapsed_ns),
            Decimal(cache + direct),
            Decimal(cache),
            Decimal(direct),
            Decimal(writes),
            Decimal(requests),
            Decimal(if requests > 0.0 { direct / requests } else { 0.0 })
        ]);
    };
    for instance in &scan.instances {
        row(&instance.name, instance.extents, instance.elapsed_ns, rates(instance, instance.elapsed_ns));
    }
    let longest = scan.instances.iter().map(|instance| instance.elapsed_ns).max().unwrap_or(0);
    let all = |of: &dyn Fn(&ScanInstance) -> [f64; 4]| {
        worked
            .iter()
            .map(|instance| of(instance))
            .fold([0.0; 4], |sum, next| std::array::from_fn(|place| sum[place] + next[place]))
    };
    row("Sum", scan.extents, longest, all(&|instance| rates(instance, longest)));
    if let Some(count) = u32::try_from(worked.len()).ok().filter(|count| *count > 0) {
        let own = all(&|instance| rates(instance, instance.elapsed_ns)).map(|sum| sum / f64::from(count));
        let elapsed: u64 = worked.iter().map(|instance| instance.elapsed_ns).sum();
        row("Avg", scan.extents / u64::from(count), elapsed / u64::from(count), own);
    }
    for (name, megabytes, requests) in PUBLISHED {
        table.row(cells![
            name,
            "",
            "",
            Decimal(megabytes),
            "",
            Decimal(megabytes),
            "",
            Decimal(requests),
            Decimal(megabytes / requests)
        ]);
    }
    table
}

/// Returns MB a second of cache reads, direct reads and writes, and direct reads a second.
fn rates(instance: &ScanInstance, elapsed_ns: u64) -> [f64; 4] {
    let rate = |tally: &IoTally| Bytes(tally.bytes).per(Nanos(elapsed_ns)).mb_per_second();
    let requests = instance.direct_reads.requests as f64 / Nanos(elapsed_ns.max(1)).seconds();
    [rate(&instance.cache_reads), rate(&instance.direct_reads), rate(&instance.writes), requests]
}
