//! The machine that a benchmark ran on, for its document.

use plumb_io::device;
use plumb_units::Bytes;
use std::fs;
use std::path::Path;

/// The machine as it was before the first run.
#[derive(Debug)]
pub(super) struct Machine {
    lines: Vec<String>,
}

impl Machine {
    /// Reads what the kernel tells.
    pub(super) fn describe(directory: &Path) -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut lines = vec![
            format!("{processors} processors, {}", processor(&read("/proc/cpuinfo"))),
            format!("{} of memory", memory_total(&read("/proc/meminfo"))),
            format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            format!("load average before the first run: {}", load_average(&read("/proc/loadavg"))),
        ];
        if let Ok(described) = device::describe(directory) {
            lines.push(format!("file system: {}", described.mount.file_system));
            lines.extend(described.stack.iter().map(|layer| format!("device: {layer}")));
            lines.extend(device::notes(&described));
        }
        Machine { lines }
    }

    /// One fact a line.
    pub(super) fn show(&self) -> String {
        self.lines.iter().fold(String::new(), |text, line| text + "- " + line + "\n")
    }
}

fn processor(cpuinfo: &str) -> String {
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or("model unknown".to_string(), |(_, model)| model.trim().to_string())
}

fn memory_total(meminfo: &str) -> Bytes {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    Bytes(total.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * Bytes::K)
}

fn load_average(loadavg: &str) -> String {
    loadavg.split_whitespace().take(3).collect::<Vec<&str>>().join(" ")
}

/// Seconds since 1970 as a date, by the days of eras of 400 years.
pub(super) fn date(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March, so that the leap day is the last of the year.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(951_782_400), "2000-02-29");
        assert_eq!(date(1_767_225_599), "2025-12-31");
        assert_eq!(date(1_767_225_600), "2026-01-01");
    }

    #[test]
    fn facts_of_the_machine_are_found_or_said_to_be_unknown() {
        assert_eq!(processor("processor\t: 0\nmodel name\t: A  CPU @ 2\n"), "A  CPU @ 2");
        assert_eq!(processor(""), "model unknown");
        assert_eq!(memory_total("MemTotal:       2048 kB\nMemFree: 1 kB\n"), Bytes(2 * Bytes::M));
        assert_eq!(load_average("0.10 0.20 0.30 1/100 4711\n"), "0.10 0.20 0.30");
    }
}
