//! The machine that a benchmark ran on, for its document.

use plumb_events::clock::wall;
use plumb_host::device;
use plumb_lab::host;
use plumb_record::calendar::Moment;
use plumb_units::Bytes;
use std::path::Path;
use std::thread;

/// The machine as it was before the first run.
#[derive(Debug)]
pub(super) struct Machine {
    lines: Vec<String>,
}

impl Machine {
    /// Reads what the kernel tells.
    pub(super) fn describe(directory: &Path) -> Machine {
        let host = host::describe();
        let load = load();
        let mut lines = vec![
            format!("{} processors, {}", host.cpus, host.cpu_model),
            format!("{} of memory", Bytes(host.memory_bytes)),
            host.kernel,
            format!("load average of the minute before the first run: {load}"),
        ];
        if let Ok(described) = plumb_io::describe_device(directory) {
            lines.push(format!("file system: {}", described.mount.file_system));
            lines.extend(described.stack.iter().map(|layer| format!("device: {layer}")));
            lines.extend(device::notes(&described));
        }
        Machine { lines }
    }

    pub(super) fn show(&self) -> String {
        self.lines.iter().fold(String::new(), |text, line| text + "- " + line + "\n")
    }
}

/// The load average of the last minute beside the processors: figures of a machine that does other things too say so.
pub(super) fn load_average() -> String {
    format!("{} on {} processors", load(), thread::available_parallelism().map_or(1, usize::from))
}

fn load() -> String {
    host::load_average().map_or("unknown".to_string(), |load| load.to_string())
}

/// The day, as documents state it.
pub(super) fn today() -> String {
    let iso = Moment::of(wall()).iso();
    iso.split('T').next().unwrap_or_default().to_string()
}
