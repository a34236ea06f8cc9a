//! What a calibration holds for, and how it was made.

use crate::run::device_facts;
use plumb_calibrate::Calibration;
use plumb_lab::provenance::Provenance;
use plumb_report::Section;
use plumb_report::format::{Count, Duration, Figure, Size};
use plumb_report::plot::short_bytes;
use plumb_report::table::Facts;

pub(super) fn environment(calibration: &Calibration, provenance: &Provenance) -> Section {
    let environment = &calibration.environment;
    let host = &provenance.host;
    let mut facts = Facts { caption: Some("The calibration".to_string()), ..Facts::default() };
    facts.add("Begin", &environment.date);
    facts.add("Command", &provenance.command_line);
    facts.add("Mode", format!("{}, seed {}", calibration.mode, calibration.seed));
    let access = if environment.direct { "past the page cache" } else { "through the page cache" };
    facts.add("Method", format!("{}, {access}", environment.method));
    facts.add(
        "File",
        format!(
            "{}, small requests of {}, large ones of {}",
            short_bytes(calibration.file_bytes as f64),
            short_bytes(calibration.size_small as f64),
            short_bytes(calibration.size_large as f64)
        ),
    );
    facts.add(
        "Repeats",
        format!(
            "{} of {} each, in random order within rounds, {} in all",
            Count(calibration.repeats()).figure(),
            Duration(calibration.task_time_ns).figure(),
            Duration(calibration.elapsed_ns).figure()
        ),
    );
    let machine = format!(
        "{}: {} x {}, {} of memory, {}",
        host.name,
        host.cpus.map_or("?".to_string(), |cpus| cpus.to_string()),
        host.cpu_model,
        host.memory_bytes.map(Size).figure(),
        host.kernel
    );
    facts.add("Machine", machine);
    facts.add("Release", &provenance.plumb_version);
    Section::front("environment", "Environment").facts(facts).facts(device_facts(&provenance.device))
}
