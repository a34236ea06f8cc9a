//! A fixed record for the tests: a sort of ten million rows on a rented virtual disk.
//!
//! The parts are consistent, as in a measured run: CPU and waits of the foreground sessions sum to
//! the DB time, and events to the waits.

use plumb_events::{Direction, LatencyHistogram, PoolCounts, SessionKind, SortServerSummary, Unit};
use plumb_record::*;
use plumb_units::{Bytes, Nanos};

const MB: u64 = 1 << 20;
const MS: u64 = 1_000_000;

pub(crate) fn large_sort() -> Record {
    let sessions = sessions();
    let foreground = sessions.iter().filter(|row| row.kind == SessionKind::Foreground);
    let db_cpu_ns = foreground.clone().map(|row| row.cpu_ns).sum();
    let db_time_ns = foreground.map(|row| row.cpu_ns + row.wait_ns).sum();
    Record {
        devices: vec![device()],
        calibration: Some(calibration()),
        limits: Some(limits()),
        mix: None,
        checks: checks(),
        receipts: receipts(),
        findings: findings(),
        phases: phases(),
        memory: memory(),
        load_profile: load_profile(db_time_ns, db_cpu_ns),
        host_cpu: Some(HostCpu {
            user_ns: 29_140 * MS,
            system_ns: 5_310 * MS,
            iowait_ns: 14_020 * MS,
            steal_ns: 960 * MS,
            idle_ns: 70_570 * MS,
            load_begin: Some(0.31),
            load_end: Some(1.84),
        }),
        process: None,
        foreground_events: foreground_events(),
        background_events: background_events(),
        sampling: None,
        readings: Vec::new(),
        sessions,
        session: None,
        statistics: statistics(),
        io_functions: io_functions(),
        io_files: io_files(),
        kernel_io: Some(KernelIo { read_bytes: 2_100 * MB, written_bytes: 1_812 * MB, all_direct: false }),
        tablespaces: tablespaces(),
        buffer_pools: buffer_pools(),
        io_devices: vec![IoDevice {
            device: "nvme0n1".to_string(),
            reads: tally(10_604, 2_991, 38_200),
            writes: tally(4_990, 1_812, 12_480),
            busy_ns: Some(18_300 * MS),
            weighted_ns: Some(50_680 * MS),
        }],
        completion: Completion::Seen,
        io_profile: io_profile(),
        beside: None,
        intervals: Vec::new(),
        responses: Vec::new(),
        sort: Some(sort()),
        log: None,
        trace: None,
        parameters: parameters(),
        settings: settings(),
        ..Record::of(header(db_time_ns, db_cpu_ns))
    }
}

/// A record with only a header, the least a run can give.
pub(crate) fn empty() -> Record {
    Record { completion: Completion::Exact, ..Record::of(large_sort().header) }
}

fn parameters() -> Vec<ParameterRow> {
    let row = |(name, value): (&str, &str)| ParameterRow { name: name.to_string(), value: value.to_string() };
    [("rows", "10000000"), ("seed", "1996")].map(row).to_vec()
}

fn header(db_time_ns: u64, db_cpu_ns: u64) -> Header {
    Header {
        title: "PLUMB REPORT  Workload: large-sort".to_string(),
        workload: "large-sort".to_string(),
        plumb_version: "0.1.0".to_string(),
        git_revision: Some("4f2a91c07d3e".to_string()),
        profile: Some("release".to_string()),
        host: Host {
            name: "dblab03".to_string(),
            cpus: Some(4),
            cpu_quota: None,
            cpu_model: "AMD EPYC 7R13 Processor".to_string(),
            memory_bytes: Some(16_384 * MB),
            kernel: "Linux 6.12.41-amd64 x86_64".to_string(),
        },
        begin_time: "2025-11-20T21:04:05+00:00".to_string(),
        end_time: "2025-11-20T21:04:35+00:00".to_string(),
        elapsed_ns: 30_000 * MS,
        db_time_ns: Some(db_time_ns),
        db_cpu_ns: Some(db_cpu_ns),
        command_line: "plumb run large-sort --path /u02/oradata --set sort_area_size=64M \
                       --set filesystemio_options=setall"
            .to_string(),
        seed: Some(20_251_120),
        settings_hash: "9c41e07b".to_string(),
        clock_source: Some("CLOCK_MONOTONIC (tsc)".to_string()),
        clock_precision_ns: Some(21),
    }
}

pub(crate) fn device() -> Device {
    Device {
        path: "/u02/oradata".to_string(),
        filesystem: "xfs".to_string(),
        mount_options: "rw,noatime,attr2,inode64,logbufs=8,noquota".to_string(),
        device: "nvme1n1".to_string(),
        model: Some("Amazon Elastic Block Store".to_string()),
        virtual_reason: Some("the model is a cloud volume's, the CPU has the hypervisor flag".to_string()),
        write_cache: Some("write through".to_string()),
        fua: Some(false),
        rotational: Some(false),
        logical_block_bytes: Some(512),
        physical_block_bytes: Some(4096),
        queue: QueueLimits {
            scheduler: Some("none".to_string()),
            nr_requests: Some(127),
            max_sectors_kb: Some(256),
            max_segments: Some(33),
            hardware_queues: Some(4),
            io_poll: Some(false),
        },
        direct_io: DirectIoAnswer::Available { memory_alignment_bytes: 4, offset_alignment_bytes: 512 },
        io_uring: IoUringAnswer::Available { detail: "registered buffers and files work".to_string() },
        used_direct_io: Some(true),
        caches: Vec::new(),
        io_method: "io_uring".to_string(),
        io_method_reason: "the probe read 8 blocks through the ring, none by a worker thread".to_string(),
        notes: vec!["requests above 256 KiB are split by the block layer".to_string()],
    }
}

fn limits() -> DeviceLimits {
    let figure = |name: &str, value: f64, unit: &str, settled, at: &str| LimitFigure {
        name: name.to_string(),
        value,
        low: value - 4.25,
        high: value + 6.5,
        unit: unit.to_string(),
        settled,
        at: at.to_string(),
    };
    DeviceLimits::Calibrated(StoredCalibration {
        source: "/u02/oradata/plumb-calibration.json".to_string(),
        date: "2025-11-17T08:00:00Z".to_string(),
        age_s: Some(306_245),
        mode: "normal".to_string(),
        doubts: Vec::new(),
        sequential_read_bytes_per_s: Some((2_512 * MB) as f64 / 10.0),
        sequential_write_bytes_per_s: Some((2_478 * MB) as f64 / 10.0),
        figures: vec![
            figure("small_read_latency", 486.0, "us", true, "8K random read x1"),
            figure("sequential_read_all", 251.25, "MB/s", true, "1M sequential read x8, 4 threads"),
            figure("sequential_write_all", 247.75, "MB/s", false, "1M sequential write x8, 4 threads"),
        ],
    })
}

fn calibration() -> MeasuredLimits {
    let share = |what: &str, reached: u64, limit: &str, bound: u64| LimitShare {
        what: what.to_string(),
        reached_bytes_per_s: (reached * MB) as f64 / 10.0,
        limit: limit.to_string(),
        limit_bytes_per_s: (bound * MB) as f64 / 10.0,
        limit_low_bytes_per_s: None,
        limit_high_bytes_per_s: None,
    };
    MeasuredLimits {
        path: "/u02/oradata".to_string(),
        sequential_read_bytes_per_s: Some((2_512 * MB) as f64 / 10.0),
        sequential_read_low_bytes_per_s: Some((2_470 * MB) as f64 / 10.0),
        sequential_read_high_bytes_per_s: Some((2_530 * MB) as f64 / 10.0),
        sequential_read_unsettled: None,
        random_read_8k_ns: Some(486_000),
        shares: vec![
            share("table reads while runs were formed", 2_035, "sequential read", 2_512),
            share("data writes of the load", 943, "sequential write", 2_478),
        ],
    }
}

fn checks() -> Vec<Check> {
    let check = |name: &str, detail: &str, ms: u64| Check {
        name: name.to_string(),
        passed: true,
        detail: detail.to_string(),
        elapsed_ns: ms * MS,
    };
    vec![
        check("table SALES", "10,000,000 rows, sum of row checksums as generated", 3_120),
        check(
            "index SALES_IX(STORE_ID, PROD_ID)",
            "10,000,000 entries, in order, every rowid once, keys equal rows, checksums right",
            4_380,
        ),
    ]
}

fn receipts() -> Vec<Receipt> {
    let receipt = |setting: &str, asked: &str, evidence: &str, held| Receipt {
        seen: Seen::Outside,
        setting: setting.to_string(),
        asked: asked.to_string(),
        evidence: evidence.to_string(),
        held,
    };
    vec![
        receipt(
            "filesystemio_options",
            "setall",
            "O_DIRECT in the open flags of 4 of 4 data files in /proc/self/fdinfo; 0 of 151,040 pages \
             of the table resident after the scan",
            Held::Held,
        ),
        receipt("io_method", "io_uring", "18,204 requests through the ring, 0 io-wq workers", Held::Held),
        receipt("sort_area_size", "64M", "6 runs for 340 MB of sorted rows over 2 servers", Held::Held),
        receipt(
            "sort_direct_writes",
            "auto",
            "1,360 writes to the temporary files, none by DBWR",
            Held::Held,
        ),
        receipt(
            "db_file_multiblock_read_count",
            "128",
            "the device's counters are shared with other guests",
            Held::NotChecked,
        ),
    ]
}

fn findings() -> Vec<Finding> {
    vec![
        Finding {
            what: "The scan of the index build runs at the device's limit".to_string(),
            evidence: "table reads reached 81.0% of sequential read; direct path read is 20.1% of DB time"
                .to_string(),
            advice: "a faster volume helps; more scan servers do not".to_string(),
            rule: "R20".to_string(),
            caveat: "averages hide peaks, and a calibration may read from a cache".to_string(),
            saves_ns: Some(10_410 * MS),
            ..Finding::default()
        },
        Finding {
            what: "Requests are larger than the device takes".to_string(),
            evidence: "1 MB asked, max_sectors_kb 256: each was split in 4".to_string(),
            advice: "try db_file_multiblock_read_count = 32".to_string(),
            study: "plumb study large-sort --factor db_file_multiblock_read_count=32,128".to_string(),
            ..Finding::default()
        },
    ]
}

fn phases() -> Vec<Phase> {
    let phase = |name: &str, operation: &str, start: u64, end: u64, megabytes: u64| Phase {
        name: name.to_string(),
        operation: operation.to_string(),
        start_ns: start * MS,
        end_ns: end * MS,
        rows: 10_000_000,
        bytes: megabytes * MB,
        direction: match name {
            "generate and load" => Some(Direction::Write),
            "verify" => Some(Direction::Read),
            _ => None,
        },
    };
    vec![
        phase("generate and load", "load", 0, 12_500, 1_180),
        phase("sort runs", "index build", 12_700, 18_500, 1_520),
        phase("merge", "index build", 18_500, 22_250, 630),
        phase("verify", "verify", 22_400, 29_900, 1_470),
    ]
}

fn memory() -> Memory {
    let area = |name: &str, megabytes: u64| MemoryArea { name: name.to_string(), bytes: megabytes * MB };
    Memory {
        areas: vec![
            area("Buffer Cache", 64),
            area("Sort Areas (2 x 64M)", 128),
            area("Sort Write Buffers", 8),
            area("Scan Buffers", 16),
            area("Log Buffer", 4),
        ],
        overhead_bytes: Some(24 * MB),
        peak_rss_bytes: Some(231 * MB),
    }
}

fn load_profile(db_time_ns: u64, db_cpu_ns: u64) -> Vec<LoadRow> {
    let row =
        |name: &str, total: f64| LoadRow { name: name.to_string(), total, is_count: !name.ends_with(')') };
    vec![
        row("DB Time(s)", db_time_ns as f64 / 1e9),
        row("DB CPU(s)", db_cpu_ns as f64 / 1e9),
        row("Redo size (MB)", 11.2),
        row("Physical reads (MB)", 2_990.0),
        row("Physical writes (MB)", 1_810.0),
        row("Physical read requests", 910.0),
        row("Physical write requests", 6_194.0),
        row("Blocks read", 382_720.0),
        row("Rows sorted", 10_000_000.0),
    ]
}

fn event(event: &str, wait_class: &str, waits: u64, ms: u64, centre: usize) -> WaitEvent {
    WaitEvent {
        event: event.to_string(),
        wait_class: wait_class.to_string(),
        waits,
        time_ns: ms * MS,
        max_ns: Some((1_000 << (centre + 2)) * 9 / 10),
        histogram: bell(waits, centre),
        latency: None,
    }
}

/// Distributes waits around an entry of the histogram.
fn bell(waits: u64, centre: usize) -> Vec<u64> {
    let mut histogram = vec![0; 27];
    for (offset, percent) in [(0, 6), (1, 21), (3, 14), (4, 3)] {
        histogram[centre + offset - 2] = waits * percent / 100;
    }
    histogram[centre] = waits - histogram.iter().sum::<u64>();
    histogram
}

fn foreground_events() -> Vec<WaitEvent> {
    vec![
        event("direct path write temp", "User I/O", 1_360, 4_020, 12),
        event("direct path read", "User I/O", 9_210, 10_410, 11),
        event("direct path write", "User I/O", 1_160, 3_020, 12),
        event("direct path read temp", "User I/O", 1_361, 2_610, 11),
        event("free buffer waits", "Configuration", 212, 470, 12),
        event("log file sync", "Commit", 101, 310, 12),
        event("Disk file operations I/O", "User I/O", 18, 90, 13),
        event("PX Deq: Execute Reply", IDLE_CLASS, 98, 9_800, 17),
        event("PX Deq: Table Q Normal", IDLE_CLASS, 5_204, 4_420, 10),
    ]
}

fn background_events() -> Vec<WaitEvent> {
    vec![
        event("db file parallel write", "System I/O", 1_180, 8_410, 13),
        event("db file async I/O submit", "System I/O", 1_180, 180, 8),
        event("log file parallel write", "System I/O", 104, 310, 12),
        event("rdbms ipc message", IDLE_CLASS, 31, 20_010, 20),
    ]
}

fn sessions() -> Vec<SessionTime> {
    use SessionKind::{Background, Foreground};
    let session = |name: &str, role: &str, kind, [elapsed, cpu, wait, idle, queue]: [u64; 5]| SessionTime {
        name: name.to_string(),
        role: role.to_string(),
        kind,
        elapsed_ns: elapsed * MS,
        cpu_ns: cpu * MS,
        wait_cpu_ns: wait / 20 * MS,
        wait_ns: wait * MS,
        idle_ns: idle * MS,
        run_queue_ns: Some(queue * MS),
    };
    vec![
        session("DBW0", "database writer", Background, [30_000, 840, 8_900, 20_010, 50]),
        session("session 1", "coordinator", Foreground, [30_000, 14_210, 5_620, 9_800, 90]),
        session("p000", "PX scan server", Foreground, [9_620, 2_310, 5_660, 1_420, 110]),
        session("p001", "PX scan server", Foreground, [9_620, 2_290, 5_600, 1_400, 120]),
        session("p002", "PX sort server", Foreground, [9_620, 5_920, 2_100, 700, 310]),
        session("p003", "PX sort server", Foreground, [9_620, 6_020, 1_950, 900, 400]),
    ]
}

fn statistics() -> Vec<StatisticRow> {
    let statistic = |name: &str, total, unit| StatisticRow { name: name.to_string(), total, unit };
    use Unit::{Bytes, Count};
    vec![
        statistic("sorts (rows)", 10_000_000, Count),
        statistic("sorts (disk)", 2, Count),
        statistic("sorts (memory)", 0, Count),
        statistic("physical read total bytes", 2_990 * MB, Bytes),
        statistic("physical write total bytes", 1_810 * MB, Bytes),
        statistic("physical reads direct", 382_720, Count),
        statistic("redo size", 11_744_051, Bytes),
        statistic("redo writes", 104, Count),
        statistic("table scan blocks gotten", 151_040, Count),
    ]
}

fn tally(requests: u64, megabytes: u64, ms: u64) -> IoTally {
    IoTally { requests, bytes: megabytes * MB, time_ns: Some(ms * MS) }
}

fn io_functions() -> Vec<IoFunction> {
    let none = IoTally::default();
    let row = |stream: &str, part_of: &str, reads, writes, large| IoFunction {
        function: stream.to_string(),
        part_of: Some(part_of.to_string()),
        reads,
        writes,
        large: Some(large),
    };
    let read = |reads| LargeRequests { reads, writes: none };
    let write = |writes| LargeRequests { reads: none, writes };
    let small = LargeRequests::default();
    vec![
        row(
            "table reads",
            "Direct Reads",
            tally(9_210, 2_650, 41_300),
            none,
            read(tally(9_180, 2_640, 41_200)),
        ),
        row("temp writes", "DBWR", none, tally(1_180, 11, 2_210), small),
        row("temp writes", "Direct Writes", none, tally(1_360, 340, 9_870), write(tally(1_340, 338, 9_800))),
        row("temp reads", "Direct Reads", tally(1_361, 340, 8_440), none, read(tally(1_350, 339, 8_400))),
        row(
            "index writes",
            "Direct Writes",
            none,
            tally(2_340, 1_448, 21_420),
            write(tally(2_300, 1_440, 21_000)),
        ),
        row("log writes", "LGWR", none, tally(104, 11, 310), small),
        row("control file writes", "Others", none, tally(18, 0, 40), small),
    ]
}

fn io_files() -> Vec<IoFile> {
    let file = |tablespace: &str, name: &str, reads: IoTally, writes: IoTally| {
        let single = IoTally { requests: 80, bytes: 80 * 8192, time_ns: Some(20 * MS) };
        let rest = IoTally {
            requests: reads.requests - single.requests,
            bytes: reads.bytes - single.bytes,
            time_ns: reads.time_ns.map(|ns| ns - 20 * MS),
        };
        let size = |up_to_bytes, reads, writes| IoSize { up_to_bytes, reads, writes };
        IoFile {
            tablespace: tablespace.to_string(),
            path: format!("/u02/oradata/plumb-7f31/{name}"),
            reads,
            writes,
            block_bytes: Some(8192),
            sizes: vec![size(Some(8192), single, IoTally::default()), size(Some(262_144), rest, writes)],
            buffer_waits: Some(BufferWaits { waits: reads.requests / 400, time_ns: reads.requests * 2_000 }),
        }
    };
    vec![
        file("USERS", "users01.dbf", tally(9_080, 2_360, 39_800), tally(1_180, 1_180, 13_100)),
        file("INDX", "indx01.dbf", tally(1_160, 290, 1_500), tally(1_160, 290, 8_320)),
        file("TEMP", "temp01.dbf", tally(681, 170, 4_240), tally(680, 170, 4_930)),
        file("TEMP", "temp02.dbf", tally(680, 170, 4_200), tally(680, 170, 4_940)),
    ]
}

fn tablespaces() -> Vec<TablespaceShape> {
    let shape = |tablespace: &str, block_bytes, files, megabytes: u64| TablespaceShape {
        tablespace: tablespace.to_string(),
        block_bytes,
        extent_bytes: MB,
        files,
        bytes: megabytes * MB,
    };
    vec![shape("USERS", 8192, 1, 1_200), shape("TEMP", 8192, 2, 400), shape("USERS_2K", 2048, 1, 64)]
}

fn buffer_pools() -> Vec<PoolStats> {
    let cached =
        |tablespace: &str, blocks, dirty| PoolBlocks { tablespace: tablespace.to_string(), blocks, dirty };
    vec![
        PoolStats {
            block_bytes: 8192,
            buffers: 8_192,
            counts: PoolCounts {
                gets: 41_200,
                hits: 38_900,
                reads: 2_300,
                writes: 1_408,
                free_buffer_waits: 212,
                write_complete_waits: 3,
                buffer_busy_waits: 17,
                evicted: 180,
            },
            census: vec![cached("USERS", 2_210, 0), cached("TEMP", 5_100, 812)],
        },
        PoolStats {
            block_bytes: 2048,
            buffers: 512,
            counts: PoolCounts { gets: 900, hits: 450, reads: 450, ..PoolCounts::default() },
            census: vec![cached("USERS_2K", 450, 0)],
        },
    ]
}

/// Response times of `count` operations between these two, evenly spread.
fn between(count: u64, [least_us, most_us]: [u64; 2]) -> LatencyHistogram {
    let mut latency = LatencyHistogram::default();
    for number in 0..count {
        latency.add(Nanos((least_us + (most_us - least_us) * number / count.max(1)) * 1000));
    }
    latency
}

/// Users whose blocks a sort through the cache displaces.
pub(crate) fn users() -> Users {
    let wait = |event: &str, class: &str, waits, time_ns| WaitEvent {
        event: event.to_string(),
        wait_class: class.to_string(),
        waits,
        time_ns,
        max_ns: None,
        histogram: Vec::new(),
        latency: None,
    };
    let part = |name: &str, start_ns, elapsed_ns, latency: LatencyHistogram, reads| {
        let gets = latency.count() * 63;
        let read_waits = wait("db file sequential read", "User I/O", reads, reads * 120_000);
        let idle = wait("SQL*Net message from client", "Idle", 9, 9_000 * MS);
        let pool = PoolStats {
            block_bytes: 8192,
            buffers: 2_560,
            counts: PoolCounts {
                gets,
                hits: gets - reads,
                reads,
                writes: if reads > 0 { 5_120 } else { 0 },
                free_buffer_waits: if reads > 0 { 91 } else { 0 },
                evicted: reads * 2,
                ..PoolCounts::default()
            },
            ..PoolStats::default()
        };
        let time = SessionsTime { cpu_ns: latency.count() * 60_000, events: vec![read_waits, idle] };
        let name = name.to_string();
        UsersPart { name, start_ns, elapsed_ns, latency, gets, hits: gets - reads, reads, time, pool }
    };
    Users {
        sessions: 8,
        hot_blocks: 1_280,
        table_blocks: 8_192,
        block_bytes: 8_192,
        rate: 2_000,
        parts: vec![
            part("before", 13_000 * MS, 3_000 * MS, between(6_010, [60, 190]), 0),
            part("during", 16_000 * MS, 12_000 * MS, between(23_100, [60, 9_200]), 41_300),
            part("after", 28_000 * MS, 3_000 * MS, between(5_990, [60, 240]), 620),
        ],
        build: SessionsTime {
            cpu_ns: 6_100 * MS,
            events: vec![
                wait("free buffer waits", "Configuration", 91, 2_730 * MS),
                wait("direct path read", "User I/O", 1_180, 900 * MS),
            ],
        },
    }
}

/// Two builds at once, of which one got half of the memory of the other's.
pub(crate) fn sorters() -> Vec<SortBuild> {
    let sorter = |index: &str, seconds: u64, megabytes: u64, runs| SortBuild {
        index: index.to_string(),
        elapsed_ns: seconds * 1_000 * MS,
        servers: 2,
        area_bytes: megabytes * MB,
        rows: 10_000_000,
        runs,
        run_bytes: 340 * MB,
        merge_passes: 1,
        merge_width: runs / 2,
        intermediate_merges: 0,
    };
    vec![sorter("SALES_STORE_PROD", 14, 8, 44), sorter("SALES_2_STORE_PROD", 15, 8, 46)]
}

/// Distributes bytes over buckets of a quarter second, with a fixed variation.
fn spread(parts: &[(usize, usize, u64)]) -> Vec<u64> {
    let mut bytes = vec![0; 120];
    for (first, last, megabytes) in parts {
        let even = megabytes * MB / (last - first) as u64;
        for (bucket, sum) in bytes.iter_mut().enumerate().take(*last).skip(*first) {
            let wobble = (bucket * 37 % 23) as u64;
            *sum += even * (89 + wobble) / 100;
        }
    }
    bytes
}

fn io_profile() -> IoProfile {
    let series = |name: &str, bytes| ProfileSeries {
        name: name.to_string(),
        direction: if name.ends_with("reads") { Direction::Read } else { Direction::Write },
        bytes,
    };
    IoProfile {
        bucket_ns: 250 * MS,
        y_max_mb_per_s: None,
        x_max_s: None,
        series: vec![
            series("table reads", spread(&[(51, 74, 1_180), (90, 115, 1_180)])),
            series("temp writes", spread(&[(53, 75, 340)])),
            series("temp reads", spread(&[(74, 89, 340)])),
            series("index writes", spread(&[(75, 90, 290)])),
            series("data writes", spread(&[(1, 51, 1_180)])),
            series("other", vec![0; 120]),
        ],
    }
}

fn sort() -> Sort {
    let server = |name: &str, rows, runs, megabytes: u64| SortServerSummary {
        name: name.to_string(),
        area: Bytes(64 * MB),
        row_count: rows,
        run_count: runs,
        run_bytes: megabytes * MB,
        merge_passes: 1,
        merge_width: runs,
        ..SortServerSummary::default()
    };
    Sort {
        optimal: 0,
        one_pass: 2,
        multi_pass: 0,
        rows: 10_000_000,
        runs: 6,
        run_bytes: 340 * MB,
        merge_passes: 1,
        merge_width: 3,
        intermediate_merges: 0,
        sort_read_fac: 32,
        sort_read_fac_source: "measured: 62 us to start a read, then 1.20 GB/s".to_string(),
        sort_direct_writes: "auto".to_string(),
        direct_writes_used: true,
        direct_writes_reason: "the sort area is more than ten times its write buffers".to_string(),
        servers: vec![server("p002", 5_013_220, 3, 170), server("p003", 4_986_780, 3, 170)],
        sorters: Vec::new(),
    }
}

fn settings() -> Vec<SettingRow> {
    let setting = |name: &str, value: &str, source: &str, description: &str| SettingRow {
        taken: None,
        name: name.to_string(),
        value: value.to_string(),
        is_default: source.is_empty(),
        source: source.to_string(),
        description: description.to_string(),
    };
    vec![
        setting("db_block_size", "8K", "", "bytes in a block of a new tablespace"),
        setting("db_file_multiblock_read_count", "128", "", "blocks in one read of a scan"),
        setting(
            "filesystemio_options",
            "setall",
            "--set",
            "which of asynchronous and direct I/O data files get",
        ),
        setting("io_method", "auto", "", "how requests reach the kernel"),
        setting("parallel_degree", "2", "workload", "servers of each kind in a parallel operation"),
        setting("sort_area_size", "64M", "--set", "memory of one sort server"),
        setting("sort_direct_writes", "auto", "", "whether runs bypass the buffer cache"),
    ]
}
