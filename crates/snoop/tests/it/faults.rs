//! Programs and callers that make a trace hard.

use crate::{finished, start, traced, turn};
use plumb_snoop::{Capture, Live, Show, SnoopTarget};
use std::process::{Child, Command};

/// Ends the program with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(script: &str) -> Running {
    Running(Command::new("sh").args(["-c", script]).spawn().expect("a shell"))
}

#[test]
fn children_of_a_traced_process_are_traced_and_the_trace_ends_with_the_last() {
    let _turn = turn();
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let go = directory.path().join("go");
    let script = format!(
        "while [ ! -e {0} ]; do sleep 0.01; done; exec 7>{1}; for i in 1 2 3; do (printf 12345 >&7); \
         done; sleep 0.1",
        go.display(),
        directory.path().join("a\nb").display().to_string().replace('\n', "'\n'")
    );
    let child = shell(&script);
    let Some(mut capture) = start(SnoopTarget::Pid(child.0.id())) else { return };
    std::fs::write(&go, "").expect("go");
    let mut live = Live::new(Show::Both, capture.begin());
    let mut child = child;
    while capture.is_alive() {
        capture.step(&mut live).expect("a step");
        // Its parent is this test: an unwaited child is no running process.
        let _ = child.0.try_wait();
    }
    let snoop = finished(&mut capture, &mut live);
    let written = snoop.calls.iter().filter(|row| row.file.ends_with("a\nb") && row.operation == "write");
    let sums = written.fold((0, 0), |sum, row| (sum.0 + row.calls, sum.1 + row.bytes));
    assert_eq!(sums, (3, 15), "{:?}", snoop.calls);
    let lines = live.take_lines();
    assert!(lines.lines().all(|line| !line.contains('\u{1b}')) && lines.contains("a\\u000ab"), "{lines}");
}

#[test]
fn a_file_that_is_renamed_and_deleted_meanwhile_stays_one_file() {
    let _turn = turn();
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let [old, new] = ["old", "new"].map(|name| directory.path().join(name).display().to_string());
    let script = format!(
        "exec 7>{old}; printf 1 >&7; sleep 0.1; mv {old} {new}; printf 2 >&7; sleep 0.1; rm {new}; \
         printf 3 >&7; sleep 0.1"
    );
    let Some(snoop) = traced(&["sh", "-c", &script]) else { return };
    let rows: Vec<_> = snoop
        .calls
        .iter()
        .filter(|row| row.operation == "write" && row.file.starts_with(&old[..old.len() - 3]))
        .collect();
    assert_eq!((rows.len(), rows.iter().map(|row| row.calls).sum::<u64>()), (1, 3), "{rows:?}");
}

#[test]
fn targets_that_do_not_exist_and_commands_that_do_not_start_leave_nothing() {
    let _turn = turn();
    let Some(capture) = start(SnoopTarget::Pid(std::process::id())) else { return };
    let directories = capture.directories();
    assert!(directories.iter().all(|directory| directory.is_dir()));
    drop(capture);
    assert!(directories.iter().all(|directory| !directory.exists()), "{directories:?}");
    for (target, begins) in [
        (SnoopTarget::Pid(4_194_304), "process 4194304 does not exist"),
        (SnoopTarget::Name("no such program".to_string()), "no process has \"no such program\""),
        (SnoopTarget::Command(vec!["/no/such".to_string()]), "\"/no/such\" cannot be started"),
    ] {
        let error = Capture::start(target).expect_err("refused").to_string();
        assert!(error.starts_with(begins) && error.lines().count() == 1, "{error}");
    }
    let root = directories[0].parent().expect("instances");
    let own = format!("plumb-{}-", std::process::id());
    let left: Vec<_> = std::fs::read_dir(root)
        .expect("readable")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&own))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// A buffer of this size cannot hold what a loop of reads makes while it is not drained.
#[test]
fn events_without_room_are_counted() {
    let _turn = turn();
    let Some(mut capture) = start(SnoopTarget::Command(
        ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=400000", "status=none"]
            .map(str::to_string)
            .to_vec(),
    )) else {
        return;
    };
    let mut live = Live::new(Show::Nothing, capture.begin());
    let ended = capture.wait().expect("a command").expect("it ended");
    assert!(ended.status.success());
    let snoop = finished(&mut capture, &mut live);
    assert!(snoop.lost() > 0, "{:?}", snoop.buffers);
}
