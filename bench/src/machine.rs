//! Describes the machine of a benchmark for its document.

use plumb_events::clock::wall;
use plumb_host::device;
use plumb_record::calendar::Moment;
use plumb_study::machine;
use plumb_units::Bytes;
use std::path::Path;
use std::thread;

/// Facts about the machine, taken before the first run.
#[derive(Debug)]
pub(super) struct Machine {
    lines: Vec<String>,
}

impl Machine {
    /// Reads the facts from the kernel.
    pub(super) fn describe(directory: &Path) -> Machine {
        let host = machine::describe();
        let load = load();
        let mut lines = vec![
            format!("{}, {}", host.processors(), host.cpu_model),
            format!("{} of memory", Bytes(host.memory_bytes.unwrap_or_default())),
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

/// Returns the load average of the last minute and the number of processors. It shows a reader that
/// other work ran on the machine.
pub(super) fn load_average() -> String {
    format!("{} on {} processors", load(), thread::available_parallelism().map_or(1, usize::from))
}

fn load() -> String {
    machine::load_average().map_or("unknown".to_string(), |load| load.to_string())
}

/// Returns the date in the form of documents.
pub(super) fn today() -> String {
    let iso = Moment::of(wall()).iso();
    iso.split('T').next().unwrap_or_default().to_string()
}
