//! Findings of reports: silent on healthy systems, ordered by what could be saved.

use crate::{fixture, only};
use plumb_record::Finding;
use proptest::prelude::*;

/// Builds a report of an hour: DB time and DB CPU in seconds, and events with their waits, seconds,
/// milliseconds of a wait, and class.
fn report(db_time: f64, cpu: f64, events: &[(&str, u64, f64, f64, &str)]) -> String {
    let mut text = format!(
        "
WORKLOAD REPOSITORY report for

DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC
------------ ----------- ------------ -------- --------------- ----------- ---
DEMO          1234567890 demo1               1 02-May-24 13:50 12.1.0.2.0  NO

Host Name        Platform                         CPUs Cores Sockets Memory(GB)
---------------- -------------------------------- ---- ----- ------- ----------
dbhost1.example. Linux x86 64-bit                    8                    31.25

              Snap Id      Snap Time      Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:        10 03-May-24 09:00:00        40       1.5
  End Snap:        11 03-May-24 10:00:00        42       1.6
   Elapsed:               60.00 (mins)
   DB Time:               {:.2} (mins)

Top 10 Foreground Events by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                         Total
                                         Wait     Wait   % DB
Event                             Waits Time (s) Avg(ms)   time Wait Class
------------------------------ -------- -------- ------- ------ ----------
DB CPU                                  {cpu:>8.1}         {:>6.1}
",
        db_time / 60.0,
        100.0 * cpu / db_time
    );
    for (event, waits, seconds, each, class) in events {
        let share = 100.0 * seconds / db_time;
        text.push_str(&format!("{event:<30} {waits:>8} {seconds:>8.1} {each:>7.2} {share:>6.1} {class}\n"));
    }
    text
}

fn findings(text: &str) -> Vec<Finding> {
    only(text).record.expect("an interval").findings
}

fn rules(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.rule.as_str()).collect()
}

#[test]
fn an_idle_system_is_silent_even_if_its_few_reads_are_slow() {
    let idle = report(
        6.0,
        4.0,
        &[("db file sequential read", 40, 1.0, 25.0, "User I/O"), ("log file sync", 20, 0.4, 20.0, "Commit")],
    );
    let found = findings(&idle);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_system_whose_problem_is_no_storage_gets_no_advice_on_storage() {
    let locked = report(
        36_000.0,
        1_200.0,
        &[
            ("enq: TX - row lock contention", 4_000, 34_000.0, 8_500.0, "Applicatio"),
            ("log file sync", 1_500, 511.5, 341.0, "Commit"),
            ("db file sequential read", 9_000, 180.0, 20.0, "User I/O"),
        ],
    );
    let found = findings(&locked);
    assert!(rules(&found).contains(&"G1"), "{found:?}");
    // The wait that it is may be named, and none of a disk.
    assert!(!rules(&found).iter().any(|rule| OF_STORAGE.contains(rule)), "{found:?}");
}

/// Rules whose advice is about storage.
const OF_STORAGE: [&str; 16] =
    ["R1", "R2", "R3", "R4", "R5", "R6", "R7", "R10", "R11", "R12", "R13", "R14", "R15", "R17", "R18", "R23"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Reports of systems whose I/O is less than a tenth of DB time, however slow each request is.
    #[test]
    fn a_system_without_much_io_gets_no_advice_on_storage(
        db_time in 100.0f64..90_000.0,
        cpu in 0.0f64..0.9,
        shares in proptest::collection::vec(0.0f64..0.015, 6),
        each in proptest::collection::vec(0.1f64..400.0, 6),
    ) {
        let names = [
            ("db file sequential read", "User I/O"),
            ("db file scattered read", "User I/O"),
            ("direct path read temp", "User I/O"),
            ("log file sync", "Commit"),
            ("free buffer waits", "Configurat"),
            ("log buffer space", "Configurat"),
        ];
        let mut events = Vec::new();
        for ((name, class), (share, ms)) in names.into_iter().zip(shares.iter().zip(&each)) {
            let waits = (db_time * share * 1000.0 / ms).floor().max(1.0);
            events.push((name, waits as u64, waits * ms / 1000.0, *ms, class));
        }
        let io: f64 = events.iter().map(|(_, _, seconds, ..)| seconds).sum();
        prop_assume!(io < 0.095 * db_time);
        let locked = db_time * (1.0 - cpu) - io;
        prop_assume!(locked > 0.0);
        events.push(("enq: TX - row lock contention", 1 + locked as u64, locked, 1000.0, "Applicatio"));
        let found = findings(&report(db_time, db_time * cpu, &events));
        prop_assert!(!rules(&found).iter().any(|rule| OF_STORAGE.contains(rule)), "{:?}", found);
    }
}

#[test]
fn slow_reads_are_named_with_what_they_could_save_and_their_study() {
    let slow = report(
        3_600.0,
        900.0,
        &[
            ("db file sequential read", 100_000, 2_500.0, 25.0, "User I/O"),
            ("log file sync", 10_000, 100.0, 10.0, "Commit"),
        ],
    );
    let found = findings(&slow);
    let read = found.iter().find(|finding| finding.rule == "R1").unwrap_or_else(|| panic!("{found:?}"));
    assert!(read.saves_ns.is_some_and(|ns| ns > 0 && ns <= 2_500_000_000_000), "{read:?}");
    assert!(read.evidence.contains("25.0") && !read.advice.is_empty(), "{read:?}");
    assert_eq!(read.study, "plumb study storage-slob");
    let saved: Vec<u64> = found.iter().filter_map(|finding| finding.saves_ns).collect();
    assert!(saved.is_sorted_by(|one, two| one >= two), "{saved:?}");
}

#[test]
fn a_restart_within_the_interval_and_a_long_interval_are_doubts() {
    let restarted = report(3_600.0, 3_000.0, &[]).replace("02-May-24 13:50", "03-May-24 09:40");
    let doubts = |text: &str| {
        let found = findings(text);
        found.iter().find(|finding| finding.rule == "G2").map(|finding| finding.evidence.clone())
    };
    assert!(doubts(&restarted).is_some_and(|doubt| doubt.contains("restarted")));
    assert_eq!(doubts(&report(3_600.0, 3_000.0, &[])), None);
    let long = report(3_600.0, 3_000.0, &[]).replace("60.00 (mins)", "600.00 (mins)");
    assert!(doubts(&long).is_some_and(|doubt| doubt.contains("minutes long")));
}

#[test]
fn a_tool_without_db_time_has_no_findings() {
    for text in [fixture!("iostat12.txt"), fixture!("pgbench15.txt"), fixture!("pg_profile.html")] {
        assert!(findings(text).is_empty());
    }
}

#[test]
fn the_processors_are_named_where_they_are_the_largest_part() {
    let busy =
        only(&report(7200.0, 4800.0, &[("db file sequential read", 1_000_000, 2300.0, 2.3, "User I/O")]));
    let found = busy.record.expect("an interval").findings;
    let cpu = found.iter().find(|finding| finding.rule == "R24").expect("CPU");
    assert_eq!(cpu.what, "CPU is 67% of DB time");
    assert!(cpu.evidence.contains("User I/O, is 32%"), "{}", cpu.evidence);
    let waiting =
        only(&report(7200.0, 2300.0, &[("db file sequential read", 1_000_000, 4800.0, 4.8, "User I/O")]));
    assert!(waiting.record.expect("an interval").findings.iter().all(|finding| finding.rule != "R24"));
}

#[test]
fn short_waits_have_the_time_of_their_printed_share() {
    let text = "\
Top 10 Foreground Events by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                            Tota    Wait   % DB
Event                                 Waits Time Avg(ms)   time Wait Class
------------------------------ ------------ ---- ------- ------ ----------
DB CPU                                       1.1           58.0
name-service call wait                   12   .6      49   31.1 Other
IPC send completion sync                121   .1       1    4.5 Other
enq: IV -  contention                    31    0       1    1.9 Other
enq: PS - contention                     34    0       1    1.7 Other
";
    let undated = only(text).undated.expect("no interval");
    let found = undated.findings.iter().find(|finding| finding.rule == "G1").expect("the class");
    assert!(found.evidence.ends_with("Other is 39%"), "31.1 + 4.5 + 1.9 + 1.7: {}", found.evidence);
}
