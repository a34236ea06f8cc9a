//! The programs to trace.

use crate::error::SnoopError;
use std::process::Command;
use std::{fmt, fs};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnoopTarget {
    /// One process with its threads, and processes that it makes.
    Pid(u32),
    /// Every process with this in its name or title, in any case.
    Name(String),
    /// A command to start, as words.
    Command(Vec<String>),
}

impl fmt::Display for SnoopTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnoopTarget::Pid(pid) => write!(f, "pid {pid}"),
            SnoopTarget::Name(name) => write!(f, "name {name}"),
            SnoopTarget::Command(words) => write!(f, "command {}", words.first().map_or("", String::as_str)),
        }
    }
}

/// Returns the command of these words. Fails if there is none.
pub fn command(words: &[String]) -> Result<Command, SnoopError> {
    let (program, arguments) =
        words.split_first().ok_or_else(|| not_started(words, std::io::ErrorKind::InvalidInput.into()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Returns the error for a command that cannot be started.
pub fn not_started(words: &[String], source: std::io::Error) -> SnoopError {
    SnoopError::NotStarted { command: words.first().cloned().unwrap_or_default(), source }
}

/// Returns the processes of a target; none for a command.
/// Fails if there is none.
pub fn find(target: &SnoopTarget) -> Result<Vec<u32>, SnoopError> {
    match target {
        SnoopTarget::Command(_) => Ok(Vec::new()),
        SnoopTarget::Pid(pid) => match fs::read_dir(format!("/proc/{pid}/task")) {
            Ok(_) => Ok(vec![*pid]),
            Err(_) => Err(SnoopError::NoProcess { pid: *pid, namespace: namespace() }),
        },
        SnoopTarget::Name(name) => {
            let found = named(name);
            if found.is_empty() { Err(SnoopError::NoName { name: name.clone() }) } else { Ok(found) }
        }
    }
}

/// Returns a hint if this process is in a container, whose numbers are others.
fn namespace() -> &'static str {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let numbers = plumb_host::kernel::status_field(&status, "NSpid").unwrap_or_default();
    match numbers.split_ascii_whitespace().count() {
        0 | 1 => " here (numbers are those of this machine, not of a container)",
        _ => " in this container (numbers of the machine differ)",
    }
}

fn named(name: &str) -> Vec<u32> {
    let wanted = name.to_lowercase();
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut found: Vec<u32> = pids.filter(|pid| *pid != own && has_name(*pid, &wanted)).collect();
    found.sort_unstable();
    found
}

/// Servers write their role into their title, the first word of the command line.
fn has_name(pid: u32, wanted: &str) -> bool {
    let comm = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let title = line.split(|byte| *byte == 0).next().unwrap_or_default();
    // A kernel thread has no command line and no calls.
    !line.is_empty()
        && (comm.to_lowercase().contains(wanted)
            || String::from_utf8_lossy(title).to_lowercase().contains(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_that_do_not_exist_are_refused_with_the_way_to_find_one() {
        let refused = |target: SnoopTarget| find(&target).expect_err("none").to_string();
        let pid = refused(SnoopTarget::Pid(4_194_304));
        assert!(pid.starts_with("process 4194304 does not exist"), "{pid}");
        let name = refused(SnoopTarget::Name("no such program".to_string()));
        assert!(name.starts_with("no process has \"no such program\""), "{name}");
        assert_eq!(find(&SnoopTarget::Pid(std::process::id())).expect("this one"), [std::process::id()]);
    }

    #[test]
    fn a_process_is_found_by_its_title_and_never_itself() {
        let _turn = crate::turn();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
        // Its title is readable only some time after its start.
        let found = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            find(&SnoopTarget::Name("SLEEP".to_string())).ok()
        });
        let found = found.expect("it sleeps");
        child.kill().expect("it is there");
        let _ = child.wait();
        assert!(found.contains(&child.id()) && !found.contains(&std::process::id()), "{found:?}");
    }
}
