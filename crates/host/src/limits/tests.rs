//! Limits of machines laid out as directories, and the program's own quotas.

use super::*;
use std::fs;
use tempfile::TempDir;

/// A machine with these files below `sys` and `proc`.
fn machine(files: &[(&str, &str)]) -> (TempDir, Roots) {
    let directory = tempfile::tempdir().expect("a directory");
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("in a directory")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    let roots = Roots { sys: directory.path().join("sys"), proc: directory.path().join("proc") };
    (directory, roots)
}

const MEMINFO: (&str, &str) =
    ("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\n");

#[test]
fn memory_is_the_machines_or_that_of_the_tightest_control_group() {
    let check = |files: &[(&str, &str)], expect: (u64, &str, u64)| {
        let (_directory, roots) = machine(&[&[MEMINFO], files].concat());
        let MemoryBounds { total, source, available } = memory_at(&roots).expect("known");
        assert_eq!((total.0, source, available.0), (expect.0 * 1024, expect.1, expect.2 * 1024));
    };
    let group = "memory.max of the control group";
    check(&[], (1000, "MemTotal", 600));
    check(
        &[("proc/self/cgroup", "0::/a/b\n"), ("sys/fs/cgroup/a/b/memory.max", "max\n")],
        (1000, "MemTotal", 600),
    );
    check(
        &[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/memory.max", "409600\n"),
            ("sys/fs/cgroup/a/memory.current", "102400\n"),
        ],
        (400, group, 300),
    );
    // In the older layout, a number beyond all memory means no limit.
    let old = ("proc/self/cgroup", "8:pids:/\n4:memory:/x\n0::/\n");
    check(
        &[old, ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")],
        (1000, "MemTotal", 600),
    );
    check(&[old, ("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "204800\n")], (200, group, 200));
}

#[test]
fn the_limit_of_threads_that_was_hit_is_named_with_the_number_needed() {
    let own = ("proc/17/status", "Name: x\nThreads:\t70\n");
    let (_directory, roots) = machine(&[own]);
    assert_eq!(
        threads_at(&roots, Some(80), 64),
        "this user may have 80 threads (RLIMIT_NPROC), has 70 and needs 64 more: set ulimit -u to 142 or more"
    );
    let group = [
        own,
        ("proc/self/cgroup", "0::/job\n"),
        ("sys/fs/cgroup/job/pids.max", "100\n"),
        ("sys/fs/cgroup/job/pids.current", "90\n"),
    ];
    let (_directory, roots) = machine(&group);
    let said = threads_at(&roots, Some(1000), 64);
    assert!(
        said.starts_with("the control group may have 100 threads (pids.max), has 90 and needs 64 more"),
        "{said}"
    );
    let said = threads_at(&roots, Some(1000), 5);
    assert!(said.starts_with("RLIMIT_NPROC is 1000 and this user has 70 threads: look at"), "{said}");
}

#[test]
fn a_share_of_a_quota_is_free_again_when_it_is_dropped() {
    let quota = Quota::of(1);
    let share = quota.thread().expect("the first");
    assert_eq!(quota.thread().expect_err("taken").kind(), io::ErrorKind::WouldBlock);
    drop(share);
    assert!(quota.thread().is_ok());
    assert_eq!(quota.taken(), 0);
}

#[test]
fn threads_are_tried_all_at_once() {
    assert!(try_threads(&Quota::of(5), 5).is_ok());
    let shortage = try_threads(&Quota::of(5), 9).expect_err("too many");
    assert_eq!(shortage.started, 5);
    assert!(try_threads(&Quota::default(), 0).is_ok());
}

#[test]
fn a_quota_of_processors_is_read_in_both_layouts_with_what_it_cost() {
    let check = |files: &[(&str, &str)], expect: &[(f64, u64, u64, u64)]| {
        let (_directory, roots) = machine(files);
        let found: Vec<_> = cpu_quotas_at(&roots)
            .iter()
            .map(|quota| (quota.cpus, quota.periods, quota.throttled, quota.throttled_time.0))
            .collect();
        assert_eq!(found, expect);
    };
    let one_tree = ("proc/self/cgroup", "0::/a/b\n");
    let stat = "usage_usec 900\nnr_periods 30\nnr_throttled 25\nthrottled_usec 1560000\n";
    check(
        &[
            one_tree,
            ("sys/fs/cgroup/a/b/cpu.max", "20000 100000\n"),
            ("sys/fs/cgroup/a/b/cpu.stat", stat),
            ("sys/fs/cgroup/a/cpu.max", "max 100000\n"),
        ],
        &[(0.2, 30, 25, 1_560_000_000)],
    );
    check(&[one_tree], &[]);
    let own_tree = ("proc/self/cgroup", "4:memory:/\n1:cpu,cpuacct:/x\n");
    let old = [
        own_tree,
        ("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "150000\n"),
        ("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000\n"),
        ("sys/fs/cgroup/cpu/x/cpu.stat", "nr_periods 4\nnr_throttled 1\nthrottled_time 7000000\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
        ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
    ];
    check(&old, &[(1.5, 4, 1, 7_000_000)]);
    let (_directory, roots) = machine(&old);
    let earlier = cpu_quotas_at(&roots).remove(0);
    let later = CpuQuota { periods: 9, throttled: 4, throttled_time: Nanos(9_000_000), ..earlier.clone() };
    let grown = later.since(&earlier);
    assert_eq!((grown.periods, grown.throttled, grown.throttled_time.0), (5, 3, 2_000_000));
}
