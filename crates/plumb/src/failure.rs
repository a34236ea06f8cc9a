//! A command that failed: one line and an exit code.

use crate::cure;
use crate::outcome::Outcome;
use clap::error::{ContextKind, ContextValue};
use plumb_engine::EngineError;
use plumb_host::device::DeviceError;
use plumb_io::IoError;
use plumb_io::named_directory::NamedDirectoryError;
use plumb_record::RecordError;
use plumb_run::RunError;
use plumb_run::calibration_store::StoredError;
use plumb_study::StudyError;
use plumb_workload::CsvError;

/// Words with which a statement begins.
const SQL_WORDS: [&str; 10] =
    ["select", "insert", "update", "delete", "create", "alter", "truncate", "merge", "with", "explain"];
const NO_SQL: &str = "plumb has no SQL: `head`, `count` and `export` read rows by --where, `load`, `copy`, \
                      `index` and `drop` change them; transactions are those of the library plumb-engine, \
                      and `plumb plans --target` takes a statement for a server";

/// Message printed after `plumb: `, and the exit code.
#[derive(Debug)]
pub struct Failure {
    /// Message of one line, without the program's name.
    pub message: String,
    /// Outcome, which has the exit code.
    pub outcome: Outcome,
    /// True if a study can continue from its bundle; the history then leaves it out.
    pub resumable: bool,
}

impl Failure {
    fn of(message: impl Into<String>, outcome: Outcome) -> Failure {
        Failure { message: message.into(), outcome, resumable: false }
    }

    /// Returns an error of the run.
    pub fn run(message: impl Into<String>) -> Failure {
        Failure::of(message, Outcome::Error)
    }

    /// Returns a failed verification of data.
    pub fn finding(message: impl Into<String>) -> Failure {
        Failure::of(message, Outcome::INVALID)
    }

    /// Returns an error of wrong usage.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::of(message, Outcome::Usage)
    }

    /// Returns clap's error in one line: its message, its tip, and the command whose help shows the
    /// usage in place of the usage block.
    pub fn of_usage(error: &clap::Error) -> Failure {
        if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
            && SQL_WORDS.contains(&word.to_ascii_lowercase().as_str())
        {
            return Failure::usage(format!("{word}: {NO_SQL}"));
        }
        let text = error.to_string();
        let mut parts: Vec<String> = Vec::new();
        let mut help = "plumb help".to_string();
        for paragraph in text.split("\n\n") {
            let line = paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" ");
            let line = line.strip_prefix("error: ").unwrap_or(&line).trim().to_string();
            if let Some(usage) = line.strip_prefix("Usage: plumb ") {
                let command = usage.split(' ').next().unwrap_or_default();
                let is_word = command.starts_with(|letter: char| letter.is_ascii_lowercase());
                help = if is_word { format!("plumb {command} --help") } else { help };
            } else if !(line.is_empty() || line.starts_with("For more information") || is_for_values(&line)) {
                parts.push(line);
            }
        }
        Failure::usage(format!("{}; `{help}` shows the usage", parts.join("; ")))
    }
}

/// True if clap suggests passing an option as a value: a mistyped option is far likelier.
fn is_for_values(tip: &str) -> bool {
    tip.starts_with("tip: to pass ") && tip.contains(" as a value, use ")
}

impl From<StoredError> for Failure {
    fn from(error: StoredError) -> Failure {
        Failure::run(error.to_string())
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        let said = format!("{error}{}", cure::of_engine(&error));
        let outcome = match error {
            EngineError::Setting { .. }
            | EngineError::NoSuchSetting { .. }
            | EngineError::Contradiction { .. }
            | EngineError::LogPlace { .. } => Outcome::Usage,
            error if error.is_damage() => Outcome::INVALID,
            _ => Outcome::Error,
        };
        Failure::of(said, outcome)
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Engine(error) => Failure::from(error),
            RunError::Study(error) => Failure::from(error),
            other => Failure::run(other.to_string()),
        }
    }
}

impl From<StudyError> for Failure {
    fn from(error: StudyError) -> Failure {
        match error {
            StudyError::Target(error) => match error.downcast::<RunError>() {
                Ok(error) => Failure::from(*error),
                Err(error) => Failure::run(error.to_string()),
            },
            StudyError::File(_)
            | StudyError::Plan { .. }
            | StudyError::Budget { .. }
            | StudyError::OneTreatment { .. }
            | StudyError::Sides { .. } => Failure::usage(error.to_string()),
            StudyError::Tampered { .. } => Failure::finding(error.to_string()),
            other => Failure::run(other.to_string()),
        }
    }
}

impl From<NamedDirectoryError> for Failure {
    fn from(error: NamedDirectoryError) -> Failure {
        Failure::run(error.to_string())
    }
}

impl From<IoError> for Failure {
    fn from(error: IoError) -> Failure {
        Failure::run(error.to_string())
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Failure {
        Failure::run(error.to_string())
    }
}

impl From<CsvError> for Failure {
    fn from(error: CsvError) -> Failure {
        Failure::run(format!("{error}{}", cure::of_csv(&error)))
    }
}

impl From<RecordError> for Failure {
    fn from(error: RecordError) -> Failure {
        Failure::run(error.to_string())
    }
}
