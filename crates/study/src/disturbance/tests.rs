//! Each rule judges an undisturbed run, a disturbed one, and one whose counters are steps of a
//! clock.

use super::*;

const SECOND: u64 = 1_000_000_000;
const MB: u64 = 1 << 20;

/// Two processors for a second, half used by the run, which read and wrote 100 MB of its own.
fn quiet() -> Stretch {
    let own = DiskBytes { read: 100 * MB, written: 100 * MB };
    Stretch {
        elapsed: Nanos(SECOND),
        cpu: Some(HostCpu { user_ns: SECOND, idle_ns: SECOND, ..HostCpu::default() }),
        disks: Some(own),
        own_cpu: Some(Nanos(SECOND)),
        own_io: Some(own),
        queued: Some([Nanos(0), Nanos(SECOND)]),
        stalled: Some(Nanos(0)),
        swapped: Some(Bytes(0)),
        counts_reads: true,
        asked_read: Some(100 * MB),
        ..Stretch::default()
    }
}

/// Returns the facts that make this run doubtful.
fn doubtful(change: impl FnOnce(&mut Stretch)) -> Vec<(Fact, String)> {
    let mut stretch = quiet();
    change(&mut stretch);
    let found = judge(&stretch).into_iter().filter(|found| found.doubtful);
    found.map(|found| (found.fact, found.evidence)).collect()
}

fn check(change: impl FnOnce(&mut Stretch), expect: Option<(Fact, &str)>) {
    let expect: Vec<_> = expect.map(|(fact, evidence)| (fact, evidence.to_string())).into_iter().collect();
    assert_eq!(doubtful(change), expect);
}

#[test]
fn an_undisturbed_run_is_judged_and_not_doubtful() {
    check(|_| (), None);
    let facts: Vec<Fact> = judge(&quiet()).iter().map(|found| found.fact).collect();
    assert_eq!(facts, [Fact::Device, Fact::Processors, Fact::Steal, Fact::Memory, Fact::PageCache]);
}

#[test]
fn what_is_not_known_is_not_judged() {
    assert_eq!(judge(&Stretch { elapsed: Nanos(SECOND), ..Stretch::default() }), []);
}

#[test]
fn bytes_of_others_at_the_device_disturb() {
    let written = |all: u64, own: u64| {
        move |stretch: &mut Stretch| {
            stretch.elapsed = Nanos(107 * SECOND);
            stretch.disks = Some(DiskBytes { read: 100 * MB, written: all });
            stretch.own_io = Some(DiskBytes { read: 100 * MB, written: own });
        }
    };
    let said = "96% of its writes, 4.31 GB of 4.48 GB";
    check(written(4_588 * MB, 174 * MB), Some((Fact::Device, said)));
    check(written(106 * MB, 100 * MB), None);
    check(written(4_588 * MB, 5_000 * MB), None);
    // Its own bytes from the page cache are written during the run.
    check(
        |stretch| {
            written(900 * MB, 174 * MB)(stretch);
            stretch.unwritten = 800 * MB;
        },
        None,
    );
    check(|stretch| stretch.disks = Some(DiskBytes { read: 300 * MB, written: 100 * MB }), {
        Some((Fact::Device, "67% of its reads, 200 MB of 300 MB"))
    });
    // A run without requests to the device does not wait for it.
    check(
        |stretch| {
            stretch.own_io = Some(DiskBytes::default());
            stretch.asked_read = Some(0);
        },
        None,
    );
}

#[test]
fn cpu_of_others_disturbs_a_run_that_waits_for_it() {
    let cpu = |user_ns: u64, idle_ns: u64| Some(HostCpu { user_ns, idle_ns, ..HostCpu::default() });
    check(
        |stretch| {
            stretch.cpu = cpu(1_976_000_000, 24_000_000);
            stretch.own_cpu = Some(Nanos(40_000_000));
            stretch.queued = Some([Nanos(580_000_000), Nanos(880_000_000)]);
        },
        Some((
            Fact::Processors,
            "0.58 s of 0.88 s in the run queue, 99% of the host's CPU time, of which 2.0% was ours",
        )),
    );
    // Another processor was free.
    check(
        |stretch| {
            stretch.cpu = cpu(1_500_000_000, 500_000_000);
            stretch.own_cpu = Some(Nanos(SECOND));
        },
        None,
    );
    // Waits for a processor inside waits for the device are in no run queue.
    check(
        |stretch| {
            stretch.cpu = cpu(1_990_000_000, 10_000_000);
            stretch.own_cpu = Some(Nanos(40_000_000));
            stretch.queued = None;
        },
        Some((Fact::Processors, "100% of the host's CPU time, of which 2.0% was ours")),
    );
    // Its own threads wait for each other.
    check(
        |stretch| {
            stretch.cpu = cpu(2_000_000_000, 0);
            stretch.own_cpu = Some(Nanos(1_990_000_000));
            stretch.queued = Some([Nanos(2_000_000_000), Nanos(4_000_000_000)]);
        },
        None,
    );
    // Some ticks of a short run.
    check(
        |stretch| {
            stretch.cpu = cpu(40_000_000, 0);
            stretch.own_cpu = Some(Nanos(5_000_000));
            stretch.queued = Some([Nanos(20_000_000), Nanos(20_000_000)]);
        },
        None,
    );
}

#[test]
fn steal_quotas_and_want_of_memory_disturb() {
    check(
        |stretch| stretch.cpu.as_mut().expect("known").steal_ns = SECOND,
        Some((Fact::Steal, "33% of the host's CPU time was stolen")),
    );
    let quota = |throttled, periods| CpuQuota {
        group: "/x".into(),
        cpus: 0.2,
        periods,
        throttled,
        throttled_time: Nanos(1_560_000_000),
    };
    check(
        |stretch| stretch.quota = Some(quota(25, 30)),
        Some((Fact::Quota, "CPU quota 0.2 CPUs: throttled in 25 of 30 periods, 1.56 s")),
    );
    check(|stretch| stretch.quota = Some(quota(0, 30)), None);
    check(|stretch| stretch.quota = Some(quota(1, 300)), None);
    check(
        |stretch| stretch.stalled = Some(Nanos(SECOND / 2)),
        Some((Fact::Memory, "tasks waited for memory in 0.50 s of 1.00 s")),
    );
    check(
        |stretch| stretch.swapped = Some(Bytes(12 * MB)),
        Some((Fact::Memory, "tasks waited for memory in 0.00 s of 1.00 s; 12.0 MB were swapped")),
    );
}

#[test]
fn work_of_other_clients_disturbs_from_a_twentieth_of_the_time() {
    let worked = |share: f64| {
        move |stretch: &mut Stretch| {
            stretch.clients = Some((share, "2 sessions of other clients worked".to_string()));
        }
    };
    check(worked(0.04), None);
    check(worked(0.05), Some((Fact::Clients, "2 sessions of other clients worked")));
    assert!(Fact::Clients.is_disturbance());
}

#[test]
fn memory_and_layers_below_are_not_taken_for_the_device() {
    let cached = |asked, fetched| {
        move |stretch: &mut Stretch| {
            stretch.asked_read = Some(asked);
            stretch.own_io = Some(DiskBytes { read: fetched, written: 0 });
            stretch.disks = stretch.own_io;
        }
    };
    check(
        cached(2_898 * MB, 173 * MB),
        Some((
            Fact::PageCache,
            "94% of the bytes read: 2.83 GB were asked for and 173 MB fetched from a device",
        )),
    );
    check(cached(100 * MB, 90 * MB), None);
    check(cached(10 * MB, 0), None);
    // If nothing counts fetched bytes, the rule has no result.
    check(
        |stretch| {
            cached(2_898 * MB, 173 * MB)(stretch);
            stretch.counts_reads = false;
        },
        None,
    );
    let layer = "loop0 reaches its file through the page cache (loop/dio is 0)";
    check(
        |stretch| {
            stretch.caches = vec![layer.to_string()];
            stretch.beneath = Some(DiskBytes { read: 12 * MB, written: 0 });
        },
        Some((Fact::CacheBelow, &format!("{layer}; 12.0 MB of the 100 MB read came from the disk below"))),
    );
}

#[test]
fn a_rate_above_the_device_is_doubted_sooner_with_cache() {
    let above = |share: f64, fetched: u64| {
        move |stretch: &mut Stretch| {
            stretch.above = Some((share, "reads".to_string()));
            stretch.own_io = Some(DiskBytes { read: fetched, written: 100 * MB });
            stretch.disks = stretch.own_io;
        }
    };
    check(above(1.3, 100 * MB), None);
    check(above(1.6, 100 * MB), Some((Fact::AboveDevice, "reads: 160% of the most that it gave")));
    check(above(1.3, 60 * MB), Some((Fact::AboveDevice, "reads: 130% of the most that it gave")));
    check(above(1.0, 60 * MB), None);
}
