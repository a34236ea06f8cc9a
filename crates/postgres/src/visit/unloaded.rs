//! Changes of a server's files that no reload has loaded yet.
//!
//! A reload loads all files, so that a change which another has written and not loaded would take
//! effect with the study's. The server lists the lines of its files (`pg_file_settings`) and the
//! values in force (`pg_settings`); a line counts as unloaded if the two differ.
//!
//! Rejected: the files' times. Only a superuser sees them, and a file that was written again with
//! the same values is no change.
//!
//! Limits: `pg_hba.conf` has no such list; its time is compared, which only a superuser sees. A
//! line is not judged where a session, its user or the command line has set another value.

use crate::PostgresError;
use crate::address::ServerAddress;
use crate::receipts::is_on;
use crate::session::ServerSession;
use postgres::Row;
use std::collections::BTreeMap;

/// Lines that the next reload makes the server use.
const LINES: &str = "select lower(name), setting, coalesce(sourcefile, ''), coalesce(sourceline, 0)::text \
                     from pg_file_settings where applied and error is null";
const IN_FORCE: &str = "select lower(name), coalesce(setting, ''), coalesce(unit, ''), vartype, source \
                        from pg_settings where context not in ('postmaster', 'internal')";
/// The file of access rules, if it was changed after the last load.
const ACCESS: &str = "select file from (select current_setting('hba_file') as file) as files \
                      where (pg_stat_file(file, true)).modification > pg_conf_load_time()";
/// Amounts of a unit in bytes, and in microseconds.
const UNITS: [(&str, f64); 11] = [
    ("B", 1.0),
    ("kB", 1024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
    ("us", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("min", 6e7),
    ("h", 3.6e9),
    ("d", 8.64e10),
];

/// A line of the server's files.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    value: String,
    /// File and line.
    place: String,
}

/// A setting as a session has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Loaded {
    value: String,
    unit: String,
    kind: String,
    source: String,
}

/// Rejects a server whose files have changes that no reload has loaded. Settings in `ours` are not
/// judged: a killed study has written them.
pub(super) fn require_none(
    server: &ServerAddress,
    is_superuser: bool,
    ours: &[&str],
) -> Result<(), PostgresError> {
    const DURING: &str = "the server's files are looked at";
    let mut session = ServerSession::connect(server, "plumb visit")?;
    let text = |row: &Row, column: usize| row.try_get::<_, String>(column).unwrap_or_default();
    let lines = session.rows(DURING, LINES, &[])?;
    let lines = lines.iter().map(|row| {
        let place = format!("{} line {}", text(row, 2), text(row, 3));
        (text(row, 0), Line { value: text(row, 1), place })
    });
    let loaded = session.rows(DURING, IN_FORCE, &[])?;
    let others = loaded.iter().filter(|row| !ours.contains(&text(row, 0).as_str()));
    let loaded = others.map(|row| {
        let [value, unit, kind, source] = [1, 2, 3, 4].map(|column| text(row, column));
        (text(row, 0), Loaded { value, unit, kind, source })
    });
    let mut changed = changes(&lines.collect(), &loaded.collect());
    if is_superuser {
        let file = session.rows(DURING, ACCESS, &[])?;
        changed.extend(file.iter().map(|row| format!("{} was changed", text(row, 0))));
    }
    match changed.as_slice() {
        [] => Ok(()),
        changed => Err(PostgresError::Unfit(format!(
            "{server}: --allow-reload: a reload would load changes of others, too: {}; load them first (`select \
             pg_reload_conf()`), or take them back",
            changed.join(", ")
        ))),
    }
}

/// Returns the differences of lines and values in force, in words.
fn changes(lines: &BTreeMap<String, Line>, loaded: &BTreeMap<String, Loaded>) -> Vec<String> {
    let of = |(name, loaded): (&String, &Loaded)| match lines.get(name) {
        Some(line) if is_judged(loaded) && !is_same(name, &line.value, loaded) => {
            let Loaded { value, unit, .. } = loaded;
            Some(format!("{} has {name} = {}, and {value}{unit} is in force", line.place, line.value))
        }
        None if loaded.source == "configuration file" => {
            Some(format!("no file has {name} any more, and {}{} is in force", loaded.value, loaded.unit))
        }
        _ => None,
    };
    loaded.iter().filter_map(of).collect()
}

/// True if the value in force would be that of the files.
fn is_judged(loaded: &Loaded) -> bool {
    ["default", "configuration file"].contains(&loaded.source.as_str())
}

/// True if a line's text means the value in force.
fn is_same(name: &str, line: &str, loaded: &Loaded) -> bool {
    let plain = |text: &str| text.to_lowercase().replace([' ', '"'], "");
    let (written, found) = (plain(line), plain(&loaded.value));
    if written == found {
        return true;
    }
    match loaded.kind.as_str() {
        "bool" => is_on(&written) == is_on(&found),
        // Of a list of words, `on` and `off` have other spellings, too.
        "enum" if is_on(&written) => found != "off",
        "enum" => ["false", "no", "0"].contains(&written.as_str()) && found == "off",
        // The order of day and month is kept if the line has none.
        "string" => name == "datestyle" && found.starts_with(&written),
        kind => match (amount(line, &loaded.unit), amount(&loaded.value, &loaded.unit)) {
            // Integers are rounded to their unit.
            (Some(written), Some(found)) if kind == "integer" => (written - found).abs() <= 0.5,
            (Some(written), Some(found)) => (written - found).abs() <= 1e-9 * found.abs(),
            _ => false,
        },
    }
}

/// Parses a number with or without a unit; returns it in the setting's unit, such as `8kB`.
fn amount(text: &str, unit: &str) -> Option<f64> {
    let text = text.trim();
    let is_letter = |letter: char| letter.is_ascii_alphabetic();
    let given = text.trim_start_matches(|letter| !is_letter(letter));
    // An exponent is no unit.
    let exact = |name: &str| UNITS.iter().find(|(known, _)| *known == name).map(|(_, size)| *size);
    let (number, scale) = match exact(given) {
        Some(size) => {
            let digits = unit.trim_end_matches(is_letter);
            let times: f64 = if digits.is_empty() { 1.0 } else { digits.parse().ok()? };
            (text[..text.len() - given.len()].trim(), size / (exact(&unit[digits.len()..])? * times))
        }
        None => (text, 1.0),
    };
    let parsed = match number.strip_prefix('0').filter(|rest| rest.len() > 1 && !rest.contains('.')) {
        Some(hex) if hex.starts_with(['x', 'X']) => i64::from_str_radix(&hex[1..], 16).ok()? as f64,
        Some(octal) => i64::from_str_radix(octal, 8).ok()? as f64,
        None => number.parse::<f64>().ok()?,
    };
    Some(parsed * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(kind: &str, unit: &str, line: &str, value: &str) -> bool {
        let loaded = Loaded {
            value: value.to_string(),
            unit: unit.to_string(),
            kind: kind.to_string(),
            ..Loaded::default()
        };
        is_same("some", line, &loaded)
    }

    #[test]
    fn a_line_means_the_value_in_force_in_each_spelling() {
        for (kind, unit, line, value) in [
            ("integer", "8kB", "128MB", "16384"),
            ("integer", "MB", "1GB", "1024"),
            ("integer", "kB", "64", "64"),
            ("integer", "kB", "64 MB", "65536"),
            ("integer", "s", "5min", "300"),
            ("integer", "ms", "1s", "1000"),
            ("integer", "", "0600", "0600"),
            ("integer", "", "0x10", "16"),
            ("integer", "kB", "-1", "-1"),
            ("integer", "16MB", "1GB", "64"),
            ("real", "", "4.0", "4"),
            ("real", "ms", "0.5s", "500"),
            ("real", "", "1e2", "100"),
            ("bool", "", "true", "on"),
            ("bool", "", "no", "off"),
            ("enum", "", "on", "pglz"),
            ("enum", "", "false", "off"),
            ("enum", "", "Replica", "replica"),
            ("string", "", "\"$user\",public", "\"$user\", public"),
        ] {
            assert!(same(kind, unit, line, value), "{kind} {line} {value}{unit}");
        }
        for (kind, unit, line, value) in [
            ("integer", "8kB", "129MB", "16384"),
            ("integer", "kB", "5MB", "4096"),
            ("integer", "s", "5s", "300"),
            ("real", "", "3", "4"),
            ("bool", "", "off", "on"),
            ("enum", "", "lz4", "pglz"),
            ("enum", "", "on", "off"),
            ("string", "", "a", "b"),
            ("integer", "kB", "much", "4096"),
        ] {
            assert!(!same(kind, unit, line, value), "{kind} {line} {value}{unit}");
        }
    }

    #[test]
    fn lines_that_are_new_changed_or_gone_are_changes_and_hidden_ones_are_not() {
        let line = |value: &str| Line { value: value.to_string(), place: "p.conf line 7".to_string() };
        let loaded = |value: &str, source: &str| Loaded {
            value: value.to_string(),
            kind: "integer".to_string(),
            source: source.to_string(),
            ..Loaded::default()
        };
        let lines = [("a", "3"), ("b", "4"), ("c", "5"), ("d", "6")];
        let lines = lines.into_iter().map(|(name, value)| (name.to_string(), line(value))).collect();
        let found = [
            ("a", loaded("1", "default")),
            ("b", loaded("1", "configuration file")),
            ("c", loaded("1", "session")),
            ("d", loaded("6", "configuration file")),
            ("e", loaded("7", "configuration file")),
            ("f", loaded("8", "default")),
        ];
        let found = found.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        assert_eq!(
            changes(&lines, &found),
            [
                "p.conf line 7 has a = 3, and 1 is in force",
                "p.conf line 7 has b = 4, and 1 is in force",
                "no file has e any more, and 7 is in force",
            ]
        );
    }
}
