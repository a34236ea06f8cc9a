//! Survivors of a loss of power, and the hash of a trace.

use super::*;
use crate::sim::MemoryDisk;
use crate::{DirectIo, Disk, Durability, OpenMode};
use std::sync::Arc;

const HOME: &str = "/d";

fn written(disk: &Arc<MemoryDisk>) {
    let disk = Disk::Memory(Arc::clone(disk));
    let file = disk.open(Path::new("/d/f"), OpenMode::Create, DirectIo::Off).expect("a new file");
    file.write_once(&[1; 2048], 0).expect("written");
    file.sync_data().expect("synced");
    disk.sync_directory(Path::new(HOME)).expect("synced");
    file.write_once(&[2; 2048], 0).expect("written");
    file.write_once(&[3; 512], 4096).expect("written");
}

fn found(disk: &Arc<MemoryDisk>) -> Vec<u8> {
    let found = Disk::Memory(Arc::clone(disk)).read_small(Path::new("/d/f")).expect("readable");
    let bytes = found.expect("there");
    bytes.chunks(SECTOR).map(|sector| sector[0]).collect()
}

#[test]
fn what_was_synced_stays_and_of_the_rest_what_the_loss_leaves() {
    let check = |survivors: Survivors, expect: &[u8]| {
        let disk = MemoryDisk::with_power(1);
        written(&disk);
        assert_eq!(found(&disk), [2, 2, 2, 2, 0, 0, 0, 0, 3], "seen by the process");
        assert_eq!(disk.unsynced(), 2);
        assert_eq!(found(&disk.restart(survivors)), expect, "{survivors:?}");
    };
    check(Survivors::None, &[1, 1, 1, 1]);
    check(Survivors::All, &[2, 2, 2, 2, 0, 0, 0, 0, 3]);
    check(Survivors::AllBut(0), &[1, 1, 1, 1, 0, 0, 0, 0, 3]);
    check(Survivors::Only(0), &[2, 2, 2, 2]);
    check(Survivors::AllTorn(0), &[2, 1, 2, 1, 0, 0, 0, 0, 3]);
}

#[test]
fn coins_tear_writes_in_every_way() {
    let disk = MemoryDisk::with_power(1);
    written(&disk);
    let mut ways = std::collections::BTreeSet::new();
    for seed in 0..400 {
        let found = found(&disk.restart(Survivors::Random(seed)));
        assert!(found[..4].iter().all(|byte| matches!(byte, 1 | 2)));
        ways.insert(found);
    }
    assert_eq!(ways.len(), 32, "four sectors of one write, one of another");
}

/// As O_DSYNC works on Linux: the kernel writes and waits for the range of the write only.
#[test]
fn a_write_that_is_durable_by_itself_takes_no_other_bytes_of_its_file_along() {
    let disk = MemoryDisk::with_power(1);
    written(&disk);
    let file = Disk::Memory(Arc::clone(&disk))
        .open_durable(Path::new("/d/f"), OpenMode::Write, DirectIo::Off, Durability::Data)
        .expect("there");
    file.write_once(&[4; 1024], 512).expect("written");
    assert_eq!(found(&disk), [2, 4, 4, 2, 0, 0, 0, 0, 3], "seen by the process");
    assert_eq!(found(&disk.restart(Survivors::None)), [1, 4, 4, 1], "the rest was never synced");
    assert_eq!(found(&disk.restart(Survivors::All)), [2, 4, 4, 2, 0, 0, 0, 0, 3]);
    file.sync_data().expect("synced");
    assert_eq!(found(&disk.restart(Survivors::None)), [2, 4, 4, 2, 0, 0, 0, 0, 3]);
}

#[test]
fn the_next_process_sees_what_a_killed_one_wrote_and_a_loss_of_power_still_takes_it() {
    let disk = MemoryDisk::with_power(1);
    written(&disk);
    let next = disk.after_kill();
    assert_eq!((found(&next), next.unsynced()), (found(&disk), 2));
    assert_eq!(found(&next.restart(Survivors::None)), [1, 1, 1, 1]);
}

#[test]
fn a_name_is_durable_with_its_directory() {
    let path = Path::new("/d/small");
    let disk = MemoryDisk::with_power(1);
    let on = Disk::Memory(Arc::clone(&disk));
    on.replace(path, b"one").expect("replaced");
    let file = on.open(Path::new("/d/other"), OpenMode::Create, DirectIo::Off).expect("a new file");
    file.write_once(&[1; 512], 0).expect("written");
    file.sync_data().expect("synced");
    let restarted = Disk::Memory(disk.restart(Survivors::None));
    assert_eq!(restarted.read_small(path).expect("readable"), Some(b"one".to_vec()));
    assert!(!restarted.exists(Path::new("/d/other")), "its directory was not synced");
    // A replacement leaves the old or the new file, at whatever request the power goes.
    let requests = {
        let before = disk.requests();
        on.replace(path, b"two!").expect("replaced");
        disk.requests() - before
    };
    for at in 0..requests {
        for survivors in [Survivors::None, Survivors::All, Survivors::Random(at)] {
            let disk = disk.restart(Survivors::All);
            disk.lose_power_at(Some(at));
            Disk::Memory(Arc::clone(&disk)).replace(path, b"three").expect_err("the power went");
            let found = Disk::Memory(disk.restart(survivors)).read_small(path).expect("readable");
            let found = found.expect("one of the two is there");
            assert!(found == b"two!" || found == b"three", "at {at}, {survivors:?}: {found:?}");
        }
    }
}

#[test]
fn after_the_power_went_nothing_is_done() {
    let disk = MemoryDisk::with_power(1);
    let on = Disk::Memory(Arc::clone(&disk));
    let file = on.open(Path::new("/d/f"), OpenMode::Create, DirectIo::Off).expect("a new file");
    disk.lose_power_at(Some(disk.requests() + 1));
    file.write_once(&[1; 512], 0).expect("the last one");
    assert_eq!(file.write_once(&[2; 512], 0), Err(Errno::IO));
    assert!(file.sync_data().is_err());
    assert!(on.remove(Path::new("/d/f")).is_err());
    assert_eq!(disk.unsynced(), 2, "the name and the first write");
}

#[test]
fn equal_hashes_are_equal_requests_in_equal_order() {
    let hash = |order: &[u64]| {
        let disk = MemoryDisk::with_power(1);
        let on = Disk::Memory(Arc::clone(&disk));
        let file = on.open(Path::new("/d/f"), OpenMode::Create, DirectIo::Off).expect("a new file");
        for offset in order {
            file.write_once(&[1; 512], *offset).expect("written");
        }
        disk.trace_hash()
    };
    assert_eq!(hash(&[0, 512]), hash(&[0, 512]));
    assert_ne!(hash(&[0, 512]), hash(&[512, 0]));
    assert_ne!(hash(&[0, 512]), hash(&[0]));
}
