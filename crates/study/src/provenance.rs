//! The program and the machine that made a calibration: record.json of its bundle.

use crate::machine;
use plumb_calibrate::Calibration;
use plumb_host::device::DeviceDescription;
use plumb_record::{Device, Host};
use serde::{Deserialize, Serialize};

/// The program and the machine that made a calibration.
///
/// Records of the first version have the first three fields in a `header`, next to
/// all figures of the page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    pub plumb_version: String,
    /// The command as it was typed.
    pub command_line: String,
    pub host: Host,
    /// Device under the calibrated path.
    pub device: Device,
}

impl Provenance {
    /// Describes a calibration that this program made on this machine.
    pub fn of(calibration: &Calibration, device: &DeviceDescription, command_line: String) -> Provenance {
        let reason = "the method of the points; the ladder has other methods";
        Provenance {
            plumb_version: env!("CARGO_PKG_VERSION").to_string(),
            command_line,
            host: machine::describe(),
            device: Device::of(device, calibration.environment.method.name(), reason),
        }
    }

    /// Parses a provenance, of the first version too.
    pub fn from_json(text: &str) -> serde_json::Result<Provenance> {
        let mut value: serde_json::Value = serde_json::from_str(text)?;
        if let Some(serde_json::Value::Object(header)) = value.get("header").cloned()
            && let Some(fields) = value.as_object_mut()
        {
            fields.extend(header);
        }
        serde_json::from_value(value)
    }
}
