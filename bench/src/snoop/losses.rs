//! A load of a fixed rate: calls that are found, events that the kernel lost, memory.
//!
//! The load makes a known number of calls. Each found call is two events; each call that is not
//! found has lost one or both of them. So the number of lost events is known to lie between the
//! number of missing calls and twice that number.

use super::{calls, load, traced_command};
use anyhow::ensure;
use plumb_host::kernel::status_field;
use plumb_record::Snoop;
use plumb_units::{Bytes, RowCount};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Interval of the readings of memory.
const READING: Duration = Duration::from_millis(500);

pub(super) fn run(room: &Path, rate: u64, seconds: u64) -> anyhow::Result<()> {
    let requests = rate * seconds;
    println!("{} requests a second for {seconds} s, by pread of 4 KiB in the page cache", RowCount(rate));
    let file = load::make_file(room)?;
    let result = room.join("result");
    let program = std::env::current_exe()?.display().to_string();
    let [file_text, result_text] = [&file, &result].map(|path| path.display().to_string());
    let [rate_text, requests_text] = [rate, requests].map(|number| number.to_string());
    let memory = Memory::watch();
    let snoop = traced_command(&[
        &program,
        "snoop",
        "--load-file",
        &file_text,
        "--load-result",
        &result_text,
        "--load-rate",
        &rate_text,
        "--load-requests",
        &requests_text,
    ])?;
    let memory = memory.end();
    let said: Value = serde_json::from_str(&std::fs::read_to_string(&result)?)?;
    let made = requests + load::FILE_BLOCKS;
    report(&snoop, &file_text, made)?;
    println!("| requests a second, reached | {:.0} |", said["rate"].as_f64().unwrap_or_default());
    let shown: Vec<String> = memory.iter().map(|bytes| Bytes(*bytes).to_string()).collect();
    if let (Some(first), Some(last)) = (shown.get(1), shown.last()) {
        println!("| memory of the tracing process after 1 s, at the end | {first}, {last} |");
    }
    Ok(())
}

/// Prints the counts, and checks that they add up.
fn report(snoop: &Snoop, file: &str, made: u64) -> anyhow::Result<()> {
    let found = calls(snoop, |row| row.file == file && row.operation == "pread");
    println!("\n| figure | |\n|---|---|");
    for buffer in &snoop.buffers {
        let (name, events, lost) = (&buffer.name, RowCount(buffer.events), RowCount(buffer.lost));
        println!("| events of {name}: happened, lost | {events}, {lost} |");
    }
    let missing = made.checked_sub(found.calls);
    let lost = snoop.buffers.iter().find(|buffer| buffer.name == "calls").map_or(0, |buffer| buffer.lost);
    let missing = missing.ok_or_else(|| anyhow::anyhow!("{} calls of {made} were found", found.calls))?;
    println!(
        "| calls: made, found, missing | {}, {}, {} |",
        RowCount(made),
        RowCount(found.calls),
        RowCount(missing)
    );
    ensure!(
        missing <= lost,
        "{missing} calls are missing and {lost} events lost: each missing call must have lost one"
    );
    ensure!(found.bytes == found.calls * load::BLOCK_BYTES as u64, "{} bytes", found.bytes);
    Ok(())
}

/// Readings of the resident memory of this process.
struct Memory {
    ends: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<u64>>,
}

impl Memory {
    fn watch() -> Memory {
        let ends = Arc::new(AtomicBool::new(false));
        let own = Arc::clone(&ends);
        let read = move || {
            let mut readings = Vec::new();
            while !own.load(Relaxed) {
                std::thread::sleep(READING);
                readings.extend(resident());
            }
            readings
        };
        Memory { ends, thread: std::thread::spawn(read) }
    }

    fn end(self) -> Vec<u64> {
        self.ends.store(true, Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kilobytes = status_field(&status, "VmRSS")?.split(' ').next()?.parse::<u64>().ok()?;
    Some(kilobytes * Bytes::K)
}
