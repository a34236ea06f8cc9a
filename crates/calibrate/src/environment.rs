//! The environment that a calibration holds for.

use plumb_io::device::DeviceDescription;
use serde::{Deserialize, Serialize};

/// What a calibration holds for: other hardware, another kernel or another way to
/// the device make it another question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    // What must be the same.
    /// The device the file system is on, or what is mounted where there is none.
    pub device: String,
    /// The size of the disk, where the kernel tells it.
    pub disk_bytes: Option<u64>,
    /// The type of the file system.
    pub file_system: String,
    /// The release of the kernel.
    pub kernel: String,

    // How and where it was measured.
    /// The path, absolute.
    pub path: String,
    /// The method of all points but the ladder's.
    pub method: String,
    /// Whether the page cache was bypassed.
    pub direct: bool,
    /// Processors of the machine.
    pub processors: usize,
    /// Whether the disk is made by software.
    pub virtual_disk: bool,
    /// The date in the caller's words.
    pub date: String,
}

impl Environment {
    /// What is different on a device; nothing: the calibration holds for it.
    #[must_use]
    pub fn differences(&self, device: &DeviceDescription) -> Vec<String> {
        let size = |bytes: Option<u64>| bytes.map_or("unknown".to_string(), |bytes| bytes.to_string());
        let pairs = [
            ("device", self.device.clone(), device_name(device)),
            ("disk size", size(self.disk_bytes), size(disk_bytes(device))),
            ("file system", self.file_system.clone(), device.mount.file_system.clone()),
            ("kernel", self.kernel.clone(), kernel(device)),
        ];
        let different = pairs.into_iter().filter(|(_, then, now)| then != now);
        different.map(|(what, then, now)| format!("{what}: calibrated on {then}, this is {now}")).collect()
    }
}

pub(crate) fn device_name(device: &DeviceDescription) -> String {
    device.block.as_ref().map_or_else(|| device.mount.source.clone(), |block| block.name.clone())
}

pub(crate) fn disk_bytes(device: &DeviceDescription) -> Option<u64> {
    device.block.as_ref()?.disk_size.map(|bytes| bytes.0)
}

pub(crate) fn kernel(device: &DeviceDescription) -> String {
    device.host.kernel_release.clone().unwrap_or_else(|| "unknown".to_string())
}
