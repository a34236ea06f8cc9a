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

/// Most columns of a document's line.
const COLUMNS: usize = 100;

/// Breaks the long lines of a Markdown document. Tables, headings, comments and code stay as they
/// are, because a break would change them.
pub(super) fn wrapped(document: &str) -> String {
    let (mut text, mut is_code) = (String::new(), false);
    for line in document.lines() {
        is_code ^= line.starts_with("```");
        let is_whole = is_code || line.starts_with(['|', '#', '<']) || line.starts_with("    ");
        let indent = if line.starts_with("- ") || line.starts_with("  ") { "  " } else { "" };
        let (mut rest, mut most) = (line, COLUMNS);
        while !is_whole && rest.chars().count() > most {
            let end = rest.char_indices().nth(most).map_or(rest.len(), |(end, _)| end);
            let Some(cut) = rest[..end].rfind(' ').filter(|cut| *cut > indent.len()) else { break };
            text.push_str(&rest[..cut]);
            text.push('\n');
            text.push_str(indent);
            (rest, most) = (&rest[cut + 1..], COLUMNS - indent.len());
        }
        text.push_str(rest);
        text.push('\n');
    }
    text
}

/// Returns the date in the form of documents.
pub(super) fn today() -> String {
    let iso = Moment::of(wall()).iso();
    iso.split('T').next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn long_lines_are_broken_and_tables_and_code_are_not() {
        let words = "word ".repeat(30);
        let long = words.trim_end();
        let broken = wrapped(&format!("- {long}\n| {long} |\n```text\n{long}\n```\n"));
        let lines: Vec<&str> = broken.lines().collect();
        assert!(lines[0].len() <= 100 && lines[1].starts_with("  word"), "{broken}");
        assert_eq!(lines[2..], [&format!("| {long} |"), "```text", long, "```"]);
        assert_eq!(wrapped(&broken), broken, "once is enough");
    }
}
