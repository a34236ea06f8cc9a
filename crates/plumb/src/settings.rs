//! `--set name=value`.

use crate::failure::Failure;
use plumb_engine::{Setting, Settings};

/// Parses settings, over the defaults. Fails if one is not of the form `name=value`, there is no
/// such setting, or the value is out of range.
pub fn parse(arguments: &[String]) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    for argument in arguments {
        let Some((name, value)) = argument.split_once('=') else {
            return Err(Failure::usage(format!(
                "--set {argument}: expected name=value, as in --set sort_area_size=64M"
            )));
        };
        settings.set(name.trim(), value, "--set")?;
    }
    Ok(settings)
}

/// Parses settings for a persistent database. Fails if files in memory are requested.
pub fn parse_for_files(arguments: &[String]) -> Result<Settings, Failure> {
    let settings = parse(arguments)?;
    if settings.word(Setting::IoMethod) == "null" {
        return Err(Failure::usage(
            "--set io_method=null: it keeps the files in memory, and this database is on disk; \
             choose sync, threads, io_uring or auto (null is for `plumb run`)",
        ));
    }
    Ok(settings)
}
