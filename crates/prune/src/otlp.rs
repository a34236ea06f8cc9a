//! Traces of OpenTelemetry: OTLP as JSON, one document or one a line.
//!
//! The copy has the bytes of the file, but for ids, times and removed spans. Spans of several
//! traces, resources and scopes may be mixed. A span's times are nanoseconds, so that what a
//! removed span took is cut out of the trace: later spans begin earlier, and a top span keeps its
//! start. An event moves with its span's start and is not later than its end.
//!
//! Ids of traces and spans are exchanged by masks that follow from file and rules: equal ids stay
//! equal, links within the file follow, and a link to a trace that is not in the file stays.

use crate::input::{Fault, FaultKind, Input};
use crate::json::{Place, Visit, walk};
use crate::rule::SpanFields;
use crate::tree::{NONE, SPANS_MOST, Span, TIME_MOST, Tree, UNKNOWN};
use crate::{Chosen, key};
use plumb_units::visible;
use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;

/// Attributes with the statement, the newer name first, and with the number of its rows.
const STATEMENTS: [&str; 2] = ["db.query.text", "db.statement"];
const ROWS: &str = "db.response.returned_rows";
/// Words of the kinds from 0 on.
const KINDS: [&str; 6] = ["unspecified", "internal", "server", "client", "producer", "consumer"];

/// Traces of the file, by their hashes.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    known: HashSet<u128>,
    with_top: HashSet<u128>,
    /// Traces with more than one top span.
    pub several_tops: u64,
}

/// Collects the spans of a file.
struct Collect<'a> {
    tree: &'a mut Tree,
    traces: &'a mut Traces,
    chosen: &'a mut Chosen,
    fields: SpanFields,
    ids: [Option<Vec<u8>>; 3],
    times: [Option<i64>; 2],
    key: String,
    value: String,
}

pub(crate) fn read(input: &mut Input, tree: &mut Tree, chosen: &mut Chosen) -> Result<Traces, Fault> {
    let mut traces = Traces::default();
    let fields = SpanFields::default();
    let (ids, times, key, value) = Default::default();
    let mut collect = Collect { tree, traces: &mut traces, chosen, fields, ids, times, key, value };
    walk(input, &mut collect)?;
    Ok(traces)
}

impl Visit for Collect<'_> {
    fn open(&mut self, place: Place, _: &[u8]) -> Result<(), FaultKind> {
        match place {
            Place::Span => {
                self.fields = SpanFields::default();
                (self.ids, self.times) = Default::default();
            }
            Place::Attribute => (self.key, self.value) = Default::default(),
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, place: Place, _: &[u8]) -> Result<(), FaultKind> {
        match place {
            Place::Span => self.add(),
            Place::Attribute => {
                let is_known = STATEMENTS.contains(&self.key.as_str()) || self.key == ROWS;
                if is_known || self.chosen.wants(&self.key) {
                    let attribute = (std::mem::take(&mut self.key), std::mem::take(&mut self.value));
                    self.fields.attributes.push(attribute);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn scalar(&mut self, place: Place, text: &[u8]) -> Result<(), FaultKind> {
        match place {
            Place::TraceId => self.ids[0] = Some(id(text, "traceId")?),
            Place::SpanId => self.ids[1] = Some(id(text, "spanId")?),
            Place::ParentId => self.ids[2] = Some(id(text, "parentSpanId")?),
            Place::Start => self.times[0] = Some(time(text)?),
            Place::End => self.times[1] = Some(time(text)?),
            Place::Name => self.fields.name = Some(plain(text)?),
            Place::Kind => {
                let kind = plain(text)?.trim_start_matches("SPAN_KIND_").to_lowercase();
                let place = kind.parse().ok().or(KINDS.iter().position(|known| *known == kind));
                let word = place.and_then(|place| KINDS.get(place)).map(|word| (*word).to_string());
                self.fields.kinds = place.map(|place| place.to_string()).into_iter().chain(word).collect();
            }
            Place::Span => return Err("a span is no object in braces".to_string().into()),
            Place::Key => self.key = plain(text)?,
            Place::Value => self.value = plain(text)?,
            _ => {}
        }
        Ok(())
    }

    fn copy(&mut self, _: Place, _: &[u8]) -> Result<(), FaultKind> {
        Ok(())
    }
}

impl Collect<'_> {
    /// Adds the span that has ended.
    fn add(&mut self) -> Result<(), FaultKind> {
        let fields = &mut self.fields;
        let [trace, span, parent] = &self.ids;
        let named = fields.name.as_deref().unwrap_or("(no name)");
        let missing = |what: &str| FaultKind::Other(format!("span {} has no {what}", visible(named)));
        let trace = trace.as_ref().filter(|id| id.len() == 16).ok_or_else(|| missing("traceId"))?;
        let span = span.as_ref().filter(|id| id.len() == 8).ok_or_else(|| missing("spanId"))?;
        let start = self.times[0].ok_or_else(|| missing("startTimeUnixNano"))?;
        let end = self.times[1].filter(|end| *end > 0);
        let end = end.ok_or_else(|| missing("endTimeUnixNano: its duration is unknown, and not 0"))?;
        if end < start {
            let early = start - end;
            return Err(format!("span {} ends {early} ns before it begins", visible(named)).into());
        }
        let parent = parent.as_ref().filter(|id| id.iter().any(|byte| *byte != 0));
        let hash = key(&[trace]);
        self.traces.known.insert(hash);
        if parent.is_none() && !self.traces.with_top.insert(hash) {
            self.traces.several_tops += 1;
        }
        let attribute = |name: &str| {
            let mut all = fields.attributes.iter();
            all.find(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        fields.sql = STATEMENTS.iter().find_map(|name| attribute(name)).filter(|sql| !sql.is_empty());
        let fetches = attribute(ROWS).and_then(|rows| rows.parse().ok()).unwrap_or(UNKNOWN);
        let statement = fields.sql.as_ref().map_or(0, |sql| self.tree.labels.statement(sql));
        if self.tree.spans.len() == SPANS_MOST {
            return Err(format!("the file has more than {SPANS_MOST} spans; cut it by trace").into());
        }
        let top = if parent.is_none() { self.tree.labels.of(named) } else { 0 };
        let removed = self.chosen.takes(fields);
        let duration = end - start;
        let executions = u8::from(statement != 0);
        let new = Span { start, duration, fetches, parent: NONE, top, statement, executions, removed };
        self.tree.add(new, key(&[trace, span]), parent.map_or(0, |parent| key(&[trace, parent])));
        Ok(())
    }
}

/// Decodes the text of a string of JSON, and takes numbers as they are.
fn plain(text: &[u8]) -> Result<String, FaultKind> {
    let decoded = match text.first() {
        Some(b'"') => serde_json::from_slice(text).map_err(|error| error.to_string()),
        _ => String::from_utf8(text.to_vec()).map_err(|error| error.to_string()),
    };
    decoded.map_err(|why| FaultKind::Other(format!("a text cannot be read: {why}")))
}

/// Decodes an id in hexadecimal; an absent one is empty.
fn id(text: &[u8], name: &str) -> Result<Vec<u8>, FaultKind> {
    let text = plain(text)?;
    let digit = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digit).collect();
    let length = if name == "traceId" { 16 } else { 8 };
    let is_absent = text.is_empty() || text == "null";
    bytes.filter(|bytes| bytes.len() == length).or(is_absent.then(Vec::new)).ok_or_else(|| {
        let digits = 2 * length;
        let found = plumb_units::cut(&text, 40).into_owned();
        FaultKind::Other(format!("{name} is {found:?}, expected {digits} hexadecimal digits"))
    })
}

fn time(text: &[u8]) -> Result<i64, FaultKind> {
    let text = plain(text)?;
    let known = text.parse::<i64>().ok().filter(|time| (0..=TIME_MOST).contains(time));
    known.ok_or_else(|| FaultKind::Other(format!("time {text:?}, expected nanoseconds since 1970")))
}

/// Writes the kept spans of a file.
struct Copy<'a, W> {
    tree: &'a Tree,
    traces: &'a Traces,
    mask: [u8; 16],
    to: W,
    /// Number of spans that have begun.
    spans: usize,
    is_dropping: bool,
    /// Blanks and a comma before a span that may be dropped.
    pending: Vec<u8>,
    /// True from the first kept span of a list on.
    has_kept: bool,
    /// The current link, and in it the place of the span's id; its trace may follow.
    link: Option<Vec<u8>>,
    link_span: Option<Range<usize>>,
    link_follows: bool,
}

pub(crate) fn write(
    input: &mut Input,
    tree: &Tree,
    traces: &Traces,
    mask: [u8; 16],
    to: impl Write,
) -> Result<(), Fault> {
    let mut copy = Copy {
        tree,
        traces,
        mask,
        to,
        spans: 0,
        is_dropping: false,
        pending: Vec::new(),
        has_kept: false,
        link: None,
        link_span: None,
        link_follows: false,
    };
    walk(input, &mut copy)
}

impl<W: Write> Copy<'_, W> {
    fn put(&mut self, bytes: &[u8]) -> Result<(), FaultKind> {
        match &mut self.link {
            _ if self.is_dropping => {}
            Some(link) => link.extend_from_slice(bytes),
            None => self.to.write_all(bytes)?,
        }
        Ok(())
    }

    /// Writes another value in the form of the given text.
    fn replace(&mut self, text: &[u8], value: &str) -> Result<(), FaultKind> {
        let quote: &[u8] = if text.starts_with(b"\"") { b"\"" } else { b"" };
        self.put(&[quote, value.as_bytes(), quote].concat())
    }

    /// Returns another id in the spelling of the given one.
    fn exchanged(&self, text: &[u8], name: &str) -> Result<String, FaultKind> {
        let id = id(text, name)?;
        let new: Vec<u8> = id.iter().zip(self.mask).map(|(byte, mask)| byte ^ mask).collect();
        // An id of zeros is none, and the mask's own image is free because of that.
        let is_zero = new.iter().all(|byte| *byte == 0);
        let new = plumb_units::hex(if is_zero { &id } else { &new });
        let is_upper = text.iter().any(u8::is_ascii_uppercase);
        Ok(if is_upper { new.to_uppercase() } else { new })
    }

    fn times(&self) -> (&Span, &crate::tree::Times) {
        (&self.tree.spans[self.spans - 1], &self.tree.times[self.spans - 1])
    }
}

impl<W: Write> Visit for Copy<'_, W> {
    fn open(&mut self, place: Place, bracket: &[u8]) -> Result<(), FaultKind> {
        match place {
            Place::Spans => {
                self.put(bracket)?;
                self.pending.clear();
                self.has_kept = false;
                return Ok(());
            }
            Place::Span => {
                let span = self.tree.spans.get(self.spans);
                self.spans += 1;
                self.is_dropping = span.is_none_or(|span| span.removed);
                if !self.is_dropping {
                    let mut pending = std::mem::take(&mut self.pending);
                    pending.retain(|byte| *byte != b',' || self.has_kept);
                    self.put(&pending)?;
                    self.has_kept = true;
                }
                self.pending.clear();
            }
            Place::Link if !self.is_dropping => {
                (self.link, self.link_span, self.link_follows) = (Some(Vec::new()), None, false);
            }
            _ => {}
        }
        self.put(bracket)
    }

    fn close(&mut self, place: Place, bracket: &[u8]) -> Result<(), FaultKind> {
        match place {
            Place::Spans => {
                let pending = std::mem::take(&mut self.pending);
                self.put(&pending)?;
            }
            Place::Link => {
                if let Some(mut link) = self.link.take() {
                    if let (Some(range), true) = (self.link_span.take(), self.link_follows) {
                        let new = self.exchanged(&link[range.clone()], "spanId")?;
                        link.splice(range, format!("\"{new}\"").into_bytes());
                    }
                    self.put(&link)?;
                }
            }
            _ => {}
        }
        self.put(bracket)?;
        self.is_dropping &= place != Place::Span;
        Ok(())
    }

    fn scalar(&mut self, place: Place, text: &[u8]) -> Result<(), FaultKind> {
        if self.is_dropping {
            return Ok(());
        }
        match place {
            Place::TraceId => self.replace(text, &self.exchanged(text, "traceId")?),
            Place::SpanId => self.replace(text, &self.exchanged(text, "spanId")?),
            // Texts without an id say that there is no parent.
            Place::ParentId if id(text, "parentSpanId")?.iter().any(|byte| *byte != 0) => {
                self.replace(text, &self.exchanged(text, "parentSpanId")?)
            }
            Place::LinkTrace => {
                let known = id(text, "traceId")?;
                self.link_follows = self.traces.known.contains(&key(&[&known]));
                match self.link_follows {
                    true => self.replace(text, &self.exchanged(text, "traceId")?),
                    false => self.put(text),
                }
            }
            Place::LinkSpan => {
                let start = self.link.as_ref().map_or(0, Vec::len);
                let has_id = !id(text, "spanId")?.is_empty();
                self.link_span = has_id.then_some(start..start + text.len());
                self.put(text)
            }
            Place::Start => {
                let start = self.times().1.start.max(0);
                self.replace(text, &start.to_string())
            }
            Place::End => {
                let times = self.times().1;
                let end = times.start.max(0) + times.duration;
                self.replace(text, &end.to_string())
            }
            Place::EventTime => {
                let (before, after) = self.times();
                let moved = time(text)? - before.start + after.start;
                let moved = moved.min(after.start + after.duration).max(0);
                self.replace(text, &moved.to_string())
            }
            _ => self.put(text),
        }
    }

    fn copy(&mut self, within: Place, bytes: &[u8]) -> Result<(), FaultKind> {
        if within == Place::Spans {
            self.pending.extend_from_slice(bytes);
            return Ok(());
        }
        self.put(bytes)
    }
}
