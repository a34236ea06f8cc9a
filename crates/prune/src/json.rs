//! JSON as a stream: bytes are handed on as they are, with the places that OTLP gives them.
//!
//! Nothing is kept but the text of one string, so a document of any size is read, and what is not
//! understood stays as it was to the byte. Rejected: `serde_json` values, which lose the order of
//! keys, the form of numbers and the blanks, and hold a document of all spans in memory.
//!
//! A file may have one document or several, as the file exporter of the collector writes them.

use crate::input::{Fault, FaultKind, Input, TEXT_MOST, too_long};

/// Most levels of a document; OTLP without nested attributes has 12.
const DEPTH_MOST: usize = 200;

/// Place of a value in a document of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Other,
    Root,
    Resources,
    Resource,
    Scopes,
    Scope,
    Spans,
    Span,
    TraceId,
    SpanId,
    ParentId,
    Name,
    Kind,
    Start,
    End,
    Attributes,
    Attribute,
    Key,
    Value,
    Events,
    Event,
    EventTime,
    Links,
    Link,
    LinkTrace,
    LinkSpan,
}

impl Place {
    fn of_key(self, key: &[u8]) -> Place {
        match (self, key) {
            (Place::Root, b"resourceSpans") => Place::Resources,
            (Place::Resource, b"scopeSpans" | b"instrumentationLibrarySpans") => Place::Scopes,
            (Place::Scope, b"spans") => Place::Spans,
            (Place::Span, b"traceId") => Place::TraceId,
            (Place::Span, b"spanId") => Place::SpanId,
            (Place::Span, b"parentSpanId") => Place::ParentId,
            (Place::Span, b"name") => Place::Name,
            (Place::Span, b"kind") => Place::Kind,
            (Place::Span, b"startTimeUnixNano") => Place::Start,
            (Place::Span, b"endTimeUnixNano") => Place::End,
            (Place::Span, b"attributes") => Place::Attributes,
            (Place::Attribute, b"key") => Place::Key,
            (Place::Attribute, b"value") | (Place::Value, _) => Place::Value,
            (Place::Span, b"events") => Place::Events,
            (Place::Event, b"timeUnixNano") => Place::EventTime,
            (Place::Span, b"links") => Place::Links,
            (Place::Link, b"traceId") => Place::LinkTrace,
            (Place::Link, b"spanId") => Place::LinkSpan,
            _ => Place::Other,
        }
    }

    fn of_element(self) -> Place {
        match self {
            Place::Resources => Place::Resource,
            Place::Scopes => Place::Scope,
            Place::Spans => Place::Span,
            Place::Attributes => Place::Attribute,
            Place::Events => Place::Event,
            Place::Links => Place::Link,
            Place::Root | Place::Value => self,
            _ => Place::Other,
        }
    }
}

/// Takes the bytes of a document in their order.
pub(crate) trait Visit {
    /// Takes a bracket that opens an object or a list.
    fn open(&mut self, place: Place, bracket: &[u8]) -> Result<(), FaultKind>;
    /// Takes the bracket that closes it.
    fn close(&mut self, place: Place, bracket: &[u8]) -> Result<(), FaultKind>;
    /// Takes a string with its quotes, a number or a word.
    fn scalar(&mut self, place: Place, text: &[u8]) -> Result<(), FaultKind>;
    /// Takes keys, blanks, colons and commas within an object or a list.
    fn copy(&mut self, within: Place, bytes: &[u8]) -> Result<(), FaultKind>;
}

/// Reads all documents of a file.
pub(crate) fn walk(input: &mut Input, visit: &mut impl Visit) -> Result<(), Fault> {
    let mut walk = Walk { input, visit, text: Vec::new() };
    loop {
        walk.blanks(Place::Other)?;
        match walk.input.peek()? {
            None => return Ok(()),
            Some(b'{' | b'[') => walk.value(Place::Root, 0)?,
            // The mark of the byte order, at the start of a file.
            Some(byte @ (0xEF | 0xBB | 0xBF)) if walk.input.line == 1 => walk.pass(Place::Other, byte)?,
            Some(byte) => return Err(walk.unexpected(byte, "a document in braces")),
        }
    }
}

struct Walk<'a, V> {
    input: &'a mut Input,
    visit: &'a mut V,
    /// The current string or number.
    text: Vec<u8>,
}

impl<V: Visit> Walk<'_, V> {
    fn value(&mut self, place: Place, depth: usize) -> Result<(), Fault> {
        if depth > DEPTH_MOST {
            return Err(self.input.fault(format!("the document has more than {DEPTH_MOST} levels")));
        }
        match self.next("a value")? {
            open @ (b'{' | b'[') => {
                self.input.take(open);
                self.visit.open(place, &[open]).map_err(|why| self.input.fault(why))?;
                self.members(place, if open == b'{' { b'}' } else { b']' }, depth)
            }
            b'"' => {
                self.string()?;
                self.scalar(place)
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'-' => {
                self.text.clear();
                while let Some(byte) = self.input.peek()?
                    && (byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
                    && self.text.len() < TEXT_MOST
                {
                    self.text.push(byte);
                    self.input.take(byte);
                }
                if serde_json::from_slice::<serde_json::Value>(&self.text).is_err() {
                    // The last word of a cut file is no whole one.
                    self.next("a value")?;
                    let word = String::from_utf8_lossy(&self.text).into_owned();
                    let word = plumb_units::cut(&word, 40);
                    return Err(self.input.fault(format!("{word:?} is no number, true, false or null")));
                }
                self.scalar(place)
            }
            byte => Err(self.unexpected(byte, "a value")),
        }
    }

    /// Reads an object or a list behind its first bracket.
    fn members(&mut self, place: Place, end: u8, depth: usize) -> Result<(), Fault> {
        let within = if end == b'}' { "an object" } else { "a list" };
        let mut is_first = true;
        loop {
            self.blanks(place)?;
            match self.next(within)? {
                byte if byte == end && is_first => break,
                _ if is_first => {}
                byte if byte == end => break,
                b',' => {
                    self.pass(place, b',')?;
                    self.blanks(place)?;
                }
                byte => return Err(self.unexpected(byte, "a comma or the closing bracket")),
            }
            is_first = false;
            if end == b']' {
                self.value(place.of_element(), depth + 1)?;
                continue;
            }
            match self.next(within)? {
                b'"' => self.string()?,
                byte => return Err(self.unexpected(byte, "a key in quotes")),
            }
            let inner = place.of_key(&self.text[1..self.text.len() - 1]);
            self.visit.copy(place, &self.text).map_err(|why| self.input.fault(why))?;
            self.blanks(place)?;
            match self.next(within)? {
                b':' => self.pass(place, b':')?,
                byte => return Err(self.unexpected(byte, "a colon")),
            }
            self.blanks(place)?;
            self.value(inner, depth + 1)?;
        }
        self.input.take(end);
        self.visit.close(place, &[end]).map_err(|why| self.input.fault(why))
    }

    fn scalar(&mut self, place: Place) -> Result<(), Fault> {
        self.visit.scalar(place, &self.text).map_err(|why| self.input.fault(why))
    }

    fn next(&mut self, within: &'static str) -> Result<u8, Fault> {
        self.input.peek()?.ok_or_else(|| self.input.fault(FaultKind::Cut(within)))
    }

    fn unexpected(&self, byte: u8, expected: &str) -> Fault {
        let found = char::from(byte);
        self.input.fault(format!("found {found:?}, expected {expected}"))
    }

    fn pass(&mut self, within: Place, byte: u8) -> Result<(), Fault> {
        self.input.take(byte);
        self.visit.copy(within, &[byte]).map_err(|why| self.input.fault(why))
    }

    fn blanks(&mut self, within: Place) -> Result<(), Fault> {
        while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = self.input.peek()? {
            self.pass(within, byte)?;
        }
        Ok(())
    }

    /// Reads a string with its quotes.
    fn string(&mut self) -> Result<(), Fault> {
        self.text.clear();
        let mut is_escaped = false;
        loop {
            let byte = self.next("a text")?;
            if byte < b' ' {
                return Err(self.unexpected(byte, "a text without control characters"));
            }
            self.input.take(byte);
            self.text.push(byte);
            if byte == b'"' && !is_escaped && self.text.len() > 1 {
                return Ok(());
            }
            is_escaped = byte == b'\\' && !is_escaped;
            if self.text.len() > TEXT_MOST {
                return Err(self.input.fault(too_long("text")));
            }
        }
    }
}
