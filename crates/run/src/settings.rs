//! Settings as reports and records show them.

use crate::device_probe;
use crate::evidence::LogDone;
use plumb_engine::redo::Log;
use plumb_engine::settings::Domain;
use plumb_engine::{EngineError, Instance, Setting, Settings};
use plumb_host::priority;
use plumb_io::DirectIo;
use plumb_units::Bytes;

/// Returns a setting's value as typed, in one form for each value: `4M`, whether it was
/// given as `4m` or `4096K`.
pub fn shown(settings: &Settings, setting: Setting) -> String {
    match (setting.row().domain, settings.optional_number(setting)) {
        (Domain::Size(..) | Domain::PowerOfTwo(..) | Domain::BlockSize, Some(bytes)) => {
            Bytes(bytes).as_setting()
        }
        (_, Some(number)) => number.to_string(),
        (_, None) => settings.word(setting).to_string(),
    }
}

/// Returns the log's choice for a setting with the value `auto`.
pub fn of_log(settings: &Settings, setting: Setting, log: &LogDone) -> Option<String> {
    let taken = match setting {
        Setting::LogSyncMethod => log.sync.method.name(),
        Setting::LogFileIo if log.direct == DirectIo::Required => "direct",
        Setting::LogFileIo => "buffered",
        Setting::HighPriorityProcesses if log.lgwr_nice == Some(priority::FIRST) => "lgwr",
        Setting::HighPriorityProcesses => "none",
        _ => return None,
    };
    (settings.word(setting) == "auto").then(|| taken.to_string())
}

/// Returns the effective settings of an open instance, and of its log if open, a line each. Values
/// left to the engine are replaced by its choices. Instances with equal lines behave alike. A value
/// found only during the work (`sort_read_fac`) stays as requested.
pub fn effective(instance: &Instance, log: Option<&Log>) -> Result<Vec<String>, EngineError> {
    let direct_writes = device_probe::plan(instance)?.direct_writes;
    let log = log.map(|log| LogDone::of(log, None));
    let value = |setting| match setting {
        Setting::IoMethod => instance.access.method.kind().to_string(),
        Setting::ParallelDegree => instance.access.servers.degree.to_string(),
        Setting::SortDirectWrites => direct_writes.to_string(),
        _ => log
            .as_ref()
            .and_then(|log| of_log(&instance.settings, setting, log))
            .unwrap_or_else(|| shown(&instance.settings, setting)),
    };
    Ok(instance
        .settings
        .recorded()
        .map(|setting| format!("{}={}", setting.row().name, value(setting)))
        .collect())
}

/// Hash of the settings in a record, FNV-1a with 64 bits: equal hashes are equal configurations.
pub fn hash(settings: &Settings) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for setting in settings.recorded() {
        let line = format!("{}={}\n", setting.row().name, shown(settings, setting));
        for byte in line.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Settings {
        let mut settings = Settings::default();
        settings.set(name, value, "--set").expect("valid");
        settings
    }

    #[test]
    fn the_hash_depends_on_values_and_not_on_origins() {
        assert_eq!(hash(&with("sort_area_size", "4096k")), hash(&Settings::default()));
        assert_ne!(hash(&with("db_block_size", "16K")), hash(&Settings::default()));
    }
}
