//! Devices under each path, as the report shows them.

use super::Evidence;
use plumb_host::device::DeviceDescription;
use plumb_io::DirectIo;
use plumb_record::Device;

pub(super) fn devices(seen: &Evidence) -> Vec<Device> {
    seen.devices.iter().map(|description| device_of(seen, description)).collect()
}

fn device_of(seen: &Evidence, description: &DeviceDescription) -> Device {
    let access = &seen.inside.access;
    let method = if seen.inside.in_memory() { "null".to_string() } else { access.method.kind().to_string() };
    let mut device = Device::of(description, &method, &access.method_reason());
    device.notes.push(access.direct_reason.clone());
    device.used_direct_io = (!seen.inside.in_memory()).then_some(access.direct == DirectIo::Required);
    device
}
