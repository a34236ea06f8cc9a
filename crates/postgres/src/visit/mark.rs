//! Names of databases that studies make: origin and process are part of the name.
//!
//! ```text
//! plumb_0f3a9c27d51b_77aa01c4_4711_812345_0
//!       machine      boot     process, start, count
//! ```
//!
//! A comment would come a moment after the database, and a kill between the two would leave a
//! database without a maker.
//!
//! - A database is left if this machine made it in another boot, or by a process that has ended.
//! - `machine` is the hash of machine-id, host and process namespace. Containers have namespaces
//!   of their own, so that one takes nothing for its own that another has made.
//! - Without a machine-id another boot proves nothing, and the database stays.

use plumb_host::kernel::{boot_id, start_time};
use plumb_host::proc_files;
use plumb_study::machine;
use plumb_units::hex;
use sha2::{Digest, Sha256};
use std::fs;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Start of the names of databases that studies make.
pub const PREFIX: &str = "plumb_";
/// Letters of the hashes of machine and boot.
const MACHINE: usize = 12;
const BOOT: usize = 8;

/// Maker of a database, as its name says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mark {
    machine: String,
    boot: String,
    process: u32,
    start: u64,
}

/// Returns a name for a database of this process.
pub(super) fn new_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let Mark { machine, boot, process, start } = own();
    format!("{PREFIX}{machine}_{boot}_{process}_{start}_{}", COUNT.fetch_add(1, Relaxed) % 1000)
}

/// True if a database was made by a process that has ended, as this machine knows.
pub(super) fn is_left(name: &str) -> bool {
    let Some(made) = read(name) else { return false };
    let own = own();
    made.machine == own.machine
        && match made.boot == own.boot {
            true => start_time(made.process) != Some(made.start),
            false => !machine_id().is_empty(),
        }
}

/// True for a name that [`new_name`] makes.
pub(super) fn is_name(name: &str) -> bool {
    read(name).is_some()
}

/// Returns host, boot and process namespace: a host's name alone is no proof, because two machines
/// or containers may share it.
pub(super) fn origin() -> String {
    format!("{}, boot {}, {}", machine::describe().name, boot_id(), space())
}

fn space() -> String {
    proc_files::link("self", "ns/pid").unwrap_or_default().display().to_string()
}

fn machine_id() -> String {
    let files = ["/etc/machine-id", "/var/lib/dbus/machine-id"];
    let found = files.into_iter().find_map(|file| fs::read_to_string(file).ok());
    found.unwrap_or_default().trim().to_string()
}

fn own() -> Mark {
    let hash = |text: String, letters: usize| hex(&Sha256::digest(text.as_bytes()))[..letters].to_string();
    let process = std::process::id();
    Mark {
        machine: hash(format!("{} {} {}", machine_id(), machine::describe().name, space()), MACHINE),
        boot: hash(boot_id(), BOOT),
        process,
        start: start_time(process).unwrap_or_default(),
    }
}

fn read(name: &str) -> Option<Mark> {
    let parts: Vec<&str> = name.strip_prefix(PREFIX)?.split('_').collect();
    let [machine, boot, process, start, count] = parts[..] else { return None };
    let is_hash = |text: &str, letters: usize| {
        text.len() == letters
            && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let is_whole = is_hash(machine, MACHINE) && is_hash(boot, BOOT) && count.parse::<u32>().is_ok();
    let (process, start) = (process.parse().ok()?, start.parse().ok()?);
    is_whole.then(|| Mark { machine: machine.to_string(), boot: boot.to_string(), process, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_database_of_a_dead_process_of_this_machine_is_left() {
        let name = new_name();
        assert!(name.len() <= 63 && is_name(&name) && name != new_name(), "{name}");
        assert!(!is_left(&name), "this process is alive");
        let Mark { machine, boot, process, start } = own();
        let of = |machine: &str, boot: &str, process: u32, start: u64| {
            format!("{PREFIX}{machine}_{boot}_{process}_{start}_0")
        };
        // Above the largest number that the kernel gives.
        assert!(is_left(&of(&machine, &boot, u32::MAX, start)));
        assert!(is_left(&of(&machine, &boot, process, start + 1)), "its number is another process's now");
        assert_eq!(
            is_left(&of(&machine, "00000000", process, start)),
            !machine_id().is_empty(),
            "another boot"
        );
        let other = "0".repeat(MACHINE);
        assert!(!is_left(&of(&other, &boot, u32::MAX, start)), "another machine");
        for name in ["plumb_", "plumb_mine", "plumb_a_b_1_2_3", "other"] {
            assert!(!is_name(name) && !is_left(name), "{name}");
        }
        assert!(of(&machine, &boot, u32::MAX, u64::MAX).len() <= 61, "a server keeps 63 bytes");
    }
}
