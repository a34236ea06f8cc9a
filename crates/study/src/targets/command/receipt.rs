//! Receipts that a study declares of a command. The evidence must appear in its processes at some
//! levels, and must not appear at others.

use glob::Pattern;
use plumb_record::{CommandRun, Receipt, Ruling, Seen};
use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A receipt as the study declares it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declared {
    /// Kind of evidence, one of [`KINDS`].
    pub(super) kind: String,
    /// A pattern for paths; `*` matches slashes, too.
    pub(super) path: Option<String>,
    pub(super) flag: Option<String>,
    pub(super) regex: Option<String>,
    /// Least figure that counts as evidence.
    pub(super) at_least: Option<f64>,
    /// Largest figure that counts as evidence.
    pub(super) at_most: Option<f64>,
    /// Words with the values at which it must hold; at other values it must not.
    pub(super) when: BTreeMap<String, String>,
}

/// The kinds, with the keys each takes.
const KINDS: [(&str, Takes); 13] = [
    ("open-flag", Takes::PathAndFlag),
    ("opened", Takes::Path),
    ("library", Takes::Path),
    ("executable", Takes::Path),
    ("output", Takes::Regex),
    ("ring-requests", Takes::Bound),
    ("processes", Takes::Bound),
    ("threads", Takes::Bound),
    ("read-bytes", Takes::Bound),
    ("written-bytes", Takes::Bound),
    ("device-read-bytes", Takes::Bound),
    ("device-written-bytes", Takes::Bound),
    ("flushes", Takes::Bound),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    PathAndFlag,
    Path,
    Regex,
    Bound,
}

impl Declared {
    /// Rejects an unknown kind, and missing or superfluous keys.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some((_, takes)) = KINDS.iter().find(|(kind, _)| *kind == self.kind) else {
            let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
            return Err(format!("there is no receipt {:?}; it takes {}", self.kind, kinds.join(", ")));
        };
        let given = [
            ("path", self.path.is_some(), matches!(takes, Takes::PathAndFlag | Takes::Path)),
            ("flag", self.flag.is_some(), *takes == Takes::PathAndFlag),
            ("regex", self.regex.is_some(), *takes == Takes::Regex),
            (
                "at_least or at_most",
                self.at_least.is_some() || self.at_most.is_some(),
                *takes == Takes::Bound,
            ),
        ];
        if let Some((name, is, _)) = given.into_iter().find(|(_, is, must)| is != must) {
            return Err(format!("kind {:?} {} {name}", self.kind, if is { "takes no" } else { "needs" }));
        }
        if let Some(pattern) = &self.path {
            Pattern::new(pattern).map_err(|error| format!("path = {pattern:?}: {error}"))?;
        }
        if let Some(pattern) = &self.regex {
            Regex::new(pattern).map_err(|error| format!("regex = {pattern:?}: {error}"))?;
        }
        let flags = ["O_DIRECT", "O_DSYNC", "O_SYNC", "O_APPEND"];
        if let Some(flag) = self.flag.as_deref().filter(|flag| !flags.contains(flag)) {
            return Err(format!("flag = {flag:?}: it takes {}", flags.join(", ")));
        }
        if self.when.is_empty() {
            return Err(
                "when = { WORD = \"VALUE\" } is missing: it says which treatment this is a receipt of"
                    .to_string(),
            );
        }
        Ok(())
    }

    /// Returns the receipt with words filled into its path. Fails if a word has no value.
    pub(super) fn filled(
        &self,
        fill: impl Fn(&String) -> Result<String, String>,
    ) -> Result<Declared, String> {
        Ok(Declared { path: self.path.as_ref().map(fill).transpose()?, ..self.clone() })
    }

    /// Judges a run in which the receipt must or must not hold.
    pub(super) fn judge(&self, run: &CommandRun, value: impl Fn(&str) -> String) -> Vec<Receipt> {
        let expected = self.when.iter().all(|(word, at)| value(word) == *at);
        let (found, evidence) = self.look(run);
        let must = if expected { "it must hold" } else { "it must not hold" };
        let ruling = Ruling {
            seen: self.seen(),
            ..Ruling::that(
                found.map(|found| found == expected),
                format!("{}: {evidence}; at this value {must}", self.kind),
            )
        };
        self.when.keys().map(|word| ruling.clone().receipt(word, value(word))).collect()
    }

    /// Returns the source of evidence of this kind.
    pub(super) fn seen(&self) -> Seen {
        if self.kind == "output" { Seen::Inside } else { Seen::Outside }
    }

    /// Returns if it holds, with the evidence; `None` if the evidence is not conclusive.
    fn look(&self, run: &CommandRun) -> (Option<bool>, String) {
        let pattern = self.path.as_deref().and_then(|path| Pattern::new(path).ok());
        let matches = |path: &&String| pattern.as_ref().is_some_and(|pattern| pattern.matches(path));
        let path = self.path.as_deref().unwrap_or_default();
        let found = |paths: Vec<&String>| {
            let example = paths.first().map_or(String::new(), |path| format!(", such as {path}"));
            let shown = format!("{} that were seen match {path}{example}", paths.len());
            // A path open only between two samples is missed, so absence proves nothing.
            ((!paths.is_empty()).then_some(true), shown)
        };
        match self.kind.as_str() {
            "open-flag" => {
                let flag = self.flag.as_deref().unwrap_or_default();
                let files: Vec<_> = run.opened.iter().filter(|file| matches(&&file.path)).collect();
                let with = files.iter().filter(|file| has_flag(&file.flags, flag)).count();
                let shown = format!("{with} of {} open files that match {path} have {flag}", files.len());
                ((!files.is_empty()).then_some(with == files.len()), shown)
            }
            "opened" => found(run.opened.iter().map(|file| &file.path).filter(matches).collect()),
            "library" => found(run.libraries.iter().filter(matches).collect()),
            "executable" => found(run.executables.iter().map(|file| &file.path).filter(matches).collect()),
            "output" => {
                let regex = self.regex.as_deref().and_then(|regex| Regex::new(regex).ok());
                let found =
                    regex.is_some_and(|regex| regex.is_match(&run.output) || regex.is_match(&run.errors));
                let shown = self.regex.as_deref().unwrap_or_default();
                (Some(found), format!("{shown:?} is {}in what it printed", if found { "" } else { "not " }))
            }
            kind => {
                let figure = match kind {
                    "ring-requests" => Some(run.ring_requests),
                    "processes" => Some(run.processes),
                    "threads" => Some(run.threads_max),
                    "read-bytes" => run.asked_read_bytes,
                    "written-bytes" => run.asked_written_bytes,
                    "device-read-bytes" => run.device_read_bytes,
                    "device-written-bytes" => run.device_written_bytes,
                    _ => run.flushes,
                };
                let Some(figure) = figure else { return (None, "the kernel does not tell".to_string()) };
                let (least, most) = (self.at_least.unwrap_or(0.0), self.at_most.unwrap_or(f64::INFINITY));
                let bounds = [
                    self.at_least.map(|least| format!("at least {least}")),
                    self.at_most.map(|most| format!("at most {most}")),
                ];
                let bounds = bounds.into_iter().flatten().collect::<Vec<_>>().join(" and ");
                (Some((least..=most).contains(&(figure as f64))), format!("{figure}, against {bounds}"))
            }
        }
    }
}

fn has_flag(octal: &str, name: &str) -> bool {
    u32::from_str_radix(octal, 8)
        .ok()
        .and_then(|bits| plumb_host::readings::OpenFlags::of_bits(bits).has(name))
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_record::{Held, OpenedFile};

    fn declared(text: &str) -> Declared {
        toml::from_str(text).expect("well formed")
    }

    fn run() -> CommandRun {
        CommandRun {
            opened: vec![
                OpenedFile { path: "/d/pg_wal/1".to_string(), flags: "0150002".to_string() },
                OpenedFile { path: "/d/base/1".to_string(), flags: "0100002".to_string() },
            ],
            libraries: vec!["/usr/lib/liburing.so.2".to_string()],
            looks: 1,
            ring_requests: 5,
            output: "method: aio".to_string(),
            ..CommandRun::default()
        }
    }

    fn judged(text: &str, value: &str) -> Held {
        let receipts = declared(text).judge(&run(), |_| value.to_string());
        assert_eq!(receipts.len(), 1);
        receipts[0].held
    }

    #[test]
    fn each_kind_holds_at_its_value_and_contradicts_at_another() {
        let when = "when = { x = \"on\" }\n";
        for text in [
            "kind = \"open-flag\"\npath = \"*/pg_wal/*\"\nflag = \"O_DSYNC\"\n",
            "kind = \"opened\"\npath = \"*/base/*\"\n",
            "kind = \"library\"\npath = \"*liburing*\"\n",
            "kind = \"output\"\nregex = \"method: a.o\"\n",
            "kind = \"ring-requests\"\nat_least = 5\n",
            "kind = \"ring-requests\"\nat_most = 5\n",
        ] {
            let text = format!("{text}{when}");
            assert_eq!(declared(&text).check(), Ok(()), "{text}");
            assert_eq!(judged(&text, "on"), Held::Held, "{text}");
            assert_eq!(judged(&text, "off"), Held::Contradicted, "{text}");
        }
        let none = "kind = \"open-flag\"\npath = \"*/base/*\"\nflag = \"O_DIRECT\"\nwhen = { x = \"on\" }";
        assert_eq!(judged(none, "on"), Held::Contradicted);
        let unseen = "kind = \"open-flag\"\npath = \"/nowhere\"\nflag = \"O_DIRECT\"\nwhen = { x = \"on\" }";
        assert_eq!(judged(unseen, "on"), Held::NotChecked);
        let missed = "kind = \"opened\"\npath = \"/nowhere\"\nwhen = { x = \"on\" }";
        assert_eq!((judged(missed, "on"), judged(missed, "off")), (Held::NotChecked, Held::NotChecked));
        let untold = "kind = \"flushes\"\nat_least = 1\nwhen = { x = \"on\" }";
        assert_eq!(judged(untold, "on"), Held::NotChecked);
    }

    #[test]
    fn what_cannot_be_looked_at_is_refused() {
        let refused =
            |text: &str| declared(&format!("{text}\n[when]\nx = \"1\"")).check().expect_err("refused");
        assert!(
            refused("kind = \"colour\"").starts_with("there is no receipt \"colour\"; it takes open-flag, ")
        );
        assert_eq!(refused("kind = \"opened\""), "kind \"opened\" needs path");
        assert_eq!(
            refused("kind = \"threads\"\nat_least = 2\nflag = \"O_SYNC\""),
            "kind \"threads\" takes no flag"
        );
        assert!(
            refused("kind = \"open-flag\"\npath = \"*\"\nflag = \"O_X\"")
                .starts_with("flag = \"O_X\": it takes")
        );
        assert!(
            declared("kind = \"threads\"\nat_least = 2\nwhen = {}")
                .check()
                .expect_err("of what")
                .starts_with("when")
        );
    }
}
