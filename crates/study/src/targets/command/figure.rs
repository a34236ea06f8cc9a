//! Figures of a command besides its time: printed, written to a file, or the size of a file.

use regex_lite::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Source of a declared measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Declared {
    /// A regular expression with one group.
    pub(super) regex: Option<String>,
    pub(super) json: Option<String>,
    /// The file whose bytes are counted.
    pub(super) size: Option<String>,
    /// The file to read instead of standard output.
    pub(super) from: Option<String>,
    /// Chooses among several matches or JSON documents: `last` or `sum`; without
    /// it only one may exist.
    pub(super) take: Option<String>,
    pub(super) better: Option<String>,
    /// The unit that reports print.
    #[serde(default)]
    pub(super) unit: String,
}

impl Declared {
    /// Rejects an incomplete or contradictory declaration.
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
            (Some(_), _) if self.size.is_some() => Err("take is for a regex or json".to_string()),
            _ => Ok(()),
        }
    }

    /// Returns the texts whose words are filled in; braces of a regex are its own.
    pub(super) fn templates(&self) -> impl Iterator<Item = &String> {
        [&self.from, &self.size, &self.json].into_iter().flatten()
    }

    /// Returns the measure with words filled in. Fails if a word has no value.
    pub(super) fn filled(
        &self,
        fill: impl Fn(&String) -> Result<String, String>,
    ) -> Result<Declared, String> {
        let filled = |text: &Option<String>| text.as_ref().map(&fill).transpose();
        Ok(Declared {
            size: filled(&self.size)?,
            from: filled(&self.from)?,
            json: filled(&self.json)?,
            ..self.clone()
        })
    }

    /// Returns the figure of a run from its output, or from the directory where it ran. If there is
    /// none, the error is the reason.
    pub(super) fn read(&self, printed: &str, directory: &Path, began: SystemTime) -> Result<f64, String> {
        let fresh = |name: &str| {
            let path = directory.join(name);
            let found = path.metadata().map_err(|error| format!("{name}: {error}"))?;
            // The clock of a file system may lag by a tick.
            let since = began.checked_sub(Duration::from_millis(20)).unwrap_or(began);
            // `cp -p` and `tar x` set the modification time back; they cannot set ctime.
            let changed = Duration::new(found.ctime().max(0) as u64, found.ctime_nsec().max(0) as u32);
            match SystemTime::UNIX_EPOCH + changed >= since {
                true => Ok((path, found.len())),
                false => Err(format!("{name} was not written by this run")),
            }
        };
        if let Some(name) = &self.size {
            return fresh(name).map(|(_, bytes)| bytes as f64);
        }
        let text = match &self.from {
            Some(name) => {
                plumb_record::outside::text(&fresh(name)?.0).map_err(|error| format!("{name}: {error}"))?
            }
            None => printed.to_string(),
        };
        match (&self.regex, &self.json) {
            (Some(pattern), _) => self.matched(pattern, &text),
            (None, pointer) => self.pointed(pointer.as_deref().unwrap_or_default(), &text),
        }
    }

    fn matched(&self, pattern: &str, text: &str) -> Result<f64, String> {
        let regex = Regex::new(pattern).map_err(|error| error.to_string())?;
        let groups = regex.captures_iter(text).filter_map(|found| Some(found.get(1)?.as_str()));
        let figures: Vec<f64> = groups.map(figure).collect::<Result<_, _>>()?;
        self.taken(
            &figures,
            || format!("nothing matches {pattern:?}"),
            || format!("places match {pattern:?}"),
        )
    }

    /// Returns the figure at a JSON pointer, in the documents that contain it.
    fn pointed(&self, pointer: &str, text: &str) -> Result<f64, String> {
        let documents = documents(text)?;
        let found = documents.iter().filter_map(|document| document.pointer(pointer));
        let figures: Vec<f64> = found.map(|value| figure_in(pointer, value)).collect::<Result<_, _>>()?;
        let none = || format!("the JSON has nothing at {pointer}");
        self.taken(&figures, none, || format!("JSON documents have {pointer}"))
    }

    /// Chooses the figure among those found.
    fn taken(
        &self,
        figures: &[f64],
        none: impl Fn() -> String,
        several: impl Fn() -> String,
    ) -> Result<f64, String> {
        match (figures, self.take.as_deref()) {
            ([], _) => Err(none()),
            (all, Some("sum")) => Ok(all.iter().sum()),
            ([.., last], Some(_)) | ([last], None) => Ok(*last),
            (all, None) => Err(format!(
                "{} {}; take = \"last\" or \"sum\" (--take) chooses among them",
                all.len(),
                several()
            )),
        }
    }
}

/// Parses the JSON documents in a text; other text around them is skipped, such as fio's warnings.
fn documents(text: &str) -> Result<Vec<Value>, String> {
    let (mut found, mut wrong, mut rest) = (Vec::new(), None, text);
    while let Some(begin) = rest.find(['{', '[']) {
        rest = &rest[begin..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                found.push(value);
                rest = &rest[values.byte_offset()..];
            }
            // A truncated document is an error; a bracket of a text is not.
            Some(Err(error)) if error.is_eof() && !found.is_empty() => {
                return Err(format!("JSON document {} is cut: {error}", found.len() + 1));
            }
            Some(Err(error)) => {
                wrong.get_or_insert(error);
                rest = &rest[1..];
            }
            None => break,
        }
    }
    match (found.is_empty(), wrong) {
        (false, _) => Ok(found),
        (true, Some(error)) => Err(format!("no JSON: {error}")),
        (true, None) if text.trim().is_empty() => Err("nothing was printed".to_string()),
        (true, None) => Err("no JSON: nothing that was printed begins with { or [".to_string()),
    }
}

fn figure_in(pointer: &str, found: &Value) -> Result<f64, String> {
    match found {
        Value::Number(number) => number.as_f64().ok_or_else(|| format!("{number} is no figure")),
        Value::String(text) => figure(text),
        other => Err(format!("{pointer} is {other}, and no figure")),
    }
}

/// Units of time in seconds.
const TIMES: &[(&[&str], f64)] = &[
    (&["ns", "nsec"], 1e-9),
    (&["us", "\u{b5}s", "\u{3bc}s", "usec"], 1e-6),
    (&["ms", "msec"], 1e-3),
    (&["s", "sec", "secs", "second", "seconds"], 1.0),
    (&["m", "min", "mins", "minute", "minutes"], 60.0),
    (&["h", "hr", "hour", "hours"], 3600.0),
];
/// Units that take a prefix: bytes, bits, or nothing.
const BASES: [&str; 10] = ["", "B", "b", "byte", "bytes", "Byte", "Bytes", "bit", "bits", "bps"];
/// Powers of 1000, or with an `i` of 1024.
const PREFIXES: [(&str, i32); 6] = [("k", 1), ("K", 1), ("M", 2), ("G", 3), ("T", 4), ("P", 5)];

/// Parses a figure into units without a prefix, or into seconds.
///
/// `12.5`, `1e3`; `1.1 GB/s`, `4k` (1000), `4 KiB` (1024); `250ms`, `1m2.5s`, `3
/// min`; `00:01:02.34`. These are the units of measuring tools: a setting's `4K` is
/// 4096, and has another parser.
fn figure(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let clock = || {
        let parts: Vec<f64> = text.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        (parts.len() > 1).then(|| parts.iter().fold(0.0, |sum, part| sum * 60.0 + part))
    };
    let plain = || text.parse::<f64>().ok();
    let found = plain().or_else(clock).or_else(|| time(text)).or_else(|| counted(text));
    found.filter(|figure| figure.is_finite()).ok_or_else(|| {
        format!(
            "{text:?} is no figure; it takes a number, with a unit such as ms, min, kB/s, MiB or G behind it"
        )
    })
}

/// Splits a leading number from the text after it, which is trimmed.
fn number(text: &str) -> Option<(f64, &str)> {
    let end = |rest: &str| rest.find(|letter: char| !letter.is_ascii_digit() && !"+-.".contains(letter));
    let mantissa = end(text).unwrap_or(text.len());
    // An exponent needs digits: the e of a unit is none.
    let exponent = text[mantissa..].strip_prefix(['e', 'E']).map(|rest| 1 + end(rest).unwrap_or(rest.len()));
    let whole =
        exponent.and_then(|length| Some((text[..mantissa + length].parse().ok()?, mantissa + length)));
    let (value, length) = match whole {
        Some(found) => found,
        None => (text[..mantissa].parse().ok()?, mantissa),
    };
    Some((value, text[length..].trim()))
}

/// Parses a duration of one or several parts.
fn time(text: &str) -> Option<f64> {
    let (mut sum, mut rest) = (0.0, text);
    while !rest.is_empty() {
        let (value, behind) = number(rest)?;
        let end =
            behind.find(|letter: char| letter.is_ascii_digit() || letter == ' ').unwrap_or(behind.len());
        let (_, seconds) = TIMES.iter().find(|(names, _)| names.contains(&&behind[..end]))?;
        sum += value * seconds;
        rest = behind[end..].trim_start();
    }
    (!text.is_empty()).then_some(sum)
}

/// Parses a number of bytes, bits or things, or of these per second.
fn counted(text: &str) -> Option<f64> {
    let (value, unit) = number(text)?;
    let unit = ["/s", "/sec", "/second"].iter().find_map(|rate| unit.strip_suffix(rate)).unwrap_or(unit);
    if BASES.contains(&unit) {
        return Some(value);
    }
    PREFIXES.iter().find_map(|(prefix, power)| {
        let rest = unit.strip_prefix(prefix)?;
        let (base, rest) = rest.strip_prefix('i').map_or((1000_f64, rest), |rest| (1024_f64, rest));
        BASES.contains(&rest).then(|| value * base.powi(*power))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("2 min", 120.0),
            ("0m1.5s", 1.5),
            ("1h 2m 3s", 3723.0),
            ("7 µs", 7e-6),
            ("7 μs", 7e-6),
            ("-3.5", -3.5),
            ("4K", 4000.0),
            ("4 k", 4000.0),
            ("4 KiB", 4096.0),
            ("1.5GiB/s", 1.5 * 1024.0 * 1024.0 * 1024.0),
            ("1.1 GB", 1.1e9),
            ("1.1 GB/s", 1.1e9),
            ("985 MB/s", 985e6),
            ("1e3 kB/s", 1e6),
            ("2.4 Gbits/sec", 2.4e9),
            ("12 B/s", 12.0),
            ("3.1 M", 3.1e6),
        ] {
            assert!((figure(text).expect(text) / value - 1.0).abs() < 1e-12, "{text}");
        }
        for text in ["", "many", "inf", "nan", "1:x", "12 apples", "1.1 GX", "s", "3 s/GB", "1.2.3", "KiB"] {
            assert!(figure(text).is_err(), "{text}");
        }
    }

    #[test]
    fn several_matches_need_a_choice() {
        let read = |take, text: &str| {
            declared(Some("tps = ([0-9.]+)"), None, take).read(text, Path::new("/"), SystemTime::UNIX_EPOCH)
        };
        assert_eq!(read(None, "x\ntps = 12.5 y"), Ok(12.5));
        assert_eq!(read(Some("sum"), "tps = 1 tps = 2"), Ok(3.0));
        assert_eq!(read(Some("last"), "tps = 1 tps = 2"), Ok(2.0));
        assert_eq!(
            read(None, "tps = 1 tps = 2").expect_err("two"),
            "2 places match \"tps = ([0-9.]+)\"; take = \"last\" or \"sum\" (--take) chooses among them"
        );
        assert!(read(None, "nothing").expect_err("none").starts_with("nothing matches"));
    }

    #[test]
    fn of_several_json_documents_it_is_said_which() {
        let read = |take, text: &str| {
            declared(None, Some("/jobs/0/iops"), take).read(text, Path::new("/"), SystemTime::UNIX_EPOCH)
        };
        let two = "note: [2 of 2]\n{\"jobs\": [{\"iops\": 10}]}\n{\"end\": 1}\nthen {\"jobs\": [{\"iops\": \"0.9k\"}]} [end]";
        assert_eq!(read(Some("last"), two), Ok(900.0));
        assert_eq!(read(Some("sum"), two), Ok(910.0));
        assert_eq!(
            read(None, two).expect_err("two"),
            "2 JSON documents have /jobs/0/iops; take = \"last\" or \"sum\" (--take) chooses among them"
        );
        let cut = "{\"jobs\": [{\"iops\": 10}]}\n{\"jobs\": [{\"iops\"";
        assert!(read(Some("last"), cut).expect_err("cut").starts_with("JSON document 2 is cut: "));
        assert!(read(None, "{x}").expect_err("none").starts_with("no JSON: "));
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
    fn a_file_with_time_set_back_was_written_now() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = std::fs::File::create(directory.path().join("copy")).expect("a file");
        file.set_len(7).expect("longer");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).expect("set back");
        let size = Declared { size: Some("copy".to_string()), ..declared(None, None, None) };
        let now = SystemTime::UNIX_EPOCH + plumb_events::clock::wall();
        assert_eq!(size.read("", directory.path(), now - Duration::from_secs(60)), Ok(7.0));
        let before = size.read("", directory.path(), now + Duration::from_secs(60));
        assert_eq!(before.expect_err("older"), "copy was not written by this run");
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
