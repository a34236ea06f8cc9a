//! Tests of the commands as processes. Unit tests are next to the code.

use std::process::Command;

/// Runs a small bench, as root on a machine with FUSE; elsewhere checks that it names the reason.
#[test]
fn a_loss_of_power_loses_nothing_that_was_acknowledged() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut bench = Command::new(env!("CARGO_BIN_EXE_plumb-bench"));
    bench.args(["power", "--on", "fuse", "--images", "6", "--seed", "1", "--path"]);
    let output = bench.arg(directory.path()).output().expect("the bench starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (printed, complaint) = (text(&output.stdout), text(&output.stderr));
    if complaint.contains("power needs root and /dev/fuse") {
        println!("skipped: {complaint}");
        return;
    }
    assert!(output.status.success(), "{printed}{complaint}");
    assert!(printed.contains("6 images and 6 of their recoveries"), "{printed}");
    assert!(printed.contains("canary: 2 images by syncs that lie"), "{printed}");
    let left: Vec<_> = std::fs::read_dir(directory.path()).expect("it is there").collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}
