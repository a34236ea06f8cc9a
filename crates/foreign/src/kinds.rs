//! Kinds of files that people have and that are not read: each has the words that give it away, and
//! what is read of the same system.
//!
//! A file of which a reader knows a part is read, whatever else it has.

use crate::source::{ForeignError, Source};

/// A kind of file that is not read.
struct Kind {
    /// Texts that a line has, all of them, in lower case.
    marks: &'static [&'static str],
    what: &'static str,
    instead: &'static str,
}

const DEVICES: &str = "take `iostat -x 1`, `sar -d` or biosnoop of the same minutes";
const AWR: &str = "take the AWR or Statspack report of the same minutes";
const PLANS: &str = "`plumb plans` reads plans of PostgreSQL and of DBMS_XPLAN";
const FIO: &str = "take the output of `fio --output-format=json`";

const fn kind(marks: &'static [&'static str], what: &'static str, instead: &'static str) -> Kind {
    Kind { marks, what, instead }
}

/// The kinds, the more telling marks first.
const KINDS: [Kind; 37] = [
    kind(&["ash report for"], "an ASH report", AWR),
    kind(&["<title>ash report"], "an ASH report", AWR),
    kind(&["addm report for"], "an ADDM report", AWR),
    kind(&["sql monitoring report"], "a report of SQL Monitor", PLANS),
    kind(&["workload repository sql report"], "an AWR report of one SQL statement", AWR),
    kind(&["r", "swpd", "free", "buff", "cache", "bi", "bo"], "the output of vmstat", DEVICES),
    kind(&["kthr", "memory", "page"], "the output of vmstat", DEVICES),
    kind(&["cpu", "%usr", "%nice", "%sys", "%iowait"], "the output of mpstat", DEVICES),
    kind(&["uid", "pid", "kb_rd/s", "kb_wr/s"], "the output of pidstat", DEVICES),
    kind(&["cpu", "%user", "%nice", "%system", "%iowait"], "the output of sar without -d", DEVICES),
    kind(&["iface", "rxpck/s"], "the output of sar -n", DEVICES),
    kind(&["tps", "rtps", "wtps", "bread/s"], "the output of sar -b", DEVICES),
    kind(&["filesystem:", "rkb_nor/s"], "the output of nfsiostat or cifsiostat", DEVICES),
    kind(&["filesystem", "rkb/s", "rops/s"], "the output of cifsiostat", DEVICES),
    kind(&["extended device statistics"], "the output of iostat of Solaris", DEVICES),
    kind(&["r/s", "w/s", "asvc_t", "%b"], "the output of iostat of Solaris", DEVICES),
    kind(&["device", "r/s", "w/s", "qlen", "svc_t"], "the output of iostat of BSD", DEVICES),
    kind(&["xfer:", "%tm_act"], "the output of iostat of AIX", DEVICES),
    kind(&["disks:", "% tm_act"], "the output of iostat of AIX", DEVICES),
    kind(&["usecs", ": count", "distribution"], "a histogram of biolatency", DEVICES),
    kind(&["msecs", ": count", "distribution"], "a histogram of biolatency", DEVICES),
    kind(&["@usecs", ":"], "a histogram of bpftrace", DEVICES),
    kind(&["pid", "comm", "d", "maj", "min", "disk", "i/o"], "the output of biotop", DEVICES),
    kind(&["tkprof:"], "a report of TKPROF", "import the SQL trace (10046) that it was made from"),
    kind(
        &["rows", "row source operation"],
        "a report of TKPROF",
        "import the SQL trace (10046) that it was made from",
    ),
    kind(&["<sql_monitor"], "an XML report of SQL Monitor", PLANS),
    kind(&["sqlmonitor", "<report"], "an XML report of SQL Monitor", PLANS),
    kind(&["plan_table_output"], "a plan of execution", PLANS),
    kind(&["query plan"], "a plan of execution", PLANS),
    kind(&["(cost=", "rows=", "width="], "a plan of execution", PLANS),
    kind(&["(actual", "rows=", "loops="], "a plan of execution", PLANS),
    kind(&["| id ", "| operation"], "a plan of execution", PLANS),
    kind(&["select_type", "possible_keys"], "an EXPLAIN of MySQL", PLANS),
    kind(&["hammerdb"], "the log of HammerDB", AWR),
    kind(&["command line:", "diskspd"], "the output of diskspd", FIO),
    kind(&["[global]"], "a job file of fio", "run fio with it, and import what it prints"),
    kind(&["update_pct", "="], "a configuration of SLOB", AWR),
];

impl Kind {
    fn is_in(&self, line: &str) -> bool {
        let line = plumb_units::cut(line, 400).to_lowercase();
        let words = || line.split_whitespace();
        self.marks.iter().all(|mark| {
            match mark.contains([' ', ':', '(', '<', '[', '|', '=']) || mark.len() > 5 {
                true => line.contains(mark),
                false => words().any(|word| word.trim_start_matches('#') == *mark),
            }
        })
    }
}

/// Kinds at the start of [`KINDS`] whose title decides, whatever tables they have.
const TITLED: usize = 5;

/// Lines of a file that are searched for the marks of a kind.
const LINES_MOST: usize = 2000;

/// Returns the error for a file whose title is that of another kind of report, because it may have
/// tables that look like pasted ones.
pub(crate) fn titled(source: &Source) -> Option<ForeignError> {
    const TITLE_LINES: usize = 40;
    named(source, &KINDS[..TITLED], TITLE_LINES)
}

fn named(source: &Source, kinds: &[Kind], most: usize) -> Option<ForeignError> {
    let lines = || source.part(0, source.len()).lines().take(most);
    let found = kinds.iter().find(|kind| lines().any(|(_, line)| kind.is_in(line)))?;
    Some(ForeignError::Kind { path: source.path.clone(), what: found.what, instead: found.instead })
}

/// Returns the error for a file that has no report: it names the kind of the file, if it is known.
pub(crate) fn unknown(source: &Source) -> ForeignError {
    if let Some(error) = named(source, &KINDS, LINES_MOST) {
        return error;
    }
    let lines = || source.part(0, source.len()).lines().take(LINES_MOST);
    let decimal = |word: &str| {
        let parts =
            word.split_once(',').filter(|(whole, rest)| !whole.is_empty() && (1..=2).contains(&rest.len()));
        parts.is_some_and(|(whole, rest)| [whole, rest].concat().bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_decimals = |line: &str| line.split_whitespace().filter(|word| decimal(word)).count() > 2;
    if lines().any(|(_, line)| has_decimals(line)) {
        return ForeignError::Kind {
            path: source.path.clone(),
            what: "a text with decimal commas, in which no line shows that a comma is one",
            instead: "print it with LC_ALL=C or NLS_NUMERIC_CHARACTERS='.,'",
        };
    }
    ForeignError::Unknown { path: source.path.clone(), lines: source.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_kind_that_is_not_read_is_named_with_what_is() {
        for (text, what) in [
            (" r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n", "vmstat"),
            ("10:00:01  CPU  %usr  %nice  %sys %iowait  %irq\n", "mpstat"),
            ("   r/s    w/s   kr/s   kw/s wait actv wsvc_t asvc_t  %w  %b device\n", "iostat of Solaris"),
            ("Disks:      % tm_act   Kbps    tps  Kb_read\n", "iostat of AIX"),
            ("     usecs               : count     distribution\n", "biolatency"),
            ("PID    COMM   D MAJ MIN DISK   I/O  Kbytes  AVGms\n", "biotop"),
            ("TKPROF: Release 19.0.0.0.0\n", "TKPROF"),
            ("ASH Report For X/y\n", "ASH"),
            ("<html><title>ASH Report - From 1 To 2</title><table><tr><td>Event<td>Waits</table>\n", "ASH"),
            ("ADDM Report for Task 'T'\n", "ADDM"),
            ("<report><report_id>/orarep/sqlmonitor/main</report_id></report>\n", "SQL Monitor"),
            (" Seq Scan on t  (cost=0.00..1.00 rows=1 width=4)\n", "plan"),
            ("Vuser 1:HammerDB says hello\n", "HammerDB"),
            ("a 1,25 2,50 3,75\n", "decimal commas"),
        ] {
            let said = unknown(&Source::of(Path::new("x"), text.as_bytes())).to_string();
            assert!(said.contains(what) && said.contains("; "), "{text}: {said}");
            assert_eq!(said.lines().count(), 1);
        }
        let other = unknown(&Source::of(Path::new("x"), b"a letter to nobody\n"));
        assert!(matches!(other, ForeignError::Unknown { lines: 1, .. }), "{other}");
    }
}
