//! Spans as rows of a CSV file, by a mapping of columns.
//!
//! | key of `--map` | the column has |
//! |---|---|
//! | `id`, `parent` | ids of a span and of the span above it; blank or 0 at a top span |
//! | `top` | id of the top span, which the parents must lead to |
//! | `duration_s`, `_ms`, `_us`, `_ns` | time of the span with all below it |
//! | `type`, `name`, `sql` | values that rules compare |
//! | `fetches` | rows or calls of a statement |
//!
//! PSPMTRANSHIST, the table of PeopleSoft's Performance Monitor, needs no mapping. It keeps sums at
//! some types of spans: time in SQL at 400, 427 and 428, executions (type 408) and fetches (metric
//! 3 of type 414) at 400. These are corrected, and the name of the trace gets the prefix `xPT`.
//!
//! A row keeps its bytes, but for ids, durations and sums. New ids follow the old ones at one
//! distance, so that their order stays. Times of day stay: they are too coarse to be moved.

use crate::input::{Fault, FaultKind, Input, has_open_quote};
use crate::rule::SpanFields;
use crate::tree::{NONE, SPANS_MOST, Span, Summary, TIME_MOST, Tree, UNKNOWN};
use crate::{Chosen, PruneError, key};
use plumb_units::{cut, nearest};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;

/// Keys of a mapping, with the digits of the durations' unit.
const KEYS: [(&str, usize); 11] = [
    ("id", 0),
    ("parent", 0),
    ("top", 0),
    ("duration_ns", 0),
    ("duration_us", 3),
    ("duration_ms", 6),
    ("duration_s", 9),
    ("type", 0),
    ("name", 0),
    ("sql", 0),
    ("fetches", 0),
];
/// The columns of PSPMTRANSHIST; a sum of a type may be in any of its metrics.
const PSPMTRANSHIST: &str = "id=PM_INSTANCE_ID,parent=PM_PARENT_INST_ID,top=PM_TOP_INST_ID,\
    duration_ms=PM_TRANS_DURATION,type=PM_TRANS_DEFN_ID,name=PM_PERF_TRACE,sql=PM_METRIC_VALUE7";
const METRICS: [&str; 4] = ["PM_METRIC_VALUE3", "PM_METRIC_VALUE4", "PM_METRIC_VALUE5", "PM_METRIC_VALUE6"];
/// Types of PSPMTRANSHIST: the execution and the fetch of a statement, and an implicit commit.
const EXECUTION: &str = "408";
const FETCH: &str = "414";
const COMMIT: &str = "425";
/// Width of the name of a trace there, its prefix, and the bound below which ids are of copies.
const NAME_LETTERS: usize = 30;
const PREFIX: &str = "xPT";
const COPIES_BELOW: u128 = 10_000_000_000_000_000;

/// Columns of a file that has spans as rows.
#[derive(Debug, Clone)]
pub struct ColumnMapping {
    columns: BTreeMap<&'static str, String>,
    is_source: bool,
}

impl ColumnMapping {
    /// Parses pairs of keys and columns, `id=COLUMN,parent=COLUMN,duration_ms=COLUMN`.
    ///
    /// # Errors
    /// If a key is unknown or missing, or has no column.
    pub fn parse(text: &str) -> Result<ColumnMapping, PruneError> {
        let refused = |why: String| PruneError::Mapping { text: text.to_string(), why };
        let mut columns = BTreeMap::new();
        for pair in text.split(',') {
            let (name, column) = pair.split_once('=').unwrap_or((pair, ""));
            let known = KEYS.iter().map(|(key, _)| *key);
            let Some(key) = known.clone().find(|key| *key == name.trim()) else {
                let near =
                    nearest(name, known).map_or(String::new(), |near| format!("; did you mean {near}?"));
                let keys = KEYS.map(|(key, _)| key).join(", ");
                return Err(refused(format!("{name:?} is no key, expected {keys}{near}")));
            };
            if column.trim().is_empty() {
                return Err(refused(format!("{key} names no column, expected {key}=COLUMN")));
            }
            columns.insert(key, column.trim().to_string());
        }
        let durations = columns.keys().filter(|key| key.starts_with("duration_")).count();
        for (key, is_named) in [
            ("id", columns.contains_key("id")),
            ("parent", columns.contains_key("parent")),
            ("one of duration_s, duration_ms, duration_us and duration_ns", durations == 1),
        ] {
            if !is_named {
                return Err(refused(format!("no column is named for {key}")));
            }
        }
        Ok(ColumnMapping { columns, is_source: text == PSPMTRANSHIST })
    }
}

/// The columns of a file by their places, and its ids.
#[derive(Debug)]
pub(crate) struct Columns {
    delimiter: u8,
    names: Vec<String>,
    places: BTreeMap<&'static str, usize>,
    metrics: Option<[usize; 4]>,
    /// Digits behind the decimal point of a nanosecond in the unit of the durations.
    digits: usize,
    /// Lowest and highest id that is a number; `None` if an id is another text.
    ids: Option<(u128, u128)>,
    /// Hash of the top of each span, or 0.
    tops: Vec<u64>,
}

/// The statement of a span, and its counts.
struct Work {
    sql: Option<String>,
    executions: u8,
    fetches: Option<i64>,
    summary: Summary,
}

/// A record of a file.
#[derive(Debug, Default)]
struct Row {
    bytes: Vec<u8>,
    fields: Vec<Range<usize>>,
}

impl Row {
    /// Reads the next record; false at the end of the file.
    fn read(&mut self, input: &mut Input) -> Result<bool, Fault> {
        self.bytes.clear();
        let mut is_open = false;
        loop {
            let start = self.bytes.len();
            if !input.read_line(&mut self.bytes)? {
                return match is_open {
                    true => Err(input.fault(FaultKind::Cut("a text in quotes"))),
                    false => Ok(false),
                };
            }
            is_open ^= has_open_quote(&self.bytes[start..]);
            if !is_open {
                return Ok(true);
            }
        }
    }

    fn split(&mut self, delimiter: u8) {
        let end = self.bytes.trim_ascii_end().len();
        let end = if delimiter == b'\t' { self.bytes.len() - line_end(&self.bytes) } else { end };
        self.fields.clear();
        let (mut start, mut is_quoted) = (0, false);
        for (at, byte) in self.bytes[..end].iter().enumerate() {
            is_quoted ^= *byte == b'"';
            if *byte == delimiter && !is_quoted {
                self.fields.push(start..at);
                start = at + 1;
            }
        }
        self.fields.push(start..end);
    }

    /// Returns the text of a field, without its quotes.
    fn text(&self, place: usize) -> String {
        let text = String::from_utf8_lossy(&self.bytes[self.fields[place].clone()]);
        let text = text.trim();
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        inner.map_or_else(|| text.to_string(), |inner| inner.replace("\"\"", "\""))
    }
}

fn line_end(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|byte| matches!(byte, b'\n' | b'\r')).count()
}

/// True if the first line has the columns of the table that needs no mapping.
pub(crate) fn is_source(head: &str) -> bool {
    head.to_uppercase().contains("PM_INSTANCE_ID")
}

/// Reads the spans of a file.
pub(crate) fn read(
    input: &mut Input,
    mapping: Option<&ColumnMapping>,
    tree: &mut Tree,
    chosen: &mut Chosen,
) -> Result<Columns, Fault> {
    let mut row = Row::default();
    row.read(input)?;
    let own = ColumnMapping::parse(PSPMTRANSHIST);
    let own = own.map_err(|error| input.fault(error.to_string()))?;
    let of_head = |why: String| Fault { line: 1, why: FaultKind::Other(why) };
    let mut columns = Columns::of(&mut row, mapping.unwrap_or(&own)).map_err(of_head)?;
    columns.require(chosen).map_err(of_head)?;
    let mut tops = Vec::new();
    while row.read(input)? {
        row.split(columns.delimiter);
        let line = input.line - 1;
        if row.bytes.trim_ascii().is_empty() {
            continue;
        }
        if row.fields.len() < columns.names.len() && !row.bytes.ends_with(b"\n") {
            return Err(Fault { line: input.line, why: FaultKind::Cut("a row") });
        }
        let added = columns.add(&row, tree, chosen);
        tops.push(added.map_err(|why| Fault { line, why: FaultKind::Other(why) })?);
    }
    columns.tops = tops;
    Ok(columns)
}

impl Columns {
    fn of(row: &mut Row, mapping: &ColumnMapping) -> Result<Columns, String> {
        let head = String::from_utf8_lossy(&row.bytes).into_owned();
        let delimiter = [b',', b';', b'\t', b'|'].into_iter().max_by_key(|delimiter| {
            let count = head.bytes().filter(|byte| byte == delimiter).count();
            // The first of equals: `max_by_key` takes the last.
            2 * count + usize::from(*delimiter == b',')
        });
        let delimiter = delimiter.unwrap_or(b',');
        row.split(delimiter);
        let names: Vec<String> =
            (0..row.fields.len()).map(|at| row.text(at).trim_start_matches('\u{feff}').to_string()).collect();
        let place = |column: &str| names.iter().position(|name| name.eq_ignore_ascii_case(column));
        let mut places = BTreeMap::new();
        for (key, column) in &mapping.columns {
            let found = place(column).ok_or_else(|| {
                let near = nearest(column, names.iter().map(String::as_str));
                let near = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
                let all = names.join(", ");
                format!("there is no column {column} for {key}; the file has {}{near}", cut(&all, 200))
            })?;
            places.insert(*key, found);
        }
        let metrics = METRICS.map(place);
        let metrics = match metrics.iter().flatten().count() {
            4 if mapping.is_source => Some(metrics.map(Option::unwrap_or_default)),
            _ => None,
        };
        let unit = KEYS.iter().find(|(key, _)| key.starts_with("duration_") && places.contains_key(key));
        let digits = unit.map_or(0, |(_, digits)| *digits);
        Ok(Columns { delimiter, names, places, metrics, digits, ids: Some((u128::MAX, 0)), tops: Vec::new() })
    }

    /// Refuses rules about columns that are not there.
    fn require(&self, chosen: &Chosen) -> Result<(), String> {
        let known = |name: &str| self.names.iter().any(|known| known == name);
        match chosen.attributes().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => {
                let near = nearest(name, self.names.iter().map(String::as_str));
                let near = near.map_or(String::new(), |near| format!("; did you mean attr.{near}?"));
                Err(format!("--drop attr.{name}: the file has no column {name}{near}"))
            }
        }
    }

    /// Refuses spans of another top than their parent's.
    pub fn require_tops(&self, tree: &Tree) -> Result<(), String> {
        for (at, top) in self.tops.iter().enumerate() {
            let parent = tree.spans[at].parent;
            let above = self.tops.get(parent as usize).copied().unwrap_or(*top);
            if *top != above && *top != 0 && above != 0 {
                let [at, parent] = [at + 1, parent as usize + 1];
                return Err(format!("span {at} has another top than span {parent} above it, expected one"));
            }
        }
        Ok(())
    }

    fn text(&self, row: &Row, key: &str) -> Option<String> {
        self.places.get(key).map(|place| row.text(*place)).filter(|text| !text.is_empty())
    }

    /// Returns the ids of a span, its parent and its top; a number without its first zeros.
    fn ids(&mut self, row: &Row) -> [Option<String>; 3] {
        let mut ids = ["id", "parent", "top"].map(|name| self.text(row, name).filter(|id| !is_none(id)));
        for id in ids.iter_mut().flatten() {
            match number(id) {
                Some(number) => {
                    self.ids = self.ids.map(|(low, high)| (low.min(number), high.max(number)));
                    *id = number.to_string();
                }
                None => self.ids = None,
            }
        }
        ids
    }

    fn work(&self, row: &Row, kind: &str) -> Result<Work, String> {
        let sql = self.text(row, "sql");
        let fetches = self.text(row, "fetches").map(|text| count(&text, "fetches")).transpose()?;
        let mut work =
            Work { executions: u8::from(sql.is_some()), sql, fetches, summary: Summary::default() };
        let Some(metrics) = &self.metrics else { return Ok(work) };
        let metric = |metric: usize| {
            let text = row.text(metrics[metric - 3]);
            (!text.is_empty()).then(|| count(&text, METRICS[metric - 3])).transpose()
        };
        work.executions = u8::from(kind == EXECUTION);
        match kind {
            FETCH => work.fetches = metric(3)?,
            COMMIT => work.sql = work.sql.or(Some("(implicit commit)".to_string())),
            "400" => work.summary = Summary { sql: metric(4)?, executions: metric(5)?, fetches: metric(6)? },
            "427" | "428" => work.summary.sql = metric(3)?,
            _ => {}
        }
        // Of types that keep sums, metric 7 is no statement.
        work.sql = work.sql.filter(|_| work.summary == Summary::default());
        work.summary.sql = work.summary.sql.map(|ms| ms.saturating_mul(1_000_000));
        Ok(work)
    }

    /// Adds the span of a row; returns the hash of its top's id, or 0.
    fn add(&mut self, row: &Row, tree: &mut Tree, chosen: &mut Chosen) -> Result<u64, String> {
        let (found, expected) = (row.fields.len(), self.names.len());
        if found != expected {
            return Err(format!("the row has {found} fields, expected {expected}"));
        }
        if tree.spans.len() == SPANS_MOST {
            return Err(format!("the file has more than {SPANS_MOST} spans; cut it by trace"));
        }
        let [Some(id), parent, top] = self.ids(row) else {
            return Err(format!("the span has no id in {}", self.names[self.places["id"]]));
        };
        let hash = |id: &String| key(&[id.as_bytes()]);
        let top_hash = top.as_ref().map_or(0, hash) as u64;
        if let (None, Some(top)) = (&parent, &top)
            && *top != id
        {
            return Err(format!("span {id} has no parent, and another top: {top}; expected one top"));
        }
        let kind = self.text(row, "type");
        let Work { sql, executions, fetches, summary } =
            self.work(row, kind.as_deref().unwrap_or_default())?;
        if summary != Summary::default() {
            tree.summaries.insert(tree.spans.len() as u32, summary);
        }
        let named = self.text(row, "name");
        let top = match (&parent, &named, self.metrics.is_some()) {
            (Some(_), ..) => 0,
            (None, Some(name), true) => tree.labels.of(&format!("{name} {id}")),
            (None, Some(name), false) => tree.labels.of(name),
            (None, None, _) => tree.labels.of(&format!("span {id}")),
        };
        let place =
            *self.places.iter().find(|(key, _)| key.starts_with("duration_")).map_or(&0, |(_, at)| at);
        let duration = nanoseconds(&row.text(place), self.digits).ok_or_else(|| {
            format!("span {id} has the duration {:?}, expected a number of 0 or more", row.text(place))
        })?;
        let attribute =
            |at: usize| chosen.wants(&self.names[at]).then(|| (self.names[at].clone(), row.text(at)));
        let attributes = (0..found).filter_map(attribute).collect();
        let statement = sql.as_ref().map_or(0, |sql| tree.labels.statement(sql));
        let fields = SpanFields { sql, name: named, kinds: kind.into_iter().collect(), attributes };
        let removed = chosen.takes(&fields);
        let fetches = fetches.map_or(UNKNOWN, |fetches| fetches as u64);
        let span = Span { start: 0, duration, fetches, parent: NONE, top, statement, executions, removed };
        tree.add(span, hash(&id), parent.as_ref().map_or(0, hash));
        Ok(top_hash)
    }

    /// Returns the id of a copy.
    fn exchanged(&self, id: &str, mask: [u8; 16]) -> String {
        match (self.ids, number(id)) {
            _ if is_none(id) => id.to_string(),
            (Some((low, high)), Some(number)) => {
                let drawn = mask[..8].iter().fold(0, |sum, byte| sum << 8 | u128::from(*byte));
                // Copies of the source's table are below its bound.
                let base = match self.metrics.is_some() && low > COPIES_BELOW {
                    true if high - low < COPIES_BELOW / 2 => 1 + drawn % (COPIES_BELOW / 2),
                    true => 1,
                    false => high + 1,
                };
                (base + number.saturating_sub(low)).to_string()
            }
            _ => format!("x{id}"),
        }
    }

    /// Returns the new texts of a kept row, by their places.
    fn changes(&self, row: &Row, tree: &Tree, at: usize, mask: [u8; 16]) -> BTreeMap<usize, String> {
        let mut changes = BTreeMap::new();
        for place in ["id", "parent", "top"].iter().filter_map(|key| self.places.get(key)) {
            changes.insert(*place, self.exchanged(&row.text(*place), mask));
        }
        let duration = tree.times[at].duration;
        let place = self.places.iter().find(|(key, _)| key.starts_with("duration_"));
        if let Some((_, place)) = place.filter(|_| duration != tree.spans[at].duration) {
            changes.insert(*place, decimal(duration, self.digits));
        }
        let Some(metrics) = self.metrics else { return changes };
        let name = self.places["name"];
        let renamed = format!("{PREFIX}{}", row.text(name));
        changes.insert(name, renamed.chars().take(NAME_LETTERS).collect());
        if let Some(summary) = tree.summaries.get(&(at as u32)) {
            let is_400 = row.text(self.places["type"]) == "400";
            let sql = summary.sql.map(|sql| sql / 1_000_000);
            changes.extend(sql.map(|sql| (metrics[usize::from(is_400)], sql.to_string())));
            changes.extend(summary.executions.map(|sum| (metrics[2], sum.to_string())));
            changes.extend(summary.fetches.map(|sum| (metrics[3], sum.to_string())));
        }
        changes
    }
}

/// Writes the kept rows of a file.
pub(crate) fn write(
    input: &mut Input,
    columns: &Columns,
    tree: &Tree,
    mask: [u8; 16],
    to: &mut impl Write,
) -> Result<(), Fault> {
    let (mut row, mut at, mut is_head) = (Row::default(), 0, true);
    while row.read(input)? {
        row.split(columns.delimiter);
        let is_span = !is_head && !row.bytes.trim_ascii().is_empty();
        let mut written = 0;
        if is_span {
            // A file that has changed may have more rows; its hash differs then.
            let kept =
                tree.spans.get(at).filter(|span| !span.removed && row.fields.len() == columns.names.len());
            at += 1;
            if kept.is_none() {
                continue;
            }
            for (place, text) in columns.changes(&row, tree, at - 1, mask) {
                let field = row.fields[place].clone();
                let is_quoted = row.bytes[field.clone()].trim_ascii().starts_with(b"\"");
                let text = if is_quoted { format!("\"{}\"", text.replace('"', "\"\"")) } else { text };
                let new = [&row.bytes[written..field.start], text.as_bytes()].concat();
                to.write_all(&new).map_err(|error| input.fault(error))?;
                written = field.end;
            }
        }
        is_head = false;
        to.write_all(&row.bytes[written..]).map_err(|error| input.fault(error))?;
    }
    Ok(())
}

fn is_none(id: &str) -> bool {
    id.bytes().all(|digit| digit == b'0') || id.eq_ignore_ascii_case("null")
}

/// Returns an id of up to 30 digits; sums of two have room.
fn number(id: &str) -> Option<u128> {
    let is_number = (1..=30).contains(&id.len()) && id.bytes().all(|digit| digit.is_ascii_digit());
    id.parse().ok().filter(|_| is_number)
}

fn count(text: &str, column: &str) -> Result<i64, String> {
    let count = text.parse::<i64>().ok().filter(|count| *count >= 0);
    count.ok_or_else(|| format!("{column} is {:?}, expected a number of 0 or more", cut(text, 40)))
}

/// Returns a decimal number times a power of ten.
fn nanoseconds(text: &str, digits: usize) -> Option<i64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    // Digits below a nanosecond must be zeros.
    let (part, rest) = part.split_at_checked(digits).unwrap_or((part, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let all = format!("{whole}{part:0<digits$}");
    let is_exact =
        rest.bytes().all(|byte| byte == b'0') && is_number(&all) && !(whole.is_empty() && part.is_empty());
    all.parse().ok().filter(|value| is_exact && (0..=TIME_MOST).contains(value))
}

/// Returns nanoseconds in a unit, with the decimals that they need.
fn decimal(value: i64, digits: usize) -> String {
    let text = format!("{value:0>width$}", width = digits + 1);
    let (whole, part) = text.split_at(text.len() - digits);
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_string() } else { format!("{whole}.{part}") }
}
