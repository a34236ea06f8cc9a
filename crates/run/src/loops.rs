//! File systems of the laboratory's own on one device, so that they can be compared: a file below a path, a loop device
//! over it, a file system on that, mounted.
//!
//! ```text
//! PATH/plumb-loop-NAME/image ──losetup, direct I/O──> /dev/loopN ──mkfs──> PATH/plumb-loop-NAME/mounted
//! ```
//!
//! The image is written in full, so that the file system beneath extends and converts nothing while a run is measured. The loop device
//! must reach it by direct I/O, read back from sysfs: else both file systems would be those of the page cache, and
//! it is refused. Everything is removed with the guard; the directory is marked as this process's, so that what a killed
//! one leaves is found by [`orphans`](crate::orphans) and taken apart by the same [`release`].
//!
//! Why the tools and not the ioctls: mkfs has to be a tool in any case, and losetup and mount come with it.
//!
//! Limits: root only. A loop device adds a layer to each request, the same one to both; the report names it.

use crate::RunError;
use plumb_events::Cancel;
use plumb_host::owner::Owner;
use plumb_io::{Directory, EntryKind, Found, named_directory};
use plumb_units::Bytes;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the names of their directories begin with.
pub const PREFIX: &str = "plumb-loop-";
/// The file that stands for a device.
pub const IMAGE: &str = "image";
pub const MOUNTED: &str = "mounted";

/// A kind of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    /// Its name, as the kernel has it.
    pub name: &'static str,
    /// The program that makes it, with what keeps it from asking, and from discarding the blocks of the image.
    mkfs: &'static [&'static str],
}

/// Those that can be made.
pub const FILE_SYSTEMS: [FileSystem; 2] = [
    FileSystem {
        name: "ext4",
        mkfs: &["mkfs.ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0"],
    },
    FileSystem { name: "xfs", mkfs: &["mkfs.xfs", "-q", "-f", "-K"] },
];

const TOOLS: [&str; 3] = ["losetup", "mount", "umount"];
/// Where tools lie that PATH may leave out.
const TOOL_DIRECTORIES: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

fn refused(step: &'static str, path: &Path, why: String) -> RunError {
    RunError::Loop { step, path: path.to_path_buf(), why }
}

/// Refuses where file systems cannot be made.
///
/// # Errors
/// Without root, or without a tool.
pub fn require(path: &Path, file_systems: &[FileSystem]) -> Result<(), RunError> {
    let refuse = |why: String| Err(refused("make file systems", path, why));
    let mkfs = file_systems.iter().filter_map(|kind| kind.mkfs.first().copied());
    if let Some(missing) = TOOLS.into_iter().chain(mkfs).find(|tool| found(tool).is_none()) {
        let package = match missing {
            "mkfs.xfs" => "xfsprogs",
            "mkfs.ext4" => "e2fsprogs",
            _ => "util-linux and mount",
        };
        return refuse(format!("there is no {missing}; install {package}"));
    }
    // /proc/self belongs to whom this process acts as.
    if !fs::metadata("/proc/self").is_ok_and(|found| found.uid() == 0) {
        return refuse("loop devices are root's to make; run this as root".to_string());
    }
    Ok(())
}

fn found(tool: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(TOOL_DIRECTORIES.iter().map(PathBuf::from));
    directories.map(|directory| directory.join(tool)).find(|file| file.is_file())
}

/// Runs a tool; gives what it printed.
fn run(tool: &str, arguments: &[&std::ffi::OsStr]) -> Result<String, String> {
    let program = found(tool).ok_or_else(|| format!("there is no {tool}"))?;
    // Ctrl-C is this program's to take: a tool that it ended would leave half of its work.
    let ran = Command::new(program).args(arguments).stdin(Stdio::null()).process_group(0).output();
    let ran = ran.map_err(|error| format!("{tool}: {error}"))?;
    if ran.status.success() {
        return Ok(String::from_utf8_lossy(&ran.stdout).trim().to_string());
    }
    let errors = String::from_utf8_lossy(&ran.stderr);
    let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(format!("{tool} ended with {}: {last}", ran.status))
}

/// A file system that lives as long as this guard.
#[derive(Debug)]
pub struct LoopMount {
    directory: PathBuf,
    _owner: Owner,
}

/// Where the file system of this kind that this process makes below a path will be mounted.
#[must_use]
pub fn mount_point(path: &Path, kind: FileSystem) -> PathBuf {
    directory(path, kind).join(MOUNTED)
}

/// The directory of that file system, with its image.
#[must_use]
pub fn directory(path: &Path, kind: FileSystem) -> PathBuf {
    path.join(format!("{PREFIX}{}-{}", kind.name, std::process::id()))
}

impl LoopMount {
    /// Makes one of this size below a path, and mounts it.
    ///
    /// # Errors
    /// When there is no room, a tool fails, the loop device does not reach its file directly, or it is to stop; then nothing
    /// remains.
    pub fn make(path: &Path, kind: FileSystem, bytes: Bytes, cancel: &Cancel) -> Result<LoopMount, RunError> {
        let directory = directory(path, kind);
        named_directory::make("--path", path, &directory)?;
        let owner = named_directory::own("--path", path, &directory)?;
        // From here on the guard takes apart whatever there is.
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

    #[must_use]
    pub fn mounted(&self) -> PathBuf {
        self.directory.join(MOUNTED)
    }
}

impl Drop for LoopMount {
    fn drop(&mut self) {
        // What cannot be taken apart now is found by `plumb clean`, since its mark stays.
        if release(&self.directory).is_ok() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// A file of zeros: blocks that were written once cost nothing to write again.
fn allocate(image: &Path, bytes: Bytes, cancel: &Cancel) -> io::Result<()> {
    let mut file = File::create_new(image)?;
    let zeros = vec![0; Bytes::M as usize];
    for _ in 0..bytes.0.div_ceil(Bytes::M) {
        cancel.check().map_err(io::Error::other)?;
        file.write_all(&zeros)?;
    }
    file.sync_all()
}

/// A loop device over a file; refused where it does not reach the file by direct I/O.
fn attach(image: &Path) -> Result<String, RunError> {
    let arguments = ["--find".as_ref(), "--show".as_ref(), "--direct-io=on".as_ref(), image.as_os_str()];
    let device = run("losetup", &arguments).map_err(|why| refused("make a loop device", image, why))?;
    let name = device.rsplit('/').next().unwrap_or_default();
    let seen = fs::read_to_string(format!("/sys/block/{name}/loop/dio")).unwrap_or_default();
    if seen.trim() == "1" {
        return Ok(device);
    }
    let why = format!(
        "{name} reaches its file through the page cache (loop/dio is {:?}): what would be compared is memory; choose a --path \
         whose file system takes direct I/O",
        seen.trim()
    );
    Err(refused("make a loop device", image, why))
}

/// Takes a directory of a loop device apart: unmounted, and no device over its image. What is not there is no error.
/// A device is let go of only if the kernel says that its file is the image in this directory: a
/// link of that name, or another name of a file that is elsewhere, leads to the device of somebody
/// else.
///
/// # Errors
/// When something still uses it.
pub fn release(directory: &Path) -> io::Result<()> {
    let other = io::Error::other;
    let Ok(held) = Directory::open(directory) else { return Ok(()) };
    let mounted = directory.join(MOUNTED);
    for device in devices_over(&held)? {
        let is_mounted =
            |found: Found| found.kind == EntryKind::Directory && found.identity.0 == device.number;
        if held.found(MOUNTED).is_some_and(is_mounted) {
            run("umount", &[mounted.as_os_str()]).map_err(other)?;
        }
    }
    // One that `mount -o loop` made has gone with what was mounted.
    for device in devices_over(&held)? {
        run("losetup", &["-d".as_ref(), device.name.as_ref()]).map_err(other)?;
    }
    Ok(())
}

struct LoopDevice {
    name: String,
    /// As `stat` has it of what lies on it.
    number: u64,
}

/// The loop devices over the image in a directory.
fn devices_over(directory: &Directory) -> io::Result<Vec<LoopDevice>> {
    if directory.kind(IMAGE) != Some(EntryKind::File) {
        return Ok(Vec::new());
    }
    // The path that the kernel has, without links, as it has it of the device's file.
    let held = format!("/proc/self/fd/{}", directory.descriptor().as_raw_fd());
    let image = fs::read_link(held)?.join(IMAGE);
    let Ok(devices) = fs::read_dir("/sys/block") else { return Ok(Vec::new()) };
    let device = |entry: fs::DirEntry| {
        let system = entry.path();
        let mut file = fs::read(system.join("loop/backing_file")).ok()?;
        file.pop_if(|last| *last == b'\n');
        let name = format!("/dev/{}", entry.file_name().display());
        let number = fs::metadata(&name).ok()?.rdev();
        (file == image.as_os_str().as_bytes()).then_some(LoopDevice { name, number })
    };
    Ok(devices.flatten().filter_map(device).collect())
}

/// Whether a path can stand in a study file and in a list of directories.
#[must_use]
pub fn is_plain(path: &Path) -> bool {
    !path.as_os_str().as_bytes().iter().any(|byte| b",\"\\\n".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_tool_is_missing_it_is_named_with_its_package() {
        let none = FileSystem { name: "none", mkfs: &["mkfs.of-no-such-kind"] };
        let error = require(Path::new("/u01"), &[none]).expect_err("there is no such tool").to_string();
        assert!(error.contains("/u01") && error.contains("there is no mkfs.of-no-such-kind"), "{error}");
    }

    /// Without root, too: the image comes first.
    #[test]
    fn one_that_is_to_stop_while_it_is_made_leaves_nothing() {
        let parent = tempfile::tempdir().expect("a directory");
        let cancel = Cancel::default();
        cancel.request();
        let made = LoopMount::make(parent.path(), FILE_SYSTEMS[0], Bytes(Bytes::G), &cancel);
        assert!(made.expect_err("to stop").to_string().contains("interrupted"));
        assert_eq!(fs::read_dir(parent.path()).expect("a directory").count(), 0);
    }

    /// A link to an image in use, and a second name of it, let go of no device.
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
    fn file_systems_are_made_by_direct_io_and_nothing_of_them_stays() {
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
            // A container's root may not have them, or its file systems no direct I/O.
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
