//! The environment for which a calibration is valid: device, file system, kernel.

use crate::Point;
use plumb_host::device::DeviceDescription;
use plumb_io::{DirectIo, MethodKind};
use serde::{Deserialize, Serialize};

/// Environment for which a calibration is valid. Other hardware, another kernel or another access
/// to the device make it invalid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceEnvironment {
    // Must be equal for the calibration to hold
    /// The device of the file system, or the mount's source if there is none.
    pub device: String,
    /// Size of the disk in bytes, if the kernel reports it.
    pub disk_bytes: Option<u64>,
    /// Type of the file system.
    pub file_system: String,
    pub kernel: String,
    /// Mount point of the file system; `None` in older records.
    #[serde(default)]
    pub mount: Option<String>,
    /// Identity of the file system; `None` in older records.
    #[serde(default)]
    pub file_system_id: Option<String>,
    /// Vendor and model of the disk, if it reports them.
    #[serde(default)]
    pub disk_model: Option<String>,

    // Circumstances of the measurement
    /// Absolute path of the calibrated directory.
    pub path: String,
    /// The method of all points except the ladder's.
    pub method: MethodKind,
    /// True if the page cache was bypassed.
    pub direct: bool,
    pub processors: usize,
    /// True for a disk made by software.
    pub virtual_disk: bool,
    /// The date in the caller's format.
    pub date: String,
}

impl DeviceEnvironment {
    /// Describes the environment of points like `usual`.
    pub(crate) fn of(
        device: &DeviceDescription,
        usual: &Point,
        processors: usize,
        date: String,
    ) -> DeviceEnvironment {
        DeviceEnvironment {
            device: device_name(device),
            disk_bytes: disk_bytes(device),
            file_system: device.mount.file_system.clone(),
            kernel: kernel(device),
            mount: Some(device.mount.mount_point.display().to_string()),
            file_system_id: Some(file_system_id(device)),
            disk_model: disk_model(device),
            path: plumb_units::path_text(&device.path),
            method: usual.method,
            direct: usual.direct_io == DirectIo::Required,
            processors,
            virtual_disk: device.virtualization.disk,
            date,
        }
    }

    /// Lists differences from a device; empty if the calibration is valid for it.
    pub fn differences(&self, device: &DeviceDescription) -> Vec<String> {
        let size = |bytes: Option<u64>| bytes.map_or("unknown".to_string(), |bytes| bytes.to_string());
        // A value that an older record lacks is no difference.
        let known = |then: &Option<String>, now: String| then.clone().unwrap_or_else(|| now.clone());
        let mount = device.mount.mount_point.display().to_string();
        let model = disk_model(device).unwrap_or_else(|| "unknown".to_string());
        let pairs = [
            ("device", self.device.clone(), device_name(device)),
            ("disk size", size(self.disk_bytes), size(disk_bytes(device))),
            ("file system", self.file_system.clone(), device.mount.file_system.clone()),
            ("mount", known(&self.mount, mount.clone()), mount),
            (
                "file system's identity",
                known(&self.file_system_id, file_system_id(device)),
                file_system_id(device),
            ),
            ("disk", known(&self.disk_model, model.clone()), model),
            ("kernel", self.kernel.clone(), kernel(device)),
        ];
        let different = pairs.into_iter().filter(|(_, then, now)| then != now);
        different.map(|(what, then, now)| format!("{what}: calibrated on {then}, this is {now}")).collect()
    }
}

fn device_name(device: &DeviceDescription) -> String {
    device.block.as_ref().map_or_else(|| device.mount.source.clone(), |block| block.name.clone())
}

fn disk_bytes(device: &DeviceDescription) -> Option<u64> {
    // A loop device or a volume has its own size, independent of the disk.
    let block = device.block.as_ref()?;
    block.upper_size.or(block.disk_size).map(|bytes| bytes.0)
}

fn file_system_id(device: &DeviceDescription) -> String {
    format!("{:x}", device.space.id)
}

fn disk_model(device: &DeviceDescription) -> Option<String> {
    let block = device.block.as_ref()?;
    let words: Vec<&str> = [&block.vendor, &block.model].into_iter().flatten().map(String::as_str).collect();
    (!words.is_empty()).then(|| words.join(" "))
}

fn kernel(device: &DeviceDescription) -> String {
    device.host.kernel_release.clone().unwrap_or_else(|| "unknown".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use plumb_units::Bytes;

    #[test]
    fn a_layer_has_its_own_size() {
        let (_directory, mut device) = fixture::place();
        let Some(block) = &mut device.block else { return };
        (block.upper_size, block.disk_size) = (Some(Bytes(4 << 30)), Some(Bytes(256 << 30)));
        assert_eq!(disk_bytes(&device), Some(4 << 30));
        device.block.as_mut().expect("as before").upper_size = None;
        assert_eq!(disk_bytes(&device), Some(256 << 30));
    }
}
