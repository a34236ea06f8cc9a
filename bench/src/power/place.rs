//! Places for a database whose operations are logged: a FUSE file system, or a file system on a
//! loop device over a file of one.
//!
//! For a file system on a loop device, the log has the device's writes and flushes; a flush is a
//! sync of the device's file. Dropping a place unmounts and detaches it, from the top down.

use super::medium::Entry;
use super::mounted::{ACKNOWLEDGED, Mounted, empty};
use super::tree::Tree;
use anyhow::Context;
use clap::ValueEnum;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// File systems for the databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum On {
    Fuse,
    Ext4,
    Xfs,
    Btrfs,
    All,
}

const DEVICE: &str = "device";
/// mkfs.xfs requires 300 MB. Blocks that were never written take no memory.
const DEVICE_BYTES: u64 = 320 << 20;

impl On {
    pub(super) fn each(self) -> Vec<On> {
        if self == On::All { vec![On::Fuse, On::Ext4, On::Xfs, On::Btrfs] } else { vec![self] }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            On::Fuse => "fuse",
            On::Ext4 => "ext4",
            On::Xfs => "xfs",
            On::Btrfs => "btrfs",
            On::All => "all",
        }
    }

    /// Returns the program that makes the file system, its options, and its package.
    fn maker(self) -> Option<(&'static str, Vec<&'static str>, &'static str)> {
        // Otherwise the kernel writes the tables while the database works.
        let eager = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
        match self {
            On::Ext4 => Some(("mkfs.ext4", vec!["-q", "-F", "-J", "size=4", "-E", eager], "e2fsprogs")),
            On::Xfs => Some(("mkfs.xfs", vec!["-q", "-f", "-K"], "xfsprogs")),
            On::Btrfs => Some(("mkfs.btrfs", vec!["-q", "-f", "-K"], "btrfs-progs")),
            On::Fuse | On::All => None,
        }
    }

    /// Returns how to install the missing program, if one is missing.
    pub(super) fn missing(self) -> Option<String> {
        let (program, _, package) = self.maker()?;
        let lacks = |program: &str| {
            Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err()
        };
        let name = self.name();
        if lacks(program) {
            return Some(format!("{name}: skipped: no {program}; install it (apt-get install {package})"));
        }
        lacks("losetup").then(|| format!("{name}: skipped: no losetup; install it (apt-get install mount)"))
    }

    /// Returns the number of sectors that survive together. On a device it is 4096 bytes, because
    /// ext4 cannot mount if half of its superblock is old.
    pub(super) fn sectors_whole(self) -> usize {
        if self.maker().is_some() { 8 } else { 1 }
    }

    /// Returns a file system for [`Place::open`] without a database.
    pub(super) fn blank(self) -> Tree {
        let mut tree = empty();
        if self.maker().is_some() {
            tree.add_file(DEVICE, DEVICE_BYTES);
        }
        tree
    }
}

/// A file system on a loop device, mounted.
#[derive(Debug)]
pub(crate) struct OnDevice {
    pub(crate) mount: PathBuf,
}

impl OnDevice {
    /// Makes a file system on a device and mounts it on an existing directory.
    pub(crate) fn make(
        on: On,
        Loop { device }: &Loop,
        mount: PathBuf,
        format: Format,
    ) -> anyhow::Result<OnDevice> {
        let (program, options, _) = on.maker().context("it lies on no device")?;
        if format == Format::Make {
            call(program, &[options.as_slice(), &[device.as_str()]].concat())?;
        }
        let what = ["-t", on.name(), device].map(OsStr::new);
        call("mount", &[&what[..], &[mount.as_os_str()]].concat())?;
        Ok(OnDevice { mount })
    }
}

impl Drop for OnDevice {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.mount) {
            eprintln!("{} stays mounted: {error}", self.mount.display());
        }
    }
}

/// A loop device over a file; dropping it detaches it.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) device: String,
}

impl Loop {
    /// Attaches a device of 512-byte sectors that bypasses the page cache.
    pub(crate) fn attach(file: &Path) -> anyhow::Result<Loop> {
        let attach = ["--find", "--show", "--direct-io=on", "--sector-size", "512"].map(OsStr::new);
        let device = call("losetup", &[&attach[..], &[file.as_os_str()]].concat())?;
        Ok(Loop { device: device.trim().to_string() })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let detach = || call("losetup", &["--detach", &self.device]).map(drop);
        // The kernel detaches a device only after its last user has closed it.
        let name = self.device.rsplit('/').next().unwrap_or_default();
        let is_attached = || Path::new("/sys/block").join(name).join("loop").exists();
        let detached = detach().and_then(|()| {
            again(|| if is_attached() { Err(anyhow::anyhow!("it is held open")) } else { Ok(()) })
        });
        if let Err(error) = detached {
            eprintln!("{} stays attached: {error}", self.device);
        }
    }
}

/// A mounted file system for a database. Fields are dropped in this order.
#[derive(Debug)]
pub(super) struct Place {
    upper: Option<OnDevice>,
    device: Option<Loop>,
    lower: Mounted,
    directory: PathBuf,
}

/// State of a place's device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Make,
    Found,
}

impl Place {
    /// Mounts a file system with these files in `room`.
    pub(super) fn open(on: On, room: &Path, tree: Tree, format: Format) -> anyhow::Result<Place> {
        let directory = room.join("lower");
        let lower = Mounted::new(tree, &directory)?;
        let mut place = Place { upper: None, device: None, lower, directory };
        if on.maker().is_none() {
            return Ok(place);
        }
        let file = place.directory.join(DEVICE);
        let device = place.device.insert(Loop::attach(&file)?);
        place.upper = Some(OnDevice::make(on, device, room.join("upper"), format)?);
        Ok(place)
    }

    /// Returns the directory of the database in the mounted file system.
    pub(super) fn home(&self) -> PathBuf {
        self.upper.as_ref().map_or(&self.directory, |upper| &upper.mount).join("db")
    }

    /// Returns the file for the reports of a process.
    pub(super) fn acknowledged(&self) -> PathBuf {
        self.directory.join(ACKNOWLEDGED)
    }

    /// Returns the number of operations so far.
    pub(super) fn log_length(&self) -> usize {
        self.lower.log_length()
    }

    /// Unmounts, and returns the log.
    pub(super) fn into_log(self) -> anyhow::Result<Vec<Entry>> {
        let Place { upper, device, lower, .. } = self;
        drop(upper);
        drop(device);
        lower.into_log()
    }
}

/// Unmounts a file system, with retries: it stays busy briefly after a process
/// with a ring has ended.
pub(crate) fn unmount(directory: &Path) -> anyhow::Result<()> {
    again(|| call("umount", &[directory.as_os_str()]).map(drop))
}

/// Retries `attempt` for five seconds.
fn again(mut attempt: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<()> {
    for _ in 0..100 {
        if attempt().is_ok() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    attempt()
}

/// Makes the mount points of places in `room`.
pub(super) fn prepare(room: &Path) -> std::io::Result<()> {
    ["lower", "upper"].into_iter().try_for_each(|name| std::fs::create_dir(room.join(name)))
}

/// Runs a program to its end, and returns what it printed.
fn call(program: &str, arguments: &[impl AsRef<OsStr>]) -> anyhow::Result<String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("running {program}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{program}: {}, {}", output.status, said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
