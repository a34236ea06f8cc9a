//! What is measured of a command besides its time: a figure that it prints or writes, or the size of a file.

use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// How a declared measure is found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declared {
    /// A regular expression with one group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) regex: Option<String>,
    /// A JSON pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) json: Option<String>,
    /// The file whose bytes are counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<String>,
    /// The file that is read instead of standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<String>,
    /// Which of several matches: `last` or `sum`; without it there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) take: Option<String>,
    /// `higher` or `lower`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) better: Option<String>,
    /// The unit that reports print.
    #[serde(default)]
    pub(super) unit: String,
}

impl Declared {
    /// Refuses what says nothing or too much.
    pub(super) fn check(&self) -> Result<(), String> {
        let ways = [&self.regex, &self.json, &self.size].into_iter().flatten().count();
        if ways != 1 {
            return Err("it takes one of regex, json and size".to_string());
        }
        if let Some(pattern) = &self.regex {
            let groups =
                Regex::new(pattern).map_err(|error| format!("regex = {pattern:?}: {error}"))?.captures_len()
                    - 1;
            if groups != 1 {
                return Err(format!(
                    "regex = {pattern:?}: it has {groups} groups; the figure is its one group, in ( )"
                ));
            }
        }
        if let Some(pointer) = self.json.as_ref().filter(|pointer| !pointer.starts_with('/')) {
            return Err(format!("json = {pointer:?}: a JSON pointer begins with /, as in /jobs/0/read/iops"));
        }
        match (self.take.as_deref(), self.better.as_deref()) {
            (_, None) => Err("better = \"lower\" or \"higher\" is missing".to_string()),
            (_, Some(other)) if !matches!(other, "lower" | "higher") => {
                Err(format!("better = {other:?}: it takes lower or higher"))
            }
            (Some(other), _) if !matches!(other, "last" | "sum") => {
                Err(format!("take = {other:?}: it takes last or sum"))
            }
            (Some(_), _) if self.regex.is_none() => Err("take is for a regex".to_string()),
            _ => Ok(()),
        }
    }

    /// The figure of a run that printed this, in the directory where it ran.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn read(
        &self,
        printed: &str,
        directory: &Path,
        began: std::time::SystemTime,
    ) -> Result<f64, String> {
        let fresh = |name: &str| {
            let path = directory.join(name);
            let found = path.metadata().map_err(|error| format!("{name}: {error}"))?;
            // The clock of a file system may be a tick behind.
            let since = began.checked_sub(std::time::Duration::from_millis(20)).unwrap_or(began);
            match found.modified().is_ok_and(|changed| changed >= since) {
                true => Ok((path, found.len())),
                false => Err(format!("{name} was not written by this run")),
            }
        };
        if let Some(name) = &self.size {
            return fresh(name).map(|(_, bytes)| bytes as f64);
        }
        let text = match &self.from {
            Some(name) => {
                crate::outside::text(&fresh(name)?.0).map_err(|error| format!("{name}: {error}"))?
            }
            None => printed.to_string(),
        };
        match (&self.regex, &self.json) {
            (Some(pattern), _) => self.matched(pattern, &text),
            (None, pointer) => pointed(pointer.as_deref().unwrap_or_default(), &text),
        }
    }

    fn matched(&self, pattern: &str, text: &str) -> Result<f64, String> {
        let regex = Regex::new(pattern).map_err(|error| error.to_string())?;
        let groups = regex.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str()));
        let figures: Vec<f64> = groups.map(figure).collect::<Result<_, _>>()?;
        match (figures.as_slice(), self.take.as_deref()) {
            ([], _) => Err(format!("nothing matches {pattern:?}")),
            (all, Some("sum")) => Ok(all.iter().sum()),
            ([.., last], Some(_)) | ([last], None) => Ok(*last),
            (all, None) => Err(format!(
                "{} places match {pattern:?}; take = \"last\" or \"sum\" says which is meant",
                all.len()
            )),
        }
    }
}

/// The figure that a JSON pointer names; text before the first brace is left out, as fio's warnings are.
fn pointed(pointer: &str, text: &str) -> Result<f64, String> {
    let json = text.find(['{', '[']).map_or(text, |begin| &text[begin..]);
    let mut values = serde_json::Deserializer::from_str(json).into_iter::<serde_json::Value>();
    let value = values.next().ok_or("nothing was printed")?.map_err(|error| format!("no JSON: {error}"))?;
    let found = value.pointer(pointer).ok_or_else(|| format!("the JSON has nothing at {pointer}"))?;
    match found {
        serde_json::Value::Number(number) => number.as_f64().ok_or_else(|| format!("{number} is no figure")),
        serde_json::Value::String(text) => figure(text),
        other => Err(format!("{pointer} is {other}, and no figure")),
    }
}

/// A number, a size or a count with its unit, a duration, or a time of the form `00:01:02.34`.
fn figure(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let plain = || text.parse::<f64>().ok();
    let clock = || {
        let parts: Vec<f64> = text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        (parts.len() > 1).then(|| parts.iter().fold(0.0, |sum, part| sum * 60.0 + part))
    };
    let time = || plumb_units::parse_duration(text).ok().map(plumb_units::Nanos::seconds);
    let size = || plumb_units::parse_size(text).ok().map(|bytes| bytes as f64);
    let found = plain().or_else(clock).or_else(time).or_else(size).filter(|figure| figure.is_finite());
    found.ok_or_else(|| format!("{text:?} is no figure"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::SystemTime;

    fn declared(regex: Option<&str>, json: Option<&str>, take: Option<&str>) -> Declared {
        Declared {
            regex: regex.map(String::from),
            json: json.map(String::from),
            size: None,
            from: None,
            take: take.map(String::from),
            better: Some("higher".to_string()),
            unit: String::new(),
        }
    }

    #[test]
    fn a_figure_has_units_as_tools_print_them() {
        for (text, value) in [
            ("12.5", 12.5),
            ("1e3", 1000.0),
            ("00:01:02.34", 62.34),
            ("250ms", 0.25),
            ("3 us", 3e-6),
            ("2m", 120.0),
            ("4K", 4096.0),
        ] {
            assert!((figure(text).expect(text) - value).abs() < 1e-9, "{text}");
        }
        for text in ["", "many", "inf", "nan", "1:x"] {
            assert!(figure(text).is_err(), "{text}");
        }
    }

    #[test]
    fn one_match_is_the_figure_and_of_several_it_is_said_which() {
        let read = |take, text: &str| {
            declared(Some("tps = ([0-9.]+)"), None, take).read(text, Path::new("/"), SystemTime::UNIX_EPOCH)
        };
        assert_eq!(read(None, "x\ntps = 12.5 y"), Ok(12.5));
        assert_eq!(read(Some("sum"), "tps = 1 tps = 2"), Ok(3.0));
        assert_eq!(read(Some("last"), "tps = 1 tps = 2"), Ok(2.0));
        assert!(read(None, "tps = 1 tps = 2").expect_err("two").starts_with("2 places match"));
        assert!(read(None, "nothing").expect_err("none").starts_with("nothing matches"));
    }

    #[test]
    fn a_pointer_looks_behind_what_is_printed_before_the_json() {
        let read = |text: &str| {
            declared(None, Some("/jobs/0/iops"), None).read(text, Path::new("/"), SystemTime::UNIX_EPOCH)
        };
        assert_eq!(read("fio: warning\n{\"jobs\": [{\"iops\": 7}]}\n"), Ok(7.0));
        assert_eq!(read("{\"jobs\": []}").expect_err("missing"), "the JSON has nothing at /jobs/0/iops");
        assert_eq!(read("").expect_err("empty"), "nothing was printed");
    }

    #[test]
    fn what_says_nothing_or_too_much_is_refused() {
        let mut both = declared(Some("(a)"), Some("/a"), None);
        assert_eq!(both.check().expect_err("two ways"), "it takes one of regex, json and size");
        both.json = None;
        assert_eq!(both.check(), Ok(()));
        assert!(declared(Some("a"), None, None).check().expect_err("no group").contains("it has 0 groups"));
        assert!(declared(None, Some("a"), None).check().is_err());
        both.better = None;
        assert_eq!(both.check().expect_err("missing"), "better = \"lower\" or \"higher\" is missing");
    }
}
