//! Changes of a server's files that no reload has loaded yet.
//!
//! A reload loads all files, so that a change which another has written and not loaded would take
//! effect with the study's. The server lists the lines of its files (`pg_file_settings`) and the
//! values in force (`pg_settings`); a line counts as unloaded if the two differ.
//!
//! Rejected: the files' times. Only a superuser sees them, and a file that was written again with
//! the same values is no change.
//!
//! Limits: `pg_hba.conf` and `pg_ident.conf` have no such list; their times are compared, and only
//! a superuser sees them. A user without `pg_read_all_settings` sees no settings of superusers. A
//! line is not judged if a session, its user or the command line has set another value, or if the
//! server shows another text than the files have ([`NOT_AS_WRITTEN`]).

use crate::PostgresError;
use crate::address::ServerAddress;
use crate::session::{ServerSession, parts_of_unit};
use std::collections::{BTreeMap, BTreeSet};
use tokio_postgres::Row;

const DURING: &str = "the server's files are compared";
/// Lines that the next reload makes the server use.
const LINES: &str = "select pg_catalog.lower(name), setting, coalesce(sourcefile, ''), coalesce(sourceline, 0)::text \
                     from pg_catalog.pg_file_settings where applied and error is null";
/// A fault because of which the server loads no line at all.
const FAULT: &str = "select coalesce(sourcefile, ''), coalesce(sourceline, 0)::text, error from pg_catalog.pg_file_settings \
                     where error <> 'setting could not be applied' \
                     and error not like '%cannot be changed without restarting%' limit 1";
/// Settings whose line has a value that the server refuses.
const REFUSED: &str = "select pg_catalog.lower(name) from pg_catalog.pg_file_settings where name is not null and error is not null";
const IN_FORCE: &str = "select pg_catalog.lower(name), coalesce(setting, ''), coalesce(unit, ''), vartype, source \
                        from pg_catalog.pg_settings where context not in ('postmaster', 'internal')";
/// The files of access rules and of users' names, if they were changed after the last load.
const ACCESS: &str = "select file from pg_catalog.unnest(array[pg_catalog.current_setting('hba_file'), pg_catalog.current_setting('ident_file')]) \
                      as file where (pg_catalog.pg_stat_file(file, true)).modification > pg_catalog.pg_conf_load_time()";
/// Settings that the server shows in its own words, or as the session's socket has them.
const NOT_AS_WRITTEN: [&str; 7] = [
    "tcp_keepalives_idle",
    "tcp_keepalives_interval",
    "tcp_keepalives_count",
    "tcp_user_timeout",
    "datestyle",
    "timezone",
    "log_timezone",
];
/// Old names of settings, which files may have, with their names in `pg_settings`.
const OLD_NAMES: [(&str, &str); 3] =
    [("sort_mem", "work_mem"), ("vacuum_mem", "maintenance_work_mem"), ("ssl_ecdh_curve", "ssl_groups")];
/// Origin of a value of the server's files.
const FROM_FILES: &str = "configuration file";
/// Value of `archive_command` while nothing is archived.
const DISABLED: &str = "(disabled)";
/// Digits of a real number that the server shows.
const REAL_ERROR: f64 = 1e-5;
/// Most changes that an error names.
const SHOWN_MOST: usize = 5;
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
    /// The file and the number of the line.
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
/// judged: a study has written them.
pub(super) fn require_none(
    server: &ServerAddress,
    is_superuser: bool,
    ours: &[&str],
) -> Result<(), PostgresError> {
    let refused = |why: String| Err(PostgresError::Unfit(format!("{server}: --allow-reload: {why}")));
    let mut session = ServerSession::connect(server, "plumb visit")?;
    let text = |row: &Row, column: usize| row.try_get::<_, String>(column).unwrap_or_default();
    if let Some(fault) = session.rows(DURING, FAULT, &[])?.first() {
        let (file, line, why) = (text(fault, 0), text(fault, 1), text(fault, 2));
        return refused(format!("{file} line {line}: {why}; the server loads no file until that is mended"));
    }
    let lines = session.rows(DURING, LINES, &[])?;
    let lines = lines.iter().map(|row| {
        let place = format!("{} line {}", text(row, 2), text(row, 3));
        (text(row, 0), Line { value: text(row, 1), place })
    });
    let not_judged = session.rows(DURING, REFUSED, &[])?;
    let not_judged: BTreeSet<String> =
        not_judged.iter().map(|row| text(row, 0)).chain(ours.iter().map(|name| name.to_string())).collect();
    let loaded = session.rows(DURING, IN_FORCE, &[])?;
    let loaded = loaded.iter().filter(|row| !not_judged.contains(&text(row, 0)));
    let loaded = loaded.map(|row| {
        let [value, unit, kind, source] = [1, 2, 3, 4].map(|column| text(row, column));
        (text(row, 0), Loaded { value, unit, kind, source })
    });
    let mut changed = changes(lines.collect(), &loaded.collect());
    if is_superuser {
        let files = session.rows(DURING, ACCESS, &[])?;
        changed.extend(files.iter().map(|row| format!("{} was changed", text(row, 0))));
    }
    if changed.is_empty() {
        return Ok(());
    }
    let more = match changed.len().saturating_sub(SHOWN_MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    changed.truncate(SHOWN_MOST);
    refused(format!(
        "a reload would load changes of others, too: {}{more}; load them first (`select pg_reload_conf()`), or take them \
         back",
        changed.join(", ")
    ))
}

/// Returns the differences of lines and values in force, in words, without texts, because a text
/// may be a secret.
fn changes(mut lines: BTreeMap<String, Line>, loaded: &BTreeMap<String, Loaded>) -> Vec<String> {
    for (old, new) in OLD_NAMES {
        if !loaded.contains_key(old)
            && let Some(line) = lines.remove(old)
        {
            lines.entry(new.to_string()).or_insert(line);
        }
    }
    let of = |(name, loaded): (&String, &Loaded)| match lines.get(name) {
        Some(line) if is_judged(name, loaded) && !is_same(name, &line.value, loaded) => {
            let Loaded { value, unit, kind, .. } = loaded;
            Some(match kind.as_str() {
                "string" => format!("{} has another {name} than is in force", line.place),
                _ => format!("{} has {name} = {}, and {value}{unit} is in force", line.place, line.value),
            })
        }
        None if loaded.source == FROM_FILES => {
            Some(format!("no file has {name} any more, which is in force"))
        }
        _ => None,
    };
    loaded.iter().filter_map(of).collect()
}

/// True if a new session has the value of the files after a reload, and the server shows that
/// value as the files have it.
fn is_judged(name: &str, loaded: &Loaded) -> bool {
    ["default", FROM_FILES].contains(&loaded.source.as_str())
        && !NOT_AS_WRITTEN.contains(&name)
        && loaded.value != DISABLED
}

/// True if a line's text means the value in force.
fn is_same(name: &str, line: &str, loaded: &Loaded) -> bool {
    let (written, found) = (line.to_lowercase(), loaded.value.to_lowercase());
    match loaded.kind.as_str() {
        "string" if name.ends_with("_directory") => {
            line.trim_end_matches('/') == loaded.value.trim_end_matches('/')
        }
        "string" => line == loaded.value,
        _ if written == found => true,
        "bool" => truth(&written).is_some() && truth(&written) == truth(&found),
        // Words of a list have other spellings, too.
        "enum" => match (written.as_str(), truth(&written)) {
            ("debug", _) => found == "debug2",
            (_, Some(true)) => found == "on" || name == "wal_compression" && found == "pglz",
            (_, Some(false)) => found == "off",
            (_, None) => false,
        },
        kind => match (amount(line, &loaded.unit), amount(&loaded.value, &loaded.unit)) {
            // Integers are rounded to their unit.
            (Some(written), Some(found)) if kind == "integer" => (written - found).abs() <= 0.5,
            (Some(written), Some(found)) => (written - found).abs() <= REAL_ERROR * found.abs(),
            _ => false,
        },
    }
}

/// Parses a truth value by the start of its word, as the server does.
fn truth(text: &str) -> Option<bool> {
    let begins = |word: &str, least: usize| text.len() >= least && word.starts_with(text);
    match text {
        "1" => Some(true),
        "0" => Some(false),
        _ if begins("true", 1) || begins("yes", 1) || begins("on", 2) => Some(true),
        _ if begins("false", 1) || begins("no", 1) || begins("off", 2) => Some(false),
        _ => None,
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
            let (times, name) = parts_of_unit(unit)?;
            (text[..text.len() - given.len()].trim(), size / (exact(name)? * times as f64))
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
        of("some", kind, unit, line, value)
    }

    fn of(name: &str, kind: &str, unit: &str, line: &str, value: &str) -> bool {
        let loaded = Loaded {
            value: value.to_string(),
            unit: unit.to_string(),
            kind: kind.to_string(),
            ..Loaded::default()
        };
        is_same(name, line, &loaded)
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
            ("real", "", "0.12345678", "0.123457"),
            ("bool", "", "t", "on"),
            ("bool", "", "of", "off"),
            ("enum", "", "yes", "on"),
            ("enum", "", "false", "off"),
            ("enum", "", "debug", "debug2"),
            ("enum", "", "Replica", "replica"),
            ("string", "", "cp %p A", "cp %p A"),
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
            ("enum", "", "on", "local"),
            ("enum", "", "on", "partition"),
            ("enum", "", "on", "auto"),
            ("bool", "", "o", "on"),
            ("string", "", "cp %p A", "cp %p a"),
            ("string", "", "%m  ", "%m "),
            ("integer", "kB", "much", "4096"),
        ] {
            assert!(!same(kind, unit, line, value), "{kind} {line} {value}{unit}");
        }
        assert!(of("wal_compression", "enum", "", "on", "pglz"));
        assert!(!of("wal_compression", "enum", "", "on", "lz4"));
        assert!(of("log_directory", "string", "", "/var/log/pg/", "/var/log/pg"));
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
            changes(lines, &found),
            [
                "p.conf line 7 has a = 3, and 1 is in force",
                "p.conf line 7 has b = 4, and 1 is in force",
                "no file has e any more, which is in force",
            ]
        );
    }

    #[test]
    fn texts_are_no_part_of_an_error_and_old_or_own_words_are_no_changes() {
        let line = |value: &str| Line { value: value.to_string(), place: "p.conf line 7".to_string() };
        let text = |value: &str| Loaded {
            value: value.to_string(),
            kind: "string".to_string(),
            source: FROM_FILES.to_string(),
            ..Loaded::default()
        };
        let lines = [
            ("primary_conninfo", "password=new"),
            ("ssl_ecdh_curve", "prime256v1"),
            ("archive_command", "cp %p /a/%f"),
            ("datestyle", "european"),
        ];
        let lines = lines.into_iter().map(|(name, value)| (name.to_string(), line(value))).collect();
        let found = [
            ("primary_conninfo", text("password=old")),
            ("ssl_groups", text("prime256v1")),
            ("archive_command", text(DISABLED)),
            ("datestyle", text("ISO, DMY")),
        ];
        let found = found.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        assert_eq!(changes(lines, &found), ["p.conf line 7 has another primary_conninfo than is in force"]);
    }
}
