//! Reads a `slob.conf` as SLOB 2.2 to 2.5 do, without running it.
//!
//! SLOB's file is shell text that its scripts source. In practice it has assignments, `export` and
//! comments; these are read here, with quotes as in a shell. Anything that a shell would execute is
//! rejected with its line: a command, or a `$` outside single quotes in the value of a parameter.
//! Skipping it would run another test than the file asks for.
//!
//! A name of SLOB's without meaning here (connections, passwords, its collection of statistics)
//! becomes a remark with its line. So does an unknown name, which may be a typing error. Only
//! values of SLOB's own parameters are repeated, because a line may hold a password.
//!
//! Names of SLOB 2.2 are read too: SHARED_DATA_MODULUS, THINK_TM_MODULUS, and DO_UPDATE_HOTSPOT
//! with HOTSPOT_PCT. With the last two each update goes to the first 1 / HOTSPOT_PCT of the table,
//! by its final length ([`SlobConf::hotspot_size`]). As in a shell the last assignment of a name
//! counts, and a comment ends with its line.

use crate::slob::SLOB;
use crate::specification::part_of_blocks;
use std::collections::BTreeMap;
use std::str::Chars;

/// Parameters that a file gives, and remarks about the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlobConf {
    /// Parameters of the workload, each with its value as a user would type it.
    pub given: Vec<(&'static str, String)>,
    /// Place of each of them, as `SCALE, slob.conf:7`; derived ones have none.
    pub origins: BTreeMap<&'static str, String>,
    /// Assignments without effect, one line each, with the file and the line.
    pub remarks: Vec<String>,
    /// Divisor of the table's length that gives the hot spot's; `None` without HOTSPOT_PCT.
    hotspot_part: Option<u64>,
}

impl SlobConf {
    /// Returns the value of `hotspot-size` by HOTSPOT_PCT for this `scale`; `None`
    /// if the file has none.
    pub fn hotspot_size(&self, scale: u64) -> Option<String> {
        let row = SLOB.parameter("hotspot-size").expect("a parameter of the workload");
        Some(row.shown(part_of_blocks(scale, self.hotspot_part?)).to_string())
    }
}

/// A line that cannot be read or carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {why}")]
pub struct SlobConfError {
    /// The file, by the name given to [`read`].
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// The reason, and the cure.
    pub why: String,
}

/// Meaning of a SLOB name.
#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// A parameter of the workload, with the same values.
    Parameter(&'static str),
    /// A parameter of the workload, given in megabytes.
    Megabytes(&'static str),
    /// The word of `hotspot` if true; each name is a switch of its own.
    Hotspot(&'static str),
    /// The hot spot as a fraction of the table: its divisor.
    HotspotPart,
    /// No effect here, with the reason.
    Nothing(&'static str),
}

const CONNECTION: &str = "the engine is in this program, so there is nothing to connect to";
const REPORT: &str = "the report of the run takes the place of what it collects";

/// Every name, with those of older releases.
const NAMES: &[(&str, Meaning)] = &[
    ("UPDATE_PCT", Meaning::Parameter("update-pct")),
    ("SCAN_PCT", Meaning::Parameter("scan-pct")),
    ("RUN_TIME", Meaning::Parameter("run-time")),
    ("WORK_LOOP", Meaning::Parameter("work-loop")),
    ("SCALE", Meaning::Parameter("scale")),
    ("SCAN_TABLE_SZ", Meaning::Parameter("scan-table-size")),
    ("WORK_UNIT", Meaning::Parameter("work-unit")),
    ("REDO_STRESS", Meaning::Parameter("redo-stress")),
    ("LOAD_PARALLEL_DEGREE", Meaning::Parameter("load-degree")),
    ("THREADS_PER_SCHEMA", Meaning::Parameter("threads-per-schema")),
    ("DO_HOTSPOT", Meaning::Hotspot("all")),
    ("DO_UPDATE_HOTSPOT", Meaning::Hotspot("updates")),
    ("HOTSPOT_MB", Meaning::Megabytes("hotspot-size")),
    ("HOTSPOT_OFFSET_MB", Meaning::Megabytes("hotspot-offset")),
    ("HOTSPOT_FREQUENCY", Meaning::Parameter("hotspot-frequency")),
    ("HOTSPOT_PCT", Meaning::HotspotPart),
    ("HOT_SCHEMA_FREQUENCY", Meaning::Parameter("hot-schema-frequency")),
    ("SHARED_DATA_MODULUS", Meaning::Parameter("hot-schema-frequency")),
    ("THINK_TM_FREQUENCY", Meaning::Parameter("think-frequency")),
    ("THINK_TM_MODULUS", Meaning::Parameter("think-frequency")),
    ("THINK_TM_MIN", Meaning::Parameter("think-min")),
    ("THINK_TM_MAX", Meaning::Parameter("think-max")),
    ("OBFUSCATE_COLUMNS", Meaning::Parameter("obfuscate")),
    ("DATABASE_STATISTICS_TYPE", Meaning::Nothing(REPORT)),
    ("NO_OS_PERF_DATA", Meaning::Nothing(REPORT)),
    ("EXTERNAL_SCRIPT", Meaning::Nothing("no program is started beside a run")),
    ("ADMIN_SQLNET_SERVICE", Meaning::Nothing(CONNECTION)),
    ("SQLNET_SERVICE_BASE", Meaning::Nothing(CONNECTION)),
    ("SQLNET_SERVICE_MAX", Meaning::Nothing(CONNECTION)),
    ("ADMIN_CONNECT_STRING", Meaning::Nothing(CONNECTION)),
    ("NON_ADMIN_CONNECT_STRING", Meaning::Nothing(CONNECTION)),
    ("DBA_PRIV_USER", Meaning::Nothing(CONNECTION)),
    ("SYSDBA_PASSWD", Meaning::Nothing(CONNECTION)),
];

/// Reads the text of a file; `file` is its name in messages.
///
/// # Errors
/// The first line that cannot be carried out here, or that gives a parameter an invalid value.
pub fn read(file: &str, text: &str) -> Result<SlobConf, SlobConfError> {
    let refuse = |line, why| SlobConfError { file: file.to_string(), line, why };
    let mut reading = Reading::default();
    // Some editors start a file with a byte order mark.
    for (line, statement) in statements(text.strip_prefix('\u{feff}').unwrap_or(text)) {
        let place = format!("{file}:{line}");
        for (name, value) in assignments(&statement).map_err(|why| refuse(line, why))? {
            reading.take((&place, line), &name, value).map_err(|why| refuse(line, why))?;
        }
    }
    reading.end().map_err(|(line, why)| refuse(line, why))
}

/// State of a file that is being read.
#[derive(Debug, Default)]
struct Reading {
    conf: SlobConf,
    given: BTreeMap<&'static str, String>,
    part: Option<(usize, String)>,
    /// The words of `hotspot`, each on or off, in the file's order.
    switches: Vec<(&'static str, bool)>,
}

impl Reading {
    /// Takes an assignment; `value` is `None` if a shell would expand it.
    fn take(
        &mut self,
        (place, line): (&str, usize),
        name: &str,
        value: Option<String>,
    ) -> Result<(), String> {
        let known = NAMES.iter().find(|(known, _)| *known == name);
        let Some((_, meaning)) = known else {
            let said = "is no parameter of SLOB and has no effect; its value is not shown";
            self.conf.remarks.push(format!("{place}: {name} {said}"));
            return Ok(());
        };
        if let Meaning::Nothing(why) = meaning {
            self.conf.remarks.push(format!("{place}: {name} has no effect: {why}"));
            return Ok(());
        }
        let value = value.ok_or(EXPANDED)?;
        if value.is_empty() {
            return Err(format!("{name} has no value; give it one, or leave the line out for its default"));
        }
        let refuse = |why| format!("{name}={value}: {why}");
        let (parameter, text) = match *meaning {
            Meaning::Parameter(parameter) => (parameter, value.clone()),
            Meaning::Megabytes(parameter) => (parameter, megabytes(&value).map_err(refuse)?),
            Meaning::Hotspot(word) => {
                let on = flag(&value).map_err(refuse)?;
                self.switches.retain(|(earlier, _)| *earlier != word);
                self.switches.push((word, on));
                return Ok(());
            }
            Meaning::HotspotPart => {
                self.part = Some((line, value));
                return Ok(());
            }
            Meaning::Nothing(_) => unreachable!("it has become a remark"),
        };
        SLOB.parameter(parameter).expect("a parameter of the workload").parse(&text).map_err(refuse)?;
        self.given.insert(parameter, text);
        self.conf.origins.insert(parameter, format!("{name}, {place}"));
        Ok(())
    }

    /// Returns the result, or the line whose value is invalid.
    fn end(mut self) -> Result<SlobConf, (usize, String)> {
        if !self.switches.is_empty() {
            // A switch that is off does not change the other one.
            let on = self.switches.iter().rfind(|(_, on)| *on).map_or("off", |(word, _)| *word);
            self.given.insert("hotspot", on.to_string());
        }
        if self.given.get("hotspot").is_some_and(|word| word == "updates") {
            let (line, value) = self.part.unwrap_or((0, "10".to_string()));
            let refuse = |why| (line, format!("HOTSPOT_PCT={value}: {why}"));
            self.conf.hotspot_part = Some(parts(&value).map_err(refuse)?);
            self.given.remove("hotspot-size");
            self.given.insert("hotspot-offset", "0".to_string());
            self.given.insert("hotspot-frequency", "1".to_string());
            self.conf.origins.retain(|parameter, _| !parameter.starts_with("hotspot"));
        }
        self.conf.given = self.given.into_iter().collect();
        Ok(self.conf)
    }
}

fn flag(value: &str) -> Result<bool, String> {
    match value.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("expected TRUE or FALSE".to_string()),
    }
}

fn megabytes(value: &str) -> Result<String, String> {
    let number: Result<u32, _> = value.parse();
    number.map(|number| format!("{number}M")).map_err(|_| "expected a whole number of megabytes".to_string())
}

/// Parses HOTSPOT_PCT: the hot spot of SLOB 2.2 is the table's length divided by it.
fn parts(value: &str) -> Result<u64, String> {
    let parts: u64 = value.parse().unwrap_or(0);
    if parts == 0 {
        return Err("expected a whole number of 1 or more: the hot spot is one part in so many of the table"
            .to_string());
    }
    Ok(parts)
}

/// Returns the lines of a file, each with its number from 1; a backslash at the end joins the next.
fn statements(text: &str) -> Vec<(usize, String)> {
    let mut statements: Vec<(usize, String)> = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (index, line) in text.lines().enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let (first, before) = open.take().unwrap_or((index + 1, String::new()));
        let text = before + line;
        match text.strip_suffix('\\').filter(|part| can_go_on(part)) {
            Some(part) => open = Some((first, part.to_string())),
            None => statements.push((first, text)),
        }
    }
    statements.extend(open);
    statements
}

/// True if a backslash after this text joins the next line. In a comment and in single quotes it is
/// an ordinary character to a shell.
fn can_go_on(text: &str) -> bool {
    let (mut quote, mut begins_word) = (None, true);
    for letter in text.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '#' && begins_word => return false,
            None => quote = Some(letter).filter(|letter| ['\'', '"'].contains(letter)),
        }
        begins_word = quote.is_none() && [' ', '\t', ';'].contains(&letter);
    }
    quote != Some('\'')
}

const EXPANDED: &str =
    "a shell would expand this line: the file is read, and nothing in it is run; write the value itself";

/// Returns the assignments of a line, in order; a value is `None` if a shell would expand it.
fn assignments(line: &str) -> Result<Vec<(String, Option<String>)>, String> {
    let mut found = Vec::new();
    for words in words(line)? {
        let is_export = words.first().is_some_and(|word| word.text == "export");
        for word in words.iter().skip(usize::from(is_export)) {
            match word.text.split_once('=') {
                Some((name, value)) if is_name(name) => {
                    found.push((name.to_string(), (!word.expands).then(|| value.to_string())));
                }
                None if is_export && is_name(&word.text) => {}
                _ if word.expands => return Err(EXPANDED.to_string()),
                _ => return Err(
                    "expected NAME=VALUE, export or a comment: the file is read, and nothing in it is run"
                        .to_string(),
                ),
            }
        }
    }
    Ok(found)
}

fn is_name(text: &str) -> bool {
    let letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.chars().all(letter) && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

/// A word of a line, without its quotes.
#[derive(Debug, Default)]
struct Word {
    /// The text, with [`Word::GAP`] for each expansion.
    text: String,
    /// True if a shell would expand a part of it.
    expands: bool,
}

impl Word {
    /// Mark of an expansion; no name contains it.
    const GAP: char = '$';
}

/// Splits a line into words, without comments, in one list for each statement.
fn words(line: &str) -> Result<Vec<Vec<Word>>, String> {
    let mut statements = vec![Vec::new()];
    let mut word: Option<Word> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            ' ' | '\t' => statements.last_mut().expect("never empty").extend(word.take()),
            ';' => {
                statements.last_mut().expect("never empty").extend(word.take());
                statements.push(Vec::new());
            }
            '\'' | '"' => quoted(&mut letters, letter, word.get_or_insert_default())?,
            '$' | '`' | '\\' => expansion(&mut letters, letter, word.get_or_insert_default())?,
            '|' | '&' | '<' | '>' | '(' | ')' => return Err(EXPANDED.to_string()),
            other => word.get_or_insert_default().text.push(other),
        }
    }
    statements.last_mut().expect("never empty").extend(word.take());
    Ok(statements)
}

/// Reads a word up to the closing quote.
fn quoted(letters: &mut Chars<'_>, quote: char, word: &mut Word) -> Result<(), String> {
    loop {
        match letters.next() {
            None => return Err("a quote is not closed on this line".to_string()),
            Some(end) if end == quote => return Ok(()),
            Some(sign @ ('$' | '`' | '\\')) if quote == '"' => expansion(letters, sign, word)?,
            Some(inside) => word.text.push(inside),
        }
    }
}

/// Skips an expansion after its first character.
fn expansion(letters: &mut Chars<'_>, sign: char, word: &mut Word) -> Result<(), String> {
    word.expands = true;
    word.text.push(Word::GAP);
    match (sign, letters.clone().next()) {
        ('$', Some('(')) => pass(letters, ('(', ')')),
        ('$', Some('{')) => pass(letters, ('{', '}')),
        ('`', _) => letters.any(|letter| letter == '`').then_some(()).ok_or_else(not_closed),
        ('\\', _) => {
            // An escaped character has no meaning to the shell.
            letters.next();
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Skips brackets and their content.
fn pass(letters: &mut Chars<'_>, (open, close): (char, char)) -> Result<(), String> {
    let mut depth = 0;
    for letter in letters {
        depth += i32::from(letter == open) - i32::from(letter == close);
        if depth == 0 {
            return Ok(());
        }
    }
    Err(not_closed())
}

fn not_closed() -> String {
    "what a shell would expand is not closed on this line".to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, given: &[(&str, &str)], remarks: &[&str]) {
        let conf = read("slob.conf", text).expect("it can be read");
        let found: Vec<(&str, &str)> =
            conf.given.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(found, given);
        assert_eq!(conf.remarks, remarks);
    }

    fn refused(text: &str) -> String {
        read("slob.conf", text).expect_err("refused").to_string()
    }

    /// As printed in "Interesting observations executing SLOB2 with ext4 and xfs on SSD" (2014).
    const OF_THE_SOURCE: &str = "
UPDATE_PCT=20
RUN_TIME=120
WORK_LOOP=0
SCALE=10000
WORK_UNIT=256
REDO_STRESS=HEAVY
LOAD_PARALLEL_DEGREE=8
SHARED_DATA_MODULUS=0

# Settings for SQL*Net connectivity:
#ADMIN_SQLNET_SERVICE=slob
#SQLNET_SERVICE_BASE=slob
#SQLNET_SERVICE_MAX=2
#SYSDBA_PASSWD=\"change_on_install\"

export UPDATE_PCT RUN_TIME WORK_LOOP SCALE WORK_UNIT LOAD_PARALLEL_DEGREE REDO_STRESS SHARED_DATA_MODULUS
";

    #[test]
    fn the_file_of_the_source_is_read_as_it_stands() {
        let given = [
            ("hot-schema-frequency", "0"),
            ("load-degree", "8"),
            ("redo-stress", "HEAVY"),
            ("run-time", "120"),
            ("scale", "10000"),
            ("update-pct", "20"),
            ("work-loop", "0"),
            ("work-unit", "256"),
        ];
        check(OF_THE_SOURCE, &given, &[]);
    }

    #[test]
    fn every_parameter_of_every_release_has_a_meaning() {
        let text = "SCAN_PCT=5\nSCAN_TABLE_SZ=2M\nTHREADS_PER_SCHEMA=4\nDO_HOTSPOT=TRUE\nHOTSPOT_MB=8\nHOTSPOT_OFFSET_MB=16\n\
                    HOTSPOT_FREQUENCY=3\nHOT_SCHEMA_FREQUENCY=7\nTHINK_TM_FREQUENCY=9\nTHINK_TM_MIN=.1\nTHINK_TM_MAX=.5\n\
                    OBFUSCATE_COLUMNS=TRUE\nSCALE=80M\n";
        let given = [
            ("hot-schema-frequency", "7"),
            ("hotspot", "all"),
            ("hotspot-frequency", "3"),
            ("hotspot-offset", "16M"),
            ("hotspot-size", "8M"),
            ("obfuscate", "TRUE"),
            ("scale", "80M"),
            ("scan-pct", "5"),
            ("scan-table-size", "2M"),
            ("think-frequency", "9"),
            ("think-max", ".5"),
            ("think-min", ".1"),
            ("threads-per-schema", "4"),
        ];
        check(text, &given, &[]);
    }

    #[test]
    fn the_hot_spot_of_older_releases_is_a_part_of_the_table_for_updates() {
        let given = [
            ("hotspot", "updates"),
            ("hotspot-frequency", "1"),
            ("hotspot-offset", "0"),
            ("scale", "10000"),
            ("think-frequency", "3"),
        ];
        check("DO_UPDATE_HOTSPOT=TRUE\nHOTSPOT_PCT=10\nSCALE=10000\nTHINK_TM_MODULUS=3", &given, &[]);
        check("HOTSPOT_PCT=10\nDO_UPDATE_HOTSPOT=FALSE", &[("hotspot", "off")], &[]);
        let size = |text: &str, scale: &str| {
            let conf = read("slob.conf", text).expect("it can be read");
            let row = SLOB.parameter("scale").expect("a parameter of the workload");
            conf.hotspot_size(row.parse(scale).expect("a scale"))
        };
        let tenth = "DO_UPDATE_HOTSPOT=TRUE\nHOTSPOT_PCT=10\nHOTSPOT_MB=8\nSCALE=10000";
        assert_eq!(size(tenth, "10000").as_deref(), Some("1000"));
        assert_eq!(
            size(tenth, "100000").as_deref(),
            Some("10000"),
            "of the scale that holds, not the file's"
        );
        assert_eq!(size(tenth, "80M").as_deref(), Some("8M"), "a tenth for blocks of every size");
        assert_eq!(size("DO_UPDATE_HOTSPOT=TRUE", "1000").as_deref(), Some("100"), "SLOB's default");
        assert_eq!(size("DO_HOTSPOT=TRUE\nHOTSPOT_PCT=10", "1000"), None);
    }

    #[test]
    fn the_last_assignment_of_a_name_counts() {
        let off: &[(&str, &str)] = &[("hotspot", "off")];
        let on = |word| [("hotspot", word)];
        check("DO_HOTSPOT=TRUE\nDO_HOTSPOT=FALSE", off, &[]);
        check("DO_HOTSPOT=FALSE\nDO_HOTSPOT=TRUE", &on("all"), &[]);
        check("DO_HOTSPOT=TRUE\nDO_UPDATE_HOTSPOT=FALSE", &on("all"), &[]);
        check("DO_UPDATE_HOTSPOT=TRUE\nDO_HOTSPOT=TRUE\nDO_UPDATE_HOTSPOT=FALSE", &on("all"), &[]);
        check("UPDATE_PCT=10; UPDATE_PCT=30", &[("update-pct", "30")], &[]);
    }

    #[test]
    fn a_backslash_in_a_comment_or_in_single_quotes_joins_nothing() {
        let both = [("run-time", "60"), ("update-pct", "20")];
        check("# old \\\nUPDATE_PCT=20\nRUN_TIME=60", &both, &[]);
        check("RUN_TIME=60 # as before \\\nUPDATE_PCT=20", &both, &[]);
        check("RUN_TIME=60 \\\n # a comment \\\nUPDATE_PCT=20", &both, &[]);
        check("RUN_TIME=60\\\n; UPDATE_PCT=2\\\n0", &both, &[]);
        assert_eq!(refused("SYSDBA_PASSWD='a\\\nb'"), "slob.conf:1: a quote is not closed on this line");
        check("REDO_STRESS=\"HE\\\nAVY\"", &[("redo-stress", "HEAVY")], &[]);
    }

    #[test]
    fn quotes_comments_exports_and_semicolons_are_those_of_a_shell() {
        let text = "export UPDATE_PCT=\"30\" RUN_TIME='60' # both\n  WORK_UNIT=6\"4\"; SCALE=1000\r\nUPDATE_PCT=\\\n40\n";
        let given = [("run-time", "60"), ("scale", "1000"), ("update-pct", "40"), ("work-unit", "64")];
        check(text, &given, &[]);
    }

    #[test]
    fn what_has_no_effect_is_named_with_its_line_and_without_its_value() {
        let text = "SYSDBA_PASSWD=\"tiger#1\"\nDATABASE_STATISTICS_TYPE=awr\nMYSQL_ROOT_PWD=hunter2\nUPDATE_PCTT=5\n";
        let remarks = [
            "slob.conf:1: SYSDBA_PASSWD has no effect: the engine is in this program, so there is nothing to connect to",
            "slob.conf:2: DATABASE_STATISTICS_TYPE has no effect: the report of the run takes the place of what it collects",
            "slob.conf:3: MYSQL_ROOT_PWD is no parameter of SLOB and has no effect; its value is not shown",
            "slob.conf:4: UPDATE_PCTT is no parameter of SLOB and has no effect; its value is not shown",
        ];
        check(text, &[], &remarks);
    }

    #[test]
    fn what_a_shell_would_carry_out_is_refused_without_repeating_it() {
        for text in [
            "UPDATE_PCT=$PCT",
            "UPDATE_PCT=\"${PCT}\"",
            "UPDATE_PCT=`cat secret`",
            "UPDATE_PCT=\\5",
            "$NAME=5",
            "export $NAME",
            "A=b | tee secret",
        ] {
            let why = "a shell would expand this line: the file is read, and nothing in it is run; write the value itself";
            assert_eq!(refused(text), format!("slob.conf:1: {why}"));
        }
        assert_eq!(
            refused("\nsource secret"),
            "slob.conf:2: expected NAME=VALUE, export or a comment: the file is read, and nothing in it is run"
        );
        assert_eq!(refused("SYSDBA_PASSWD='secret"), "slob.conf:1: a quote is not closed on this line");
    }

    #[test]
    fn a_value_without_effect_may_be_one_that_a_shell_would_expand() {
        let remark = "slob.conf:1: SYSDBA_PASSWD has no effect: the engine is in this program, so there is nothing to connect to";
        for value in [
            "\"pa$$w0rd\"",
            "pa\\$w",
            "\"$(cat 'a b')\"",
            "$(cat a b)",
            "${A:-b c}",
            "`cat a b`",
            "\"a\\\"b\"",
        ] {
            check(&format!("SYSDBA_PASSWD={value} RUN_TIME=60"), &[("run-time", "60")], &[remark]);
        }
        assert_eq!(
            refused("SYSDBA_PASSWD=$(cat secret"),
            "slob.conf:1: what a shell would expand is not closed on this line"
        );
    }

    #[test]
    fn a_mark_at_the_beginning_and_bytes_of_other_encodings_in_comments_are_no_matter() {
        check("\u{feff}UPDATE_PCT=5\n# Z\u{fffd}rich\n", &[("update-pct", "5")], &[]);
    }

    #[test]
    fn each_parameter_has_the_place_where_it_was_given_last() {
        let conf = read("slob.conf", "SCALE=1000\nDO_HOTSPOT=TRUE\nHOTSPOT_MB=8\nSCALE=2000").expect("read");
        let origins: Vec<(&str, &str)> =
            conf.origins.iter().map(|(name, place)| (*name, place.as_str())).collect();
        assert_eq!(origins, [("hotspot-size", "HOTSPOT_MB, slob.conf:3"), ("scale", "SCALE, slob.conf:4")]);
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_its_line() {
        assert_eq!(
            refused("\nUPDATE_PCT=120"),
            "slob.conf:2: UPDATE_PCT=120: expected a whole number from 0 to 100"
        );
        assert_eq!(
            refused("UPDATE_PCT=12.5"),
            "slob.conf:1: UPDATE_PCT=12.5: expected a whole number from 0 to 100"
        );
        assert_eq!(refused("DO_HOTSPOT=maybe"), "slob.conf:1: DO_HOTSPOT=maybe: expected TRUE or FALSE");
        assert_eq!(
            refused("HOTSPOT_MB=8M"),
            "slob.conf:1: HOTSPOT_MB=8M: expected a whole number of megabytes"
        );
        assert_eq!(
            refused("WORK_LOOP="),
            "slob.conf:1: WORK_LOOP has no value; give it one, or leave the line out for its default"
        );
        assert_eq!(refused("SCALE=10\n"), "slob.conf:1: SCALE=10: expected 64 blocks or more");
        assert_eq!(
            refused("DO_UPDATE_HOTSPOT=TRUE\nHOTSPOT_PCT=none"),
            "slob.conf:2: HOTSPOT_PCT=none: expected a whole number of 1 or more: the hot spot is one part in so many of the table"
        );
    }
}
