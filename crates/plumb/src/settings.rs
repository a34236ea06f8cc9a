//! `--set name=value`.

use crate::failure::Failure;
use plumb_engine::settings::Domain;
use plumb_engine::{Setting, Settings};
use plumb_units::Bytes;

/// Settings with these values set over the defaults.
///
/// # Errors
/// When one is not of the form `name=value`, there is no such setting, or the
/// value is out of range.
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

/// Settings for a database that stays.
///
/// # Errors
/// As [`parse`], and when files in memory are asked for.
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

/// A setting's value as it would be typed, in one form for each value: `4M`,
/// whether it was given as `4m` or `4096K`.
#[must_use]
pub fn shown(settings: &Settings, setting: Setting) -> String {
    match (setting.row().domain, settings.optional_number(setting)) {
        (Domain::Size(..) | Domain::PowerOfTwo(..) | Domain::BlockSize, Some(bytes)) => {
            Bytes(bytes).as_setting()
        }
        (_, Some(number)) => number.to_string(),
        (_, None) => settings.word(setting).to_string(),
    }
}

/// A hash over all settings: equal hashes are equal configurations. FNV-1a, 64 bits.
#[must_use]
pub fn hash(settings: &Settings) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for setting in Setting::ALL {
        let line = format!("{}={}\n", setting.row().name, shown(settings, *setting));
        for byte in line.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_of_the_values_and_not_of_where_they_came_from() {
        let explicit = parse(&["sort_area_size=4096k".to_string()]).expect("valid");
        assert_eq!(hash(&explicit), hash(&Settings::default()));
        let other = parse(&["db_block_size=16K".to_string()]).expect("valid");
        assert_ne!(hash(&other), hash(&Settings::default()));
    }
}
