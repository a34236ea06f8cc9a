//! What it holds for, and how it was made.

use crate::document::calibration::context::CalibrationContext;
use crate::document::run::device_facts;
use plumb_report::Section;
use plumb_report::format::{Count, Duration, Figure, Size};
use plumb_report::plot::short_bytes;
use plumb_report::table::Facts;

pub(super) fn environment(context: &CalibrationContext) -> Section {
    let header = &context.header;
    let host = &header.host;
    let mut facts = Facts { caption: Some("The calibration".to_string()), ..Facts::default() };
    facts.add("Begin", &header.begin_time);
    facts.add("Command", &header.command_line);
    facts.add("Mode", format!("{}, seed {}", header.mode, header.seed));
    let access = if header.direct { "past the page cache" } else { "through the page cache" };
    facts.add("Method", format!("{}, {access}", header.method));
    facts.add(
        "File",
        format!(
            "{}, small requests of {}, large ones of {}",
            short_bytes(header.file_bytes as f64),
            short_bytes(header.small_bytes as f64),
            short_bytes(header.large_bytes as f64)
        ),
    );
    facts.add(
        "Repeats",
        format!(
            "{} of {} each, in random order within rounds, {} in all",
            Count(header.repeats).figure(),
            Duration(header.repeat_ns).figure(),
            Duration(header.elapsed_ns).figure()
        ),
    );
    let machine = format!(
        "{}: {} x {}, {} of memory, {}",
        host.name,
        host.cpus,
        host.cpu_model,
        Size(host.memory_bytes).figure(),
        host.kernel
    );
    facts.add("Machine", machine);
    facts.add("Release", &header.plumb_version);
    Section::front("environment", "Environment").facts(facts).facts(device_facts(&context.device))
}
