//! Compares the device of each file with that of the requested directory, by the kernel's device
//! numbers.

use super::super::Evidence;
use super::{Ruling, counted};
use crate::evidence::{FileEvidence, FileRole, PlaceAsked};
use crate::place::Placed;
use plumb_engine::storage::tablespace::Purpose;
use plumb_record::Receipt;
use std::collections::BTreeSet;

/// Returns a receipt for each option that placed files.
pub(super) fn places(seen: &Evidence) -> Vec<Receipt> {
    let receipt = |asked: &PlaceAsked| finding(seen, asked).receipt(&asked.word, &asked.value);
    seen.asked.placed.iter().map(receipt).collect()
}

/// Returns the option that places a file of this role.
fn word_of(role: FileRole) -> Placed {
    match role {
        FileRole::Data(Purpose::Temp) => Placed::Temp,
        FileRole::Data(Purpose::Indx) => Placed::Index,
        FileRole::Data(_) => Placed::Data,
        FileRole::Log => Placed::Log,
        FileRole::Input | FileRole::Output => Placed::Rest,
    }
}

fn finding(seen: &Evidence, asked: &PlaceAsked) -> Ruling {
    let word = Placed::of(&asked.word).unwrap_or(Placed::Rest);
    let placed_apart =
        |placed: Placed| seen.asked.placed.iter().any(|other| Placed::of(&other.word) == Some(placed));
    let is_ours = |file: &&FileEvidence| {
        let own = word_of(file.role);
        own == word || (word == Placed::Rest && !placed_apart(own))
    };
    let files: Vec<&FileEvidence> = seen.measured.files.iter().filter(is_ours).collect();
    if files.is_empty() {
        return Ruling::unknown("the run had no file of it");
    }
    let lies_there = |file: &&&FileEvidence| {
        asked.directories.iter().any(|(directory, device)| {
            file.path.starts_with(directory) && device.is_some() && *device == file.device
        })
    };
    let there = files.iter().filter(lies_there).count();
    let devices: BTreeSet<String> = files.iter().filter_map(|file| file.device.map(shown)).collect();
    let evidence = format!(
        "{there} of {} below it, on its device: {}",
        counted(files.len() as u64, "file"),
        devices.into_iter().collect::<Vec<_>>().join(", ")
    );
    Ruling::that(there == files.len(), evidence)
}

/// Formats a device number as the kernel does.
fn shown(device: u64) -> String {
    format!("{}:{}", major(device), minor(device))
}

/// Returns the driver's number in a device number of Linux.
fn major(device: u64) -> u64 {
    ((device >> 32) & 0xffff_f000) | ((device >> 8) & 0xfff)
}

/// Returns the number of the device within its driver.
fn minor(device: u64) -> u64 {
    ((device >> 12) & 0xffff_ff00) | (device & 0xff)
}
