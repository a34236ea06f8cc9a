//! Finds the words of a report that say whose system it is of.
//!
//! ```text
//! sheets ──[titles of columns]──> names: databases, hosts, services, owners, objects, statements
//!        ──[headings, events]───> vocabulary: words that the reports of all systems have
//! ```
//! A name is found by its field and not by its form, because `ORCL` and `LGWR` have one form. A
//! copy without the names keeps the vocabulary, so that it reads as the report does.

use crate::figure::sheet::{Sheet, plain};
use crate::format::awr::sections::SECTIONS;
use crate::report::Report;
use plumb_events::{Event, Statistic};
use std::collections::{BTreeMap, BTreeSet};

/// The kind of a field whose text is a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Named {
    Host,
    /// An owner of objects, or an account.
    User,
    /// A database, instance, service, module, object, tablespace or file.
    Thing,
    Statement,
}

/// Words of the reports of a file.
#[derive(Debug, Default)]
pub struct ReportWords {
    /// Names, each with the kind of its field.
    pub names: BTreeMap<String, Named>,
    /// Headings, events, statistics and parameters.
    pub vocabulary: BTreeSet<String>,
}

/// Titles of columns whose cells are names, without blanks and in lower case.
const FIELDS: &[(Named, &[&str])] = &[
    (Named::Host, &["host", "hostname", "nodename", "machine"]),
    (Named::User, &["owner", "schema", "username", "parsingschema", "schemaname", "rolname"]),
    (
        Named::Thing,
        &[
            "dbname",
            "uniquename",
            "dbuniquename",
            "instance",
            "instname",
            "instancename",
            "containername",
            "pdbname",
            "servicename",
            "service",
            "module",
            "sqlmodule",
            "action",
            "objectname",
            "subobjectname",
            "tablespace",
            "tablespacename",
            "tsname",
            "filename",
            "datname",
            "relname",
            "indexrelname",
            "funcname",
        ],
    ),
    (Named::Statement, &["sqltext", "query"]),
];
/// Titles of columns whose cells are words of every report, without blanks and in lower case.
const SHARED: &[&str] = &[
    "event",
    "eventname",
    "waitevent",
    "waitclass",
    "statisticname",
    "statistic",
    "parametername",
    "name",
    "functionname",
    "filetypename",
    "function/filename",
    "latchname",
    "enqueuetype(requestreason)",
    "namespace",
    "cache",
    "component",
    "pool",
    "poolname",
    "category",
    "class",
    "mutextype",
    "location",
];
/// Parameters whose values are names.
const PARAMETERS: &[&str] = &[
    "db_name",
    "db_unique_name",
    "db_domain",
    "instance_name",
    "service_names",
    "undo_tablespace",
    "remote_listener",
    "local_listener",
    "listener_networks",
    "dispatchers",
    "spfile",
    "control_files",
    "db_recovery_file_dest",
    "db_create_file_dest",
    "audit_file_dest",
    "background_dump_dest",
    "user_dump_dest",
    "core_dump_dest",
    "diagnostic_dest",
    "log_archive_dest_1",
    "log_archive_dest_2",
    "log_archive_config",
    "fal_server",
    "dg_broker_config_file1",
    "dg_broker_config_file2",
    "cluster_interconnects",
];
/// Names that every database has.
const EVERYWHERE: &str = "\
    sys system sysaux users temp public sysman dbsnmp sys$users sys$background unnamed missing \
    unavailable postgres template0 template1 total sql*plus oracle datafile onlinelog controlfile \
    tempfile parameterfile archivelog protocol tcp tcps address host port service service_name \
    description address_list undotbs1 undotbs2 cdb$root pdb$seed data primary standby true false \
    none auto manual null yes no";

/// Returns the names and the vocabulary of reports.
#[must_use]
pub fn words<'r>(reports: impl IntoIterator<Item = &'r Report>) -> ReportWords {
    let mut words = ReportWords::default();
    for report in reports {
        report.sheets.iter().for_each(|sheet| of_sheet(sheet, &mut words));
        words.vocabulary.extend(report.empty.iter().map(|remark| heading(&remark.text)));
    }
    // The head of a report has the names of its database: no heading makes them common.
    let ReportWords { names, vocabulary } = &mut words;
    vocabulary.retain(|word| !names.contains_key(word));
    vocabulary.extend(EVERYWHERE.split_whitespace().map(str::to_string));
    vocabulary.extend(Event::ALL.iter().map(|event| event.name().to_lowercase()));
    vocabulary.extend(Statistic::ALL.iter().map(|statistic| statistic.name().to_lowercase()));
    for section in SECTIONS.iter() {
        let titles = section.columns.iter().flat_map(|column| column.headings);
        vocabulary.extend(section.headings.iter().chain(titles).map(|text| text.to_lowercase()));
    }
    words
}

/// Returns a heading without the names of the database, which text repeats on every page.
fn heading(text: &str) -> String {
    text.split("DB/Inst").next().unwrap_or_default().trim().to_lowercase()
}

fn of_sheet(sheet: &Sheet, words: &mut ReportWords) {
    words.vocabulary.insert(heading(&sheet.heading));
    words.vocabulary.extend(sheet.columns.iter().map(|column| column.name.to_lowercase()));
    for (at, column) in sheet.columns.iter().enumerate() {
        let title = plain(&column.name);
        let field = FIELDS.iter().find(|(_, titles)| titles.contains(&title.as_str()));
        let is_shared = SHARED.contains(&title.as_str());
        for cell in sheet.rows.iter().filter_map(|row| row.cells.get(at)) {
            match field {
                Some((named, _)) => add(*named, &cell.raw, words),
                None if is_shared => {
                    words.vocabulary.insert(cell.raw.trim_end_matches(':').to_lowercase());
                }
                None => {}
            }
        }
    }
    if sheet.section == "parameters" {
        for row in &sheet.rows {
            let name = sheet.text(row, "name").to_lowercase();
            let values = ["value", "end"].map(|key| sheet.text(row, key));
            let is_of_names = PARAMETERS.contains(&name.as_str());
            values.into_iter().filter(|_| is_of_names).for_each(|value| add_value(&name, value, words));
        }
    }
}

fn add(named: Named, text: &str, words: &mut ReportWords) {
    let text = text.trim();
    let is_name = text.chars().any(char::is_alphabetic) && !text.starts_with('*') && text.len() > 1;
    if !is_name {
        return;
    }
    match named {
        Named::Thing if text.contains(['/', '\\']) => add_path(text, words),
        Named::Statement => {
            words.names.entry(text.to_string()).or_insert(named);
        }
        named => {
            words.names.entry(text.to_lowercase()).or_insert(named);
        }
    }
}

/// Adds the parts of a path and of a file's name: `+DATA/orcl/spfileorcl.ora`.
fn add_path(path: &str, words: &mut ReportWords) {
    for part in path.split(['/', '\\']) {
        add(Named::Thing, part.trim_start_matches('+'), words);
    }
}

/// Adds the names in the value of a parameter: paths, hosts with a port, services in brackets.
fn add_value(parameter: &str, value: &str, words: &mut ReportWords) {
    for part in value.split([',', ' ', '(', ')', '\'', '"']).filter(|part| !part.is_empty()) {
        let (key, part) = part.split_once('=').unwrap_or(("", part));
        let is_host = parameter.ends_with("listener") || key.eq_ignore_ascii_case("host");
        match part.split_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit())) {
            Some((host, _)) => add(Named::Host, host, words),
            None if is_host => add(Named::Host, part, words),
            None => add(Named::Thing, part, words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{READERS, Source, reader};
    use std::path::Path;

    #[test]
    fn names_are_those_of_fields_and_no_heading_is_one() {
        let text = "WORKLOAD REPOSITORY report for\n\n\
            DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC\n\
            ------------ ----------- ------------ -------- --------------- ----------- ---\n\
            ZYX           1269760792 zyx1                1 31-Oct-14 11:00 11.2.0.4.0  NO\n\n\
            Host Name        Platform                         CPUs\n\
            ---------------- -------------------------------- ----\n\
            ZYXHOST1         Linux x86 64-bit                   24\n\n\
            Segments by Logical Reads        DB/Inst: ZYX/zyx1  Snaps: 1-2\n\n\
            Owner      Tablespace Object Name          Type  Logical Reads %Total\n\
            ---------- ---------- -------------------- ----- ------------- ------\n\
            SALES      SYSTEM     ORDERS               TABLE         1,200   50.0\n\n\
            init.ora Parameters              DB/Inst: ZYX/zyx1  Snaps: 1-2\n\n\
            Parameter Name                Begin value\n\
            ----------------------------- ---------------------------------\n\
            dispatchers                   (PROTOCOL=TCP) (SERVICE=zyxXDB)\n\
            remote_listener               zyx-scan:4096\n\
            spfile                        +DATA/zyx/spfilezyx.ora\n";
        let source = Source::of(Path::new("x"), text.as_bytes());
        let reports = reader::reports(&source, READERS).expect("a report");
        let words = words(reports.iter().map(|(_, report)| report));
        let named = |name: &str| words.names.get(name).copied();
        for name in ["zyx", "zyx1", "orders", "zyxxdb", "spfilezyx.ora"] {
            assert_eq!(named(name), Some(Named::Thing), "{name}: {:?}", words.names);
        }
        assert_eq!([named("zyxhost1"), named("zyx-scan")], [Some(Named::Host); 2], "{:?}", words.names);
        assert_eq!(named("sales"), Some(Named::User));
        for word in ["owner", "segments by logical reads", "system", "dispatchers"] {
            assert!(words.vocabulary.contains(word), "{word}: {:?}", words.vocabulary);
        }
        assert!(!words.vocabulary.iter().any(|word| word.contains("zyx")), "{:?}", words.vocabulary);
    }
}
