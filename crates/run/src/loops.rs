//! Temporary file systems on one device, so that file systems can be compared. Each is a file below
//! a path, with a loop device and a mounted file system on it.
//!
//! ```text
//! PATH/plumb-loop-NAME/image ──losetup, direct I/O──> /dev/loopN ──mkfs──> file system
//! PATH/plumb-loop-NAME/mounted <────────────────────────────mount─────────────┘
//! ```
//!
//! The image is written in full, so that the file system beneath neither extends nor converts
//! extents while a run is measured. The loop device must use direct I/O, read back from sysfs.
//! Otherwise both file systems would measure the page cache, and the loop device is rejected. The
//! guard removes everything. The directory has this process's mark, so that `plumb clean` finds it
//! after a kill ([`LoopLeftover`]) and removes it by the same [`release`].
//!
//! Rejected: the ioctls instead of the tools. mkfs must be a tool in any case, and losetup and
//! mount come with it.
//!
//! Limits: needs root. A loop device adds the same layer to the requests of both; the report names
//! it.

use crate::RunError;
use plumb_events::{Cancel, clock};
use plumb_host::device::{LoopDevice, loop_devices};
use plumb_host::leftover::{Leftover, MakerClaim, MarkedPart, PartKind, named};
use plumb_host::owner::Owner;
use plumb_host::{proc_files, programs, rights};
use plumb_io::{Directory, EntryKind, Found, named_directory};
use plumb_units::{Bytes, Nanos};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Prefix of their directories' names.
pub const PREFIX: &str = "plumb-loop-";
/// Name of the file under the loop device.
const IMAGE: &str = "image";
const MOUNTED: &str = "mounted";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    /// Name as the kernel reports it.
    pub name: &'static str,
    /// Command of mkfs, with options that prevent questions and the
    /// discarding of the image's blocks.
    mkfs: &'static [&'static str],
}

/// File systems that can be made.
pub const FILE_SYSTEMS: [FileSystem; 2] = [
    FileSystem {
        name: "ext4",
        mkfs: &["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    },
    FileSystem { name: "xfs", mkfs: &["mkfs.xfs", "-q", "-f", "-K"] },
];

const TOOLS: [&str; 3] = ["losetup", "mount", "umount"];

fn refused(step: &'static str, path: &Path, why: String) -> RunError {
    RunError::Loop { step, path: path.to_path_buf(), why }
}

/// Rejects a machine where file systems cannot be made. Fails without root, or without a tool.
pub fn require(path: &Path, file_systems: &[FileSystem]) -> Result<(), RunError> {
    let refuse = |why: String| Err(refused("make file systems", path, why));
    let mkfs = file_systems.iter().filter_map(|kind| kind.mkfs.first().copied());
    if let Some(missing) = TOOLS.into_iter().chain(mkfs).find(|tool| programs::find(tool).is_none()) {
        let package = match missing {
            "mkfs.xfs" => "xfsprogs",
            "mkfs.ext4" => "e2fsprogs",
            _ => "util-linux and mount",
        };
        return refuse(format!("there is no {missing}; install {package}"));
    }
    if rights::caller() != 0 {
        return refuse("loop devices are root's to make; run this as root".to_string());
    }
    Ok(())
}

/// Runs a tool; returns its standard output.
fn run(tool: &str, arguments: &[&std::ffi::OsStr]) -> Result<String, String> {
    let program = programs::find(tool).ok_or_else(|| format!("there is no {tool}"))?;
    // Only this program handles Ctrl-C: a tool ended by it would leave half of its work.
    let ran = Command::new(program).args(arguments).stdin(Stdio::null()).process_group(0).output();
    let ran = ran.map_err(|error| format!("{tool}: {error}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).trim().to_string());
    }
    let errors = String::from_utf8_lossy(&ran.stderr);
    let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{tool} ended with {}: {last}", ran.status))
}

/// A file system that exists as long as this guard.
#[derive(Debug)]
pub struct LoopMount {
    directory: PathBuf,
    _owner: Owner,
}

/// Returns the mount point of this process's file system of this kind below a path.
pub fn mount_point(path: &Path, kind: FileSystem) -> PathBuf {
    directory(path, kind).join(MOUNTED)
}

/// Returns the directory of that file system, with its image.
pub fn directory(path: &Path, kind: FileSystem) -> PathBuf {
    path.join(format!("{PREFIX}{}-{}", kind.name, std::process::id()))
}

impl LoopMount {
    /// Makes a file system of this size below a path, and mounts it. If it fails (no room, no
    /// direct I/O on the loop device) or is cancelled, nothing is left behind.
    pub fn make(path: &Path, kind: FileSystem, bytes: Bytes, cancel: &Cancel) -> Result<LoopMount, RunError> {
        let directory = directory(path, kind);
        named_directory::make("--path", path, &directory)?;
        let owner = named_directory::own("--path", path, &directory)?;
        // From here on the guard cleans up every part.
        let made = LoopMount { directory, _owner: owner };
        let image = made.directory.join(IMAGE);
        allocate(&image, bytes, cancel).map_err(|error| {
            refused(
                "make the image of a file system",
                &image,
                format!("{bytes} are needed: {error}; free some space"),
            )
        })?;
        let mounted = made.directory.join(MOUNTED);
        fs::create_dir(&mounted)
            .map_err(|error| refused("make a mount point", &mounted, error.to_string()))?;
        let device = attach(&image)?;
        let step = |step: &'static str, tool: &str, arguments: &[&std::ffi::OsStr]| {
            cancel.check()?;
            run(tool, arguments).map_err(|why| refused(step, &made.directory, why))
        };
        let (mkfs, options) = kind.mkfs.split_first().unwrap_or((&"", &[]));
        let mut arguments: Vec<&std::ffi::OsStr> = options.iter().map(std::ffi::OsStr::new).collect();
        arguments.push(device.as_ref());
        step("make a file system", mkfs, &arguments)?;
        step(
            "mount it",
            "mount",
            &["-t".as_ref(), kind.name.as_ref(), device.as_ref(), mounted.as_os_str()],
        )?;
        Ok(made)
    }

    pub fn mounted(&self) -> PathBuf {
        self.directory.join(MOUNTED)
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        // If that fails now, `plumb clean` finds it, because the mark stays.
        if release(&self.directory).is_ok() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Writes a file of zeros: blocks written once are cheaper to write again.
fn allocate(image: &Path, bytes: Bytes, cancel: &Cancel) -> io::Result<()> {
    let mut file = File::create_new(image)?;
    let zeros = vec![0; Bytes::M as usize];
    for _ in 0..bytes.0.div_ceil(Bytes::M) {
        cancel.check().map_err(io::Error::other)?;
        file.write_all(&zeros)?;
    }
    file.sync_all()
}

/// Attaches a loop device to a file; rejects one without direct I/O.
fn attach(image: &Path) -> Result<String, RunError> {
    let arguments = ["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), image.as_os_str()];
    let device = run("losetup", &arguments).map_err(|why| refused("make a loop device", image, why))?;
    if loop_devices().iter().any(|found| found.device == Path::new(&device) && found.is_direct) {
        return Ok(device);
    }
    let why = format!(
        "{device} reaches its file through the page cache (loop/dio is not 1): what would be compared is memory; choose a \
         --path whose file system takes direct I/O"
    );
    Err(refused("make a loop device", image, why))
}

/// Time for which the file system of a killed study may be in use: a process with requests in
/// flight ends when they do.
const ENDS_WITHIN: Nanos = Nanos(10_000_000_000);

/// Unmounts a file system, also while the processes that used it still end.
fn unmount(mounted: &Path) -> Result<(), String> {
    let begin = clock::now();
    loop {
        match run("umount", &[mounted.as_os_str()]) {
            Ok(_) => return Ok(()),
            Err(why) if clock::now().saturating_sub(begin) > ENDS_WITHIN => return Err(why),
            Err(_) => thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Unmounts a loop device's file system and detaches the device; missing parts are no error. A
/// device is detached only if the kernel reports the image in this directory as its file. A link
/// of that name, or a hard link to another file, leads to a device of another user. Fails while
/// the device is in use.
pub fn release(directory: &Path) -> io::Result<()> {
    let other = io::Error::other;
    let Ok(held) = Directory::open(directory) else { return Ok(()) };
    let mounted = directory.join(MOUNTED);
    for device in devices_over(&held)? {
        let is_mounted =
            |found: Found| found.kind == EntryKind::Directory && found.identity.0 == device.number;
        if held.found(MOUNTED).is_some_and(is_mounted) {
            unmount(&mounted).map_err(other)?;
        }
    }
    // A device made by `mount -o loop` is detached by umount.
    for device in devices_over(&held)? {
        run("losetup", &["-d".as_ref(), device.device.as_ref()]).map_err(other)?;
    }
    Ok(())
}

/// File systems on loop devices of killed studies.
#[derive(Debug)]
pub struct LoopLeftover;

impl Leftover for LoopLeftover {
    fn claim(&self, marked: &Path) -> Option<MakerClaim> {
        named(marked, PREFIX)
    }

    fn makes(&self, part: &MarkedPart<'_>) -> bool {
        let name = if part.kind == PartKind::Directory { MOUNTED } else { IMAGE };
        part.kind != PartKind::Special && part.top() == Some(name)
    }

    fn release(&self, marked: &Path) -> io::Result<()> {
        release(marked)
    }
}

/// Returns the loop devices over the image in a directory.
fn devices_over(directory: &Directory) -> io::Result<Vec<LoopDevice>> {
    if directory.kind(IMAGE) != Some(EntryKind::File) {
        return Ok(Vec::new());
    }
    // The directory's path without links, as the kernel reports it of the device's file.
    let held = proc_files::link("self", &format!("fd/{}", directory.descriptor().as_raw_fd()));
    let image = held.ok_or_else(|| io::Error::other("/proc does not show the directory"))?.join(IMAGE);
    Ok(loop_devices().into_iter().filter(|found| found.file == image).collect())
}

/// True if a study file and a list of directories can contain the path.
pub fn is_plain(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b",\"\\\n".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_its_package() {
        let none = FileSystem { name: "none", mkfs: &["mkfs.of-no-such-kind"] };
        let error = require(Path::new("/u01"), &[none]).expect_err("there is no such tool").to_string();
        assert!(error.contains("/u01") && error.contains("there is no mkfs.of-no-such-kind"), "{error}");
    }

    /// Needs no root, because the image is made first.
    #[test]
    fn a_cancelled_file_system_leaves_nothing_behind() {
        let parent = tempfile::tempdir().expect("a directory");
        let cancel = Cancel::default();
        cancel.request();
        let made = LoopMount::make(parent.path(), FILE_SYSTEMS[0], Bytes(Bytes::G), &cancel);
        assert!(made.expect_err("to stop").to_string().contains("interrupted"));
        assert_eq!(fs::read_dir(parent.path()).expect("a directory").count(), 0);
    }

    /// Neither a link to an image in use nor a second name of it detaches its device.
    fn not_by_another_way(around: &Path, image: &Path) {
        let ways: [fn(&Path, &Path) -> io::Result<()>; 2] =
            [|file, link| std::os::unix::fs::symlink(file, link), |file, link| fs::hard_link(file, link)];
        for link in ways {
            let laid = around.join(format!("{PREFIX}laid"));
            fs::create_dir_all(laid.join(MOUNTED)).expect("a directory");
            link(image, &laid.join(IMAGE)).expect("a link");
            release(&laid).expect("there is nothing to let go of");
            fs::remove_dir_all(&laid).expect("nothing is mounted there");
        }
    }

    #[test]
    fn file_systems_use_direct_io_and_leave_nothing_behind() {
        let directory =
            tempfile::tempdir_in(std::env::current_exe().expect("a program").parent().expect("a directory"))
                .expect("a directory");
        let kind = FILE_SYSTEMS[0];
        if let Err(why) = require(directory.path(), &[kind]) {
            println!("skipped: {why}");
            return;
        }
        let made = match LoopMount::make(directory.path(), kind, Bytes(32 * Bytes::M), &Cancel::default()) {
            Ok(made) => made,
            // Root in a container may lack loop devices, or their files direct I/O.
            Err(why) => return println!("skipped: {why}"),
        };
        assert_eq!(made.mounted(), mount_point(directory.path(), kind));
        fs::write(made.mounted().join("a file"), "of it").expect("room");
        let (path, image) = (made.mounted(), made.directory.join(IMAGE));
        let held = Directory::open(&made.directory).expect("there");
        assert_eq!(devices_over(&held).expect("read").len(), 1);
        not_by_another_way(directory.path(), &image);
        assert!(path.join("a file").exists());
        drop((made, held));
        assert!(!path.exists() && !image.exists());
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 0);
    }
}
