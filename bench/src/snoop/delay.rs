//! A disk that waits a known time before each answer: the wait is found, and where.
//!
//! ```text
//! dd ─ pread ─> /dev/loopN ─ request ─> kernel thread ─ read ─> file system in this process: waits
//!      call         disk: issue ──────────────────────────────> completion
//! ```
//!
//! Reads of the loop device have the wait at the disk, within the call. Reads of the file itself
//! have it in the call alone, because no disk is below it.

use super::{calls, mean_us, traced_command};
use crate::power::place::Loop;
use crate::slow_disk::{SlowDisk, SlowSpec, WaitsAt};
use plumb_units::Nanos;
use std::path::Path;

const DELAYS_MS: [u64; 5] = [0, 1, 2, 5, 20];
const FILE_BYTES: u64 = 64 << 20;

pub(super) fn run(room: &Path, requests: u64) -> anyhow::Result<()> {
    println!("A disk with a delay, {requests} direct reads of 4 KiB each\n");
    println!(
        "| asked for | read of | calls | mean of a call | at the disk, a call | waited | found | error |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let place = SlowDisk::mount(room, &SlowSpec { name: "slow", bytes: FILE_BYTES, waits: WaitsAt::Reads })?;
    let device = Loop::attach(&place.file())?;
    let file = place.file().display().to_string();
    for of in [device.device.as_str(), &file] {
        let mut undelayed = 0.0;
        for delay in DELAYS_MS {
            place.wait.start(Nanos(delay * 1_000_000));
            let [input, count] = [format!("if={of}"), format!("count={requests}")];
            let words = ["dd", &input, "of=/dev/null", "bs=4k", &count, "iflag=direct", "status=none"];
            let snoop = traced_command(&words);
            let waited = place.wait.end().mean_us;
            let snoop = snoop?;
            let found = calls(&snoop, |row| row.file == of && row.operation == "read");
            let [call, disk] = [found.time_ns, found.disk_time_ns].map(|time| mean_us(time, found.calls));
            let seen = if found.disk_requests > 0 { disk } else { call };
            if delay == 0 {
                undelayed = seen;
            }
            let more = seen - undelayed;
            let error = match delay {
                0 => String::new(),
                _ => format!("{:+.1}%", (more / waited - 1.0) * 100.0),
            };
            println!(
                "| {} | {} | {} | {call:.0} us | {disk:.0} us | {waited:.0} us | {more:.0} us | {error} |",
                Nanos(delay * 1_000_000),
                if found.disk_requests > 0 { "the device" } else { "the file" },
                found.calls,
            );
        }
    }
    Ok(())
}
