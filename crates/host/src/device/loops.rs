//! Loop devices, by sysfs.

use crate::roots::{names, text};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A loop device in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopDevice {
    /// Path of the device, below `/dev`.
    pub device: PathBuf,
    /// File that it shows, without links, as the kernel reports it.
    pub file: PathBuf,
    /// True if its requests bypass the page cache of that file.
    pub is_direct: bool,
    /// The `st_dev` of files on the device.
    pub number: u64,
}

/// Returns the loop devices in use; none without sysfs.
pub fn loop_devices() -> Vec<LoopDevice> {
    let system = Path::new("/sys/block");
    names(system).iter().filter_map(|name| read(&system.join(name).join("loop"), name)).collect()
}

fn read(system: &Path, name: &str) -> Option<LoopDevice> {
    let mut file = fs::read(system.join("backing_file")).ok()?;
    file.pop_if(|last| *last == b'\n');
    let device = Path::new("/dev").join(name);
    let number = fs::metadata(&device).ok()?.rdev();
    let is_direct = text(&system.join("dio")).as_deref() == Some("1");
    Some(LoopDevice { device, file: PathBuf::from(OsString::from_vec(file)), is_direct, number })
}
