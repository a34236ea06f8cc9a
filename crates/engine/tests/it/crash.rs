//! Power losses: every acknowledged commit survives, no other change does, and the indexes agree.

use plumb_crash::faults::{FAULTS, Fault, FaultTally, faulty};
use plumb_crash::operation::{OPERATIONS, Operation, steps};
use plumb_crash::{Base, LOG_KINDS, LogKind, Tally, chain, every_request, kill, pair};
use std::path::Path;
use std::process::Command;

/// Chains of cycles in every run of the tests; `cargo xtask bench crash` continues from there.
const SEEDS: u64 = 100;

#[test]
fn what_was_acknowledged_is_there_wherever_the_power_goes() {
    let bases = Base::of_each_kind();
    let mut tally = Tally::default();
    // Two further seeds have failed before: a file begun and left by an opening, and a block that
    // recovery redid for the segment before.
    for seed in (0..SEEDS).chain([1_001_620, 1_003_428]) {
        chain(&bases[seed as usize % bases.len()], seed, 8, &mut tally);
    }
    assert!(tally.crashes * 2 > tally.cycles, "{tally:?}");
    assert!(tally.recoveries_cut_short > 0, "{tally:?}");
}

#[test]
fn one_seed_is_one_order_of_requests() {
    let hash = |seed: u64, log: LogKind| {
        let mut tally = Tally::default();
        chain(&Base::new(log), seed, 4, &mut tally);
        tally.hash
    };
    for log in LOG_KINDS {
        assert_eq!(hash(5, log), hash(5, log), "{log:?}");
        assert_ne!(hash(5, log), hash(6, log), "{log:?}");
    }
}

#[test]
fn short_runs_survive_a_crash_at_each_of_their_requests() {
    let bases = Base::of_each_kind();
    let crashes: u64 =
        (0..8).map(|seed| every_request(&bases[seed as usize % bases.len()], seed, &steps(15), 2)).sum();
    assert!(crashes > 1000, "{crashes}");
}

/// Tests each definition after the one that must precede it, and a log switch; `cargo xtask bench
/// crash --pairs` tests all pairs.
#[test]
fn definitions_survive_a_crash_at_each_of_their_requests() {
    let (empty, filled) = (Base::new(LogKind::Plain), Base::filled(LogKind::Plain));
    let pairs = [
        (Operation::CreateTable, Operation::FillTable),
        (Operation::CreateTable, Operation::DropTable),
        (Operation::CreateIndex, Operation::Split),
        (Operation::CreateIndex, Operation::DropIndex),
        (Operation::Load, Operation::DropLoaded),
        (Operation::Load, Operation::CopyRows),
        (Operation::CopyRows, Operation::CopyRows),
        (Operation::SwitchLogFile, Operation::Split),
    ];
    let of_filled = [
        (Operation::DropTable, Operation::DropLoaded),
        (Operation::DropIndex, Operation::Update),
        (Operation::Delete, Operation::FillTable),
        (Operation::Resize, Operation::Delete),
    ];
    for (base, pairs) in [(&empty, &pairs[..]), (&filled, &of_filled)] {
        for (first, second) in pairs {
            let crashes = pair(base, *first, *second);
            assert!(crashes > 100, "{first:?} {second:?}: {crashes}");
        }
    }
    let pairs = || pairs.iter().chain(&of_filled);
    assert!(pairs().all(|(first, second)| OPERATIONS.contains(first) && OPERATIONS.contains(second)));
}

/// A row in pieces is inserted and grows, shrinks, is deleted, or rolled back; in blocks
/// of 2K and of 4K.
#[test]
fn rows_in_pieces_survive_a_crash_at_each_request() {
    for log in [LogKind::Plain, LogKind::Sizes] {
        let base = Base::new(log);
        for second in [Operation::Resize, Operation::Update, Operation::Delete, Operation::RollBack] {
            let crashes = pair(&base, Operation::InsertLong, second);
            assert!(crashes > 50, "{log:?} {second:?}: {crashes}");
        }
        let crashes = pair(&base, Operation::Insert, Operation::Resize);
        assert!(crashes > 50, "{log:?}: {crashes}");
    }
}

/// Seeds of each fault in every run of the tests; `cargo xtask bench
/// crash --faults` continues from there.
const FAULT_SEEDS: u64 = 40;

#[test]
fn a_disk_that_fails_is_named_or_does_no_harm() {
    let bases = Base::of_each_kind();
    for fault in FAULTS {
        let mut tally = FaultTally::default();
        for seed in 0..FAULT_SEEDS {
            faulty(&bases[seed as usize % bases.len()], seed, fault, &mut tally);
        }
        let is_noticed = match fault {
            Fault::Flip | Fault::Lose | Fault::Misdirect => tally.named,
            _ => tally.ended,
        };
        assert!(is_noticed > 0, "{fault:?}: {tally:?}");
    }
}

/// Tests seeds that have failed before.
#[test]
fn disks_that_failed_and_were_not_survived() {
    let archived = Base::new(LogKind::Archived);
    for (seed, fault) in [
        // The control file without an index was in place and not durable, and the
        // index's space was used again.
        (3_000_193, Fault::Sync),
        // Recovery read back a block that it had written, and the write had been lost.
        (4_018_297, Fault::Lose),
        // The end of the log was damaged, and a table loaded after it existed.
        (4_005_981, Fault::Flip),
        // A leaf whose last write was lost pointed back to a leaf before it.
        (5_007_769, Fault::Lose),
    ] {
        faulty(&archived, seed, fault, &mut FaultTally::default());
    }
    // The undo of a rolled-back change was in a lost batch, and other records
    // were found in its place.
    faulty(&Base::new(LogKind::Plain), 4_000_420, Fault::Lose, &mut FaultTally::default());
    // The record of the last checkpoint was lost, and with it the list of active transactions. So
    // the change of one looked committed.
    faulty(&Base::new(LogKind::Sizes), 10_000_079, Fault::Lose, &mut FaultTally::default());
    // Creating a table failed because of a read error, but the table existed.
    faulty(&Base::new(LogKind::Mirrored), 4_002_894, Fault::Read, &mut FaultTally::default());
}

/// Environment variable that gives a child of the next test its database.
const CHILD: &str = "PLUMB_TEST_KILLED_CHILD";

#[test]
fn a_killed_process_has_lost_no_reported_commit() {
    if let Some(home) = std::env::var_os(CHILD) {
        kill::child(Path::new(&home), kill::settings(&[]), &kill::to_stdout).expect("killed before it ends");
        return;
    }
    for members in kill::MEMBERS {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = directory.path().join("db");
        std::fs::create_dir(&home).expect("made");
        kill::create(&home, kill::settings(&[("log_file_members", members)])).expect("a database");
        let make = || {
            let mut child = Command::new(std::env::current_exe().expect("this program"));
            let name = "crash::a_killed_process_has_lost_no_reported_commit";
            child.args(["--exact", name, "--nocapture"]).env(CHILD, &home);
            child
        };
        let tally = kill::cycles(&home, 1, 8, make);
        assert_eq!(tally.cycles, 8);
        assert!(tally.commits > 0, "{tally:?}");
    }
}
