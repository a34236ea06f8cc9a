//! The ends of messages that name a command or an option. The libraries state the fact and what
//! cures it, and know no command line.

use plumb_calibrate::CalibrateError;
use plumb_engine::EngineError;
use plumb_record::trace::TraceError;
use plumb_workload::CsvError;
use std::path::Path;

/// Returns the rest of an engine's message.
pub fn of_engine(error: &EngineError) -> String {
    match error {
        EngineError::NoSuchSetting { .. } => "; `plumb list settings` shows them all".to_string(),
        EngineError::InUse { .. } => ", or choose another --path".to_string(),
        EngineError::NoDatabase { .. } => " with `plumb load`".to_string(),
        EngineError::HalfRestored { home } => format!(" by `plumb clean --path {}`", around(home)),
        EngineError::Exists { kind: "table" | "index", name } => format!(" with `plumb drop {name}`"),
        EngineError::Unfinished { path } => {
            format!("; `plumb clean --path {}` removes what a killed one left", around(path))
        }
        EngineError::Unusable(error) => of_engine(error),
        _ => String::new(),
    }
}

/// Returns the rest of a calibration's message.
pub fn of_calibration(error: &CalibrateError) -> &'static str {
    match error {
        CalibrateError::InMemory { .. } => "; choose a --path on a disk",
        CalibrateError::NotEnoughSpace { .. }
        | CalibrateError::ReadOnly { .. }
        | CalibrateError::Directory { .. }
        | CalibrateError::OpenedOtherwise { .. } => ", or choose another --path",
        _ => "",
    }
}

/// Returns the rest of a message about a CSV file.
pub fn of_csv(error: &CsvError) -> String {
    match error {
        CsvError::BehindGzip { path, .. } => format!(": zcat {} | plumb load -", path.display()),
        _ => String::new(),
    }
}

/// Returns the rest of a message about a trace.
pub fn of_trace(error: &TraceError) -> &'static str {
    match error {
        TraceError::Read { .. } => "; `plumb run --trace` keeps one in its bundle",
        _ => "",
    }
}

fn around(path: &Path) -> std::path::Display<'_> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new(".")).display()
}
