//! Changes the files of a database and corrects their checksums.

use super::base::HOME;
use super::change;
use anyhow::{Context as _, anyhow};
use plumb_io::Disk;
use plumb_io::sim::MemoryDisk;
use plumb_proof::random::Generator;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a database block.
const BLOCK: usize = 2048;
/// Bytes of the header of a block; bytes of a log file's header with its padding.
const HEADER: usize = 24;
const LOG_HEADER: usize = 4096;
/// Bytes of a batch before its records; bytes of a record before its undo.
const BATCH: usize = 32;
const RECORD: usize = 32;
const LOG_BLOCK: usize = 512;

/// A part of a database with a checksum of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    ControlFile,
    LogControl,
    LogHeader,
    Batch,
    Record,
    FileHeader,
    Block(u8),
    /// The first bytes of a row in a block of this kind, which mark heads and pieces.
    Row(u8),
}

/// All parts, with their names.
pub(super) const PARTS: [(Part, &str); 13] = [
    (Part::ControlFile, "control.json"),
    (Part::LogControl, "redo.ctl"),
    (Part::LogHeader, "log file header"),
    (Part::Batch, "log batch"),
    (Part::Record, "log record"),
    (Part::FileHeader, "data file header"),
    (Part::Block(2), "block of a table"),
    (Part::Block(4), "index leaf"),
    (Part::Block(5), "index branch"),
    (Part::Block(6), "segment header"),
    (Part::Block(7), "block of rows"),
    (Part::Row(2), "row of a table"),
    (Part::Row(7), "row or piece"),
];

fn crc(bytes: &[u8]) -> [u8; 4] {
    crc_fast::crc32_iscsi(bytes).to_le_bytes()
}

fn half(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 2).map_or(0, |half| usize::from(u16::from_le_bytes([half[0], half[1]])))
}

fn word(bytes: &[u8], at: usize) -> usize {
    half(bytes, at) | half(bytes, at + 2) << 16
}

/// Changes a part of the database on a disk; `false` if it has no such part.
pub(super) fn change(disk: &Arc<MemoryDisk>, part: Part, random: &mut Generator) -> anyhow::Result<bool> {
    let on = Disk::Memory(Arc::clone(disk));
    let home = Path::new(HOME);
    let read = |path: &Path| on.read_small(path)?.with_context(|| format!("{} is there", path.display()));
    let named = |end: &str| -> Vec<PathBuf> {
        let mut paths = disk.paths();
        paths.retain(|path| path.to_string_lossy().ends_with(end));
        paths.sort();
        paths
    };
    let (path, bytes) = match part {
        Part::ControlFile => {
            let path = home.join("control.json");
            let text = changed_control_file(&read(&path)?, random)?;
            (path, text)
        }
        Part::LogControl => {
            let path = home.join("redo.ctl");
            let mut bytes = read(&path)?;
            let (seed, copies) = (random.bits() as usize, 1 + random.below(2));
            for copy in (0..copies).map(|copy| copy * LOG_HEADER) {
                // Either both copies get the same change, or one stays valid.
                let mut same = Generator::new(seed as u64);
                (0..=same.below(2)).for_each(|_| change::bytes(&mut same, &mut bytes, copy + 4..copy + 96));
                let sum = crc(&bytes[copy + 4..copy + 128]);
                bytes[copy..copy + 4].copy_from_slice(&sum);
            }
            (path, bytes)
        }
        Part::LogHeader | Part::Batch | Part::Record => {
            let paths = named(".log");
            let path = paths[random.below(paths.len())].clone();
            let mut bytes = read(&path)?;
            if !change_log(&mut bytes, part, random) {
                return Ok(false);
            }
            (path, bytes)
        }
        Part::FileHeader | Part::Block(_) | Part::Row(_) => {
            let found = blocks(&named(".dbf"), part, read)?;
            if found.is_empty() {
                return Ok(false);
            }
            let (path, number) = found[random.below(found.len())].clone();
            let mut bytes = read(&path)?;
            change_block(&mut bytes[number * BLOCK..(number + 1) * BLOCK], part, random);
            (path, bytes)
        }
    };
    on.replace(&path, &bytes).map_err(|error| anyhow!("{error}"))?;
    Ok(true)
}

/// Returns a control file with one or two values changed.
fn changed_control_file(bytes: &[u8], random: &mut Generator) -> anyhow::Result<Vec<u8>> {
    let text = std::str::from_utf8(bytes)?;
    let (_, document) = text.split_once('\n').context("a checksum and a document")?;
    let mut document: Value = serde_json::from_str(document)?;
    (0..=random.below(2)).for_each(|_| change::json(random, &mut document));
    let document = document.to_string();
    let sum = crc_fast::crc32_iscsi(document.as_bytes());
    Ok(format!("{sum:08x}\n{document}").into_bytes())
}

/// Returns the blocks of a part's kind: file and number.
fn blocks(
    paths: &[PathBuf],
    part: Part,
    read: impl Fn(&Path) -> anyhow::Result<Vec<u8>>,
) -> anyhow::Result<Vec<(PathBuf, usize)>> {
    let mut found = Vec::new();
    for path in paths {
        for (number, block) in read(path)?.chunks_exact(BLOCK).enumerate() {
            let is_meant = match part {
                Part::Block(kind) | Part::Row(kind) => number > 0 && block[4] == kind,
                _ => number == 0,
            };
            if is_meant {
                found.push((path.clone(), number));
            }
        }
    }
    Ok(found)
}

/// Changes one to three numbers of a block: in its header, in its slots, or anywhere.
fn change_block(block: &mut [u8], part: Part, random: &mut Generator) {
    let entries = half(block, 12);
    let slot_bytes = if block[4] == 7 { 4 } else { 2 };
    let slots = block.len() - (slot_bytes * entries).clamp(slot_bytes, block.len() / 2)..block.len();
    for _ in 0..=random.below(3) {
        let range = match (part, random.below(4)) {
            (Part::FileHeader, _) => 4..200,
            (Part::Row(_), 0..=2) if entries > 0 => {
                let slot = block.len() - slot_bytes * (1 + random.below(entries));
                let row = half(block, slot);
                row..row + 32
            }
            (_, 0) => 4..HEADER,
            (_, 1) => slots.clone(),
            (_, 2) => HEADER..HEADER + 64,
            _ => HEADER..block.len(),
        };
        change::bytes(random, block, range);
    }
    let sum = crc(&block[4..]);
    block[..4].copy_from_slice(&sum);
}

/// Changes a part of a log file; `false` if it has none.
fn change_log(bytes: &mut [u8], part: Part, random: &mut Generator) -> bool {
    if part == Part::LogHeader {
        (0..=random.below(2)).for_each(|_| change::bytes(random, bytes, 4..64));
        let sum = crc(&bytes[4..64]);
        bytes[..4].copy_from_slice(&sum);
        return true;
    }
    let batches = batches(bytes);
    if batches.is_empty() {
        return false;
    }
    let (at, length) = batches[random.below(batches.len())];
    let records = records(&bytes[at..at + length]);
    for _ in 0..=random.below(2) {
        match part {
            Part::Record if !records.is_empty() => {
                let (begin, length) = records[random.below(records.len())];
                let end = if random.below(2) == 0 { RECORD + 40 } else { length };
                change::bytes(random, bytes, at + begin..at + begin + end.min(length));
            }
            _ => change::bytes(random, bytes, at + 4..at + BATCH + RECORD),
        }
    }
    // The change may have replaced the length.
    let length = word(bytes, at + 4).clamp(BATCH, bytes.len() - at);
    let sum = crc(&bytes[at + 4..at + length]);
    bytes[at..at + 4].copy_from_slice(&sum);
    true
}

/// Returns the batches of a log file: offset and length.
fn batches(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = LOG_HEADER;
    while at + BATCH < bytes.len() {
        let length = word(bytes, at + 4);
        if length <= BATCH
            || at + length > bytes.len()
            || bytes[at..at + 4] != crc(&bytes[at + 4..at + length])
        {
            break;
        }
        found.push((at, length));
        at += length.next_multiple_of(LOG_BLOCK);
    }
    found
}

/// Returns the records of a batch: offset and length.
fn records(batch: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = BATCH;
    while at + RECORD <= batch.len() {
        let length = word(batch, at);
        if length < RECORD || at + length > batch.len() {
            break;
        }
        found.push((at, length));
        at += length;
    }
    found
}
