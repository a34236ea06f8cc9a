//! Ends of messages that name a command or an option. Libraries state the fact and the cure without
//! the command line.

use plumb_calibrate::CalibrateError;
use plumb_engine::{EngineError, LineCure};
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
        EngineError::LineTooLong { cure: LineCure::RecordLength, .. } => " with --record BYTES".to_string(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_only_for_what_it_cures() {
        let exists = |kind: &'static str| EngineError::Exists { kind, name: "T".to_string() };
        assert_eq!(of_engine(&exists("table")), " with `plumb drop T`");
        // `plumb drop` removes no database.
        assert_eq!(of_engine(&exists("database")), "");
        let home = Path::new("/u01/plumb.db").to_path_buf();
        let missing = EngineError::NoDatabase { home: home.clone() };
        let text = format!("{missing}{}", of_engine(&missing));
        assert!(text.ends_with("check the spelling, or make one with `plumb load`"), "{text}");
        let half = EngineError::HalfRestored { home };
        let text = format!("{half}{}", of_engine(&half));
        assert!(text.ends_with("restore again, or remove it by `plumb clean --path /u01`"), "{text}");
        let left = EngineError::Unfinished { path: "out.unfinished".into() };
        assert_eq!(of_engine(&left), "; `plumb clean --path .` removes what a killed one left");
    }
}
