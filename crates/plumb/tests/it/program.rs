//! Running the program.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Result of a run of the program.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; none when a signal killed it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Returns a command that runs the program in a directory.
pub fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plumb"));
    // Without a limit of columns, so that output does not depend on the terminal.
    // Journals of a developer's own studies are in no list.
    command.env("XDG_STATE_HOME", directory);
    command.current_dir(directory).stdin(Stdio::null()).env_remove("COLUMNS");
    command
}

/// Runs the program to its end.
pub fn plumb<A: AsRef<OsStr>>(directory: &Path, arguments: impl IntoIterator<Item = A>) -> Ended {
    ended(command(directory).args(arguments).output().expect("the program starts"))
}

fn ended(Output { status, stdout, stderr }: Output) -> Ended {
    Ended {
        code: status.code(),
        stdout: String::from_utf8(stdout).expect("the program prints UTF-8"),
        stderr: String::from_utf8(stderr).expect("the program prints UTF-8"),
    }
}

/// Runs the program, which must succeed; returns its output.
pub fn fine<A: AsRef<OsStr>>(directory: &Path, arguments: impl IntoIterator<Item = A>) -> String {
    let ended = plumb(directory, arguments);
    assert_eq!(ended.code, Some(0), "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
    ended.stdout
}

/// Runs the program, which must fail with one line; returns the exit code and the line.
pub fn refused<A: AsRef<OsStr>>(directory: &Path, arguments: impl IntoIterator<Item = A>) -> (i32, String) {
    let ended = plumb(directory, arguments);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "stdout:\n{}\nstderr:\n{}", ended.stdout, ended.stderr);
    let line = lines[0].strip_prefix("plumb: ").expect("errors begin with the program's name");
    (ended.code.expect("the program exits by itself"), line.to_string())
}

/// Returns the names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Runs it as a user without write permission anywhere; `None`, with a message,
/// where that cannot be arranged.
pub fn as_nobody(directory: &Path, arguments: &[&str]) -> Option<Ended> {
    let program = env!("CARGO_BIN_EXE_plumb");
    // Without root the test already runs as such a user. With root, the other user must be able
    // to start the program.
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--"];
    let may = |what: &[&str]| {
        let tried = Command::new("setpriv").args(nobody).args(what).stdin(Stdio::null()).output();
        tried.is_ok_and(|output| output.status.success())
    };
    if !may(&[program, "--version"]) {
        println!("skipped: setpriv is missing, or may not run {program} as nobody");
        return None;
    }
    let output = Command::new("setpriv")
        .args(nobody)
        .arg(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .expect("seen to start");
    Some(ended(output))
}

/// Waits for a state for at most two minutes, because other work may occupy the machine. The bound
/// only guards against a hang.
pub fn wait_until(state: &str, holds: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("two minutes without: {state}");
}

/// Waits until the program handles SIGINT. Before that, the signal kills it as any other process.
pub fn wait_until_it_handles_signals(child: &Child) {
    const SIGINT: u32 = 2;
    let status = format!("/proc/{}/status", child.id());
    let handles = || {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        mask.is_some_and(|mask| mask >> (SIGINT - 1) & 1 == 1)
    };
    wait_until("a handler of SIGINT", handles);
}

/// Returns the bytes in the files of a directory and those below it; 0 if it is gone.
pub fn bytes_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(bytes).sum()
}
