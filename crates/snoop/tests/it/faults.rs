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

/// Events of the calls of a program that copies bytes one by one, with those that were lost. The
/// buffers are not drained before its end, and do not hold the events of many calls.
fn events_of_copy(count: u32) -> Option<(u64, u64)> {
    let count = format!("count={count}");
    let words = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", &count, "status=none"];
    let mut capture = start(SnoopTarget::Command(words.map(str::to_string).to_vec()))?;
    let mut live = Live::new(Show::Nothing, capture.begin());
    let ended = capture.wait().expect("a command").expect("it ended");
    assert!(ended.status.success());
    let snoop = finished(&mut capture, &mut live);
    let calls = snoop.buffers.iter().find(|buffer| buffer.name == "calls").expect("a buffer");
    Some((calls.events, calls.lost))
}

/// A copied byte is a read and a write, which are two events each.
#[test]
fn events_without_room_are_counted_exactly() {
    let _turn = turn();
    let Some((start_and_end, _)) = events_of_copy(0) else { return };
    let Some((events, lost)) = events_of_copy(400_000) else { return };
    assert!(lost > 0, "{events} events had room");
    assert_eq!(events - start_and_end, 4 * 400_000);
}

/// A control group that limits a disk's requests; it is removed when it is empty.
struct Limited(std::path::PathBuf);

impl Limited {
    /// Makes a group of at most 200 direct writes a second to the disk of a file.
    fn writes_of(file: &std::path::Path) -> Option<Limited> {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata(file).expect("a file").dev();
        let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
        let name = format!("plumb-snoop-{}", std::process::id());
        let limits = [
            ("/sys/fs/cgroup/blkio", "blkio.throttle.write_iops_device", format!("{major}:{minor} 200")),
            ("/sys/fs/cgroup", "io.max", format!("{major}:{minor} wiops=200")),
        ];
        for (root, limit, text) in limits {
            let group = std::path::Path::new(root).join(&name);
            if std::path::Path::new(root).join("cgroup.procs").exists() && std::fs::create_dir(&group).is_ok()
            {
                let limited = Limited(group);
                if limited.0.join(limit).exists() && std::fs::write(limited.0.join(limit), text).is_ok() {
                    return Some(limited);
                }
            }
        }
        None
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// The kernel delays requests above the limit and passes them on by a worker of its own, so the
/// thread that makes a request is not that of the call.
#[test]
fn requests_that_a_limit_delays_belong_to_their_calls() {
    let _turn = turn();
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let path = directory.path().join("limited");
    std::fs::write(&path, vec![7; 64 * 4096]).expect("a file");
    std::fs::File::open(&path).and_then(|file| file.sync_all()).expect("on the disk");
    let Some(group) = Limited::writes_of(&path) else {
        return println!("skipped: no control group limits this disk here");
    };
    let script = format!(
        "echo $$ > {}/cgroup.procs; dd if=/dev/zero of={} bs=4k count=64 oflag=direct conv=notrunc \
         status=none; echo $$ > {}/../cgroup.procs",
        group.0.display(),
        path.display(),
        group.0.display()
    );
    let Some(snoop) = traced(&["sh", "-c", &script]) else { return };
    let name = path.display().to_string();
    let call = snoop.calls.iter().find(|row| row.file == name && row.operation == "write");
    let call = call.unwrap_or_else(|| panic!("{:?}", snoop.calls));
    assert_eq!(
        (call.calls, call.disk_requests, call.disk_bytes),
        (64, 64, 64 * 4096),
        "{:?}",
        snoop.requests
    );
}

/// Programs close the files that they have mapped, so no descriptor names them.
#[test]
fn page_faults_have_the_names_of_mapped_files() {
    let _turn = turn();
    let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let program = directory.path().join("program with a blank");
    let sleep = ["/usr/bin/sleep", "/bin/sleep"].into_iter().find(|path| std::fs::metadata(path).is_ok());
    std::fs::copy(sleep.expect("a program"), &program).expect("a copy");
    let shown = program.display().to_string();
    // Its pages leave the page cache, so that its start reads them from the disk.
    let script = format!("sync '{shown}'; dd if='{shown}' iflag=nocache count=0 status=none; '{shown}' 0.5");
    let Some(snoop) = traced(&["sh", "-c", &script]) else { return };
    let rows: Vec<_> = snoop.requests.iter().filter(|row| row.how == "page fault").collect();
    if rows.is_empty() {
        return println!("skipped: the disk's view needs a file system on a block device");
    }
    assert!(rows.iter().any(|row| row.file == shown), "{rows:?}");
}
