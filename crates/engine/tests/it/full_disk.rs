//! A database on a file system of its own that is filled up. If mounting is not permitted the
//! tests print that and end.

use crate::support::{Rows, assert_green, create_in, load, open_in};
use plumb_engine::drop::drop_named;
use plumb_engine::transaction::Transactions;
use plumb_events::Role;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file system in memory of some megabytes.
struct Mounted(tempfile::TempDir);

impl Mounted {
    fn new(options: &str) -> Option<Mounted> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(directory.path()).stderr(Stdio::null());
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        if !is_mounted {
            println!("skipped: no file system may be mounted here");
        }
        is_mounted.then_some(Mounted(directory))
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_path_buf()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

/// Fills a directory's file system to the last block.
fn fill(directory: &Path) {
    let mut file = File::create(directory.join("filler")).expect("a file");
    for bytes in [1 << 16, 512] {
        let zeros = vec![0; bytes];
        while file.write_all(&zeros).is_ok() {}
    }
}

#[test]
fn a_table_is_dropped_on_a_full_disk() {
    for options in ["size=24M", "size=24M,nr_inodes=24"] {
        let Some(mounted) = Mounted::new(options) else { return };
        let home = mounted.path().join("db");
        {
            let instance = create_in(&home, &[]);
            load(&instance, "u", &Rows::uniform(300, 2)).expect("loaded");
            load(&instance, "t", &Rows::uniform(50_000, 1)).expect("loaded");
        }
        fill(&mounted.path());
        for number in 0.. {
            if File::create(mounted.path().join(format!("inode{number}"))).is_err() || number > 100 {
                break;
            }
        }
        let before = fs::metadata(home.join("users01.dbf")).expect("there").len();
        let instance = open_in(&home).expect("opened on a full disk");
        drop_named(&instance, "t").expect("dropped");
        assert!(fs::metadata(home.join("users01.dbf")).expect("there").len() < before, "its room is free");
        assert_green(&instance, "u");
        load(&instance, "v", &Rows::uniform(300, 3)).expect("there is room again");
    }
}

#[test]
fn a_log_is_recovered_on_a_full_disk() {
    let Some(mounted) = Mounted::new("size=24M") else { return };
    let home = mounted.path().join("db");
    let log = [("log_file_size", "1M"), ("log_buffer", "256K"), ("log_file_io", "buffered")];
    {
        let instance = create_in(&home, &log);
        let session = instance.recorder.session(Role::User);
        drop(Transactions::open(&instance, &session).expect("a log"));
    }
    fill(&mounted.path());
    let instance = open_in(&home).expect("opened on a full disk");
    let session = instance.recorder.session(Role::User);
    drop(Transactions::open(&instance, &session).expect("recovered on a full disk"));
}
