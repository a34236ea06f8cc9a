//! The first pass: infers the columns' types from all values.
//!
//! A column starts without a type. Its first value makes it a number or a date; the first value
//! unlike those above it makes it text for good. Numbers keep the most digits seen on either side
//! of the point, text the longest value, counted from the first row on.
//!
//! Threads read pieces of the file in parallel, each as if it were the first. Their results
//! are merged in the order of the file. Sometimes a merge is not enough: a column becomes
//! text and the first value that caused it must be found, or a piece has an error. Then the
//! piece is read again with the state of those before it. So the result is that of one thread
//! that reads the whole file.
//!
//! One rule decides about numbers: a column is NUMBER if one [`Spelling`] reproduces every value of
//! it as the file has it. A number whose spelling would change (`007`, `+49`, `1E5`, `1.10` next to
//! `1.9`) stays text. It may be a postal code, a telephone number, an article or a version. Why not
//! the value alone: a lost spelling cannot be restored, but the user can make a text a number at
//! any time by giving the type.

use super::convert::{check_field_count, check_utf8, is_null, trim_blanks};
use super::dates::{DateForm, DateStyle, Forms, Spelling as DateSpelling};
use super::error::excerpt;
use super::header::ColumnName;
use super::pieces::{PieceError, Pieces};
use super::records::{EmptyLines, RecordError, Records};
use super::{CsvError, CsvOptions, DecimalMark};
use plumb_types::{ColumnType, DateError, DateText, NumberError, NumberForm, TEXT_BYTES_MAX, parse_number};
use std::fmt;
use std::num::NonZero;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

/// Finding about a column: its type, and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnFinding {
    /// Name in the table, unique there.
    pub name: String,
    /// Name in the file; it differs if missing or used twice.
    pub header: String,
    /// Basis from which the type follows.
    pub basis: ColumnBasis,
    /// Rows in which it is NULL; 0 if the type was given.
    pub null_count: u64,
}

impl ColumnFinding {
    pub(super) fn given(name: &ColumnName) -> Self {
        ColumnFinding {
            name: name.name.clone(),
            header: name.header.clone(),
            basis: ColumnBasis::Given,
            null_count: 0,
        }
    }
}

/// Basis of a column's type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnBasis {
    /// The caller gave the type.
    Given,
    /// No row has a value of it.
    NoValues,
    /// All its values are numbers.
    Numbers {
        /// Most digits left of the point.
        integer_digits: u16,
        /// Most digits right of the point.
        fraction_digits: u16,
        /// Form that reproduces all of them.
        written: NumberForm,
    },
    /// All its values are dates of one style.
    Dates {
        /// Form and zone of all values.
        style: DateStyle,
        /// Form that reproduces all of them.
        written: DateText,
    },
    /// At least one value is text.
    Text {
        /// Longest value of the column, in bytes.
        bytes_max: u32,
        /// The first value that made it text.
        reason: TextReason,
    },
}

impl ColumnBasis {
    /// Returns the inferred type; a placeholder if the type was given.
    pub(super) fn column_type(&self) -> ColumnType {
        match *self {
            ColumnBasis::Given | ColumnBasis::NoValues => ColumnType::Text { max_bytes: 1 },
            ColumnBasis::Dates { .. } => ColumnType::Date,
            ColumnBasis::Text { bytes_max, .. } => ColumnType::Text { max_bytes: bytes_max },
            ColumnBasis::Numbers { integer_digits, fraction_digits, .. } => {
                let digits = (integer_digits + fraction_digits).max(1);
                if digits > 38 {
                    return ColumnType::NUMBER;
                }
                let scale = (fraction_digits > 0).then_some(fraction_digits as i8);
                ColumnType::Number { precision: Some(digits as u8), scale }
            }
        }
    }

    /// Returns the form in which dates of the column are written.
    pub(super) fn dates(&self) -> DateText {
        match self {
            ColumnBasis::Dates { written, .. } => written.clone(),
            _ => DateText::default(),
        }
    }

    /// Returns the form in which numbers of the column are written.
    pub(super) fn written(&self) -> NumberForm {
        match *self {
            ColumnBasis::Numbers { written, .. } => written,
            _ => NumberForm::SHORTEST,
        }
    }
}

/// The first value that made a column text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextReason {
    /// Line on which its row starts, the first of the file being 1.
    pub line: u64,
    /// The value, cut at 40 bytes.
    pub value: String,
    /// The reason for which it is text.
    pub cause: TextCause,
}

/// Reason for which a value makes its column text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextCause {
    /// It is the first value, and no type fits it.
    NeitherNumberNorDate,
    /// The values above it are numbers.
    NotANumber,
    /// The values above it are dates.
    NotADate,
    /// Leading zeros of the value would be lost.
    LeadingZeros,
    /// Trailing zeros would be lost, because other values have another number of decimals.
    ClosingZeros,
    /// Trailing zeros of values above it would be lost, because it has another number of decimals.
    OtherDecimals,
    /// A plus, or a minus before zero, would be lost.
    Sign,
    /// The exponent of the value would be lost.
    Exponent,
    /// A point without digits on one side would be lost.
    Point,
    /// It has more digits or another magnitude than a NUMBER keeps.
    BeyondNumber,
    /// Fractions of a second would be lost.
    FractionalSeconds,
    /// It is a date of another form than those above it.
    OtherForm,
    /// It is a time of another zone than those above it.
    OtherZone,
    /// It is a date with other zeros, seconds or marks than those above it.
    OtherSpelling,
    /// All values are dates that may have the day or the month first.
    DayOrMonth([DateForm; 2]),
}

/// Prints `line 17: "007" starts with zeros that a number would lose`.
impl fmt::Display for TextReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.cause {
            TextCause::NeitherNumberNorDate => "is neither a number nor a date",
            TextCause::NotANumber => "is not a number, as the values above it are",
            TextCause::NotADate => "is not a date, as the values above it are",
            TextCause::LeadingZeros => "starts with zeros that a number would lose",
            TextCause::ClosingZeros => "ends in zeros that a number would lose",
            TextCause::OtherDecimals => {
                "has other digits behind the point than the values above it, whose closing zeros a number would lose"
            }
            TextCause::Sign => "has a sign that a number would lose",
            TextCause::Exponent => "is written with an exponent, which a number would lose",
            TextCause::Point => "has a point without digits on one side, which a number would lose",
            TextCause::BeyondNumber => "has more digits or another size than a NUMBER keeps",
            TextCause::FractionalSeconds => "has fractional seconds that a DATE would lose",
            TextCause::OtherForm => "is written in another order or with other marks than the dates above it",
            TextCause::OtherSpelling => {
                "has other zeros, seconds or marks than the dates above it, which a DATE would lose"
            }
            TextCause::OtherZone => "has another time zone than the times above it, which a DATE would lose",
            TextCause::DayOrMonth([one, two]) => {
                return write!(
                    f,
                    "line {}: {:?} may be {one} or {two}, and so may all other values; --date-format says which",
                    self.line, self.value
                );
            }
        };
        write!(f, "line {}: {:?} {why}", self.line, self.value)
    }
}

/// The columns of a file, with the facts known before it is read.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) path: &'a Path,
    pub(super) names: &'a [ColumnName],
    pub(super) given: &'a [Option<ColumnType>],
    pub(super) options: &'a CsvOptions,
}

/// Result of the first pass.
pub(super) struct Inferred {
    pub(super) findings: Vec<ColumnFinding>,
    pub(super) rows: u64,
    pub(super) skipped_lines: u64,
    pub(super) several_lines: SeveralLines,
}

/// Rows with a field of several lines, because a quote that is meant as text swallows lines
/// up to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeveralLines {
    /// Number of rows with such a field.
    pub rows: u64,
    /// Line on which the first of them starts.
    pub first: u64,
    /// Number of lines of the first of them.
    pub lines: u64,
}

impl SeveralLines {
    /// Counts a row with `breaks` line breaks in its fields.
    fn note(&mut self, line: u64, breaks: u64) {
        if self.rows == 0 {
            (self.first, self.lines) = (line, breaks + 1);
        }
        self.rows += 1;
    }

    /// Adds the counts of a piece that follows `lines_before` lines.
    fn merge(&mut self, piece: SeveralLines, lines_before: u64) {
        if self.rows == 0 && piece.rows > 0 {
            (self.first, self.lines) = (lines_before + piece.first, piece.lines);
        }
        self.rows += piece.rows;
    }
}

/// Figures of a piece's rows, and a guess for each column.
type Found = Result<(Seen, Vec<Guess>), CsvError>;

/// Figures of the rows of a piece.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    rows: u64,
    several_lines: SeveralLines,
}

/// Pieces that a thread parses while the next ones are read: some milliseconds of work, against
/// which starting the thread costs little.
const PIECES_OF_A_THREAD: usize = 4;

/// Reads all records after the header; `first` has those of the first piece.
pub(super) fn infer(columns: Columns<'_>, pieces: &mut Pieces, first: Records) -> Result<Inferred, CsvError> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let all = columns.inferred();
    let mut guesses = columns.guesses();
    let (mut rows, mut line, mut skipped_lines) = (0, first.next_line(), 0);
    let mut several_lines = SeveralLines::default();
    // Pieces being parsed, and those being read meanwhile; `count` says how many
    // of the latter are filled.
    let (mut now, mut next) = (vec![first], Vec::new());
    let (mut count, mut failed) = (1, None);
    while count > 0 {
        let mut found: Vec<Option<Found>> = (0..count).map(|_| None).collect();
        let queue = Mutex::new(now.iter_mut().zip(&mut found));
        let take = || queue.lock().expect("no thread panics while it takes a piece").next();
        let look = || {
            while let Some((piece, found)) = take() {
                *found = Some(columns.look(piece));
            }
        };
        count = thread::scope(|scope| {
            for _ in 1..threads {
                // Threads that fail to start are not missed: this one parses the remaining pieces.
                let _ = thread::Builder::new().spawn_scoped(scope, look);
            }
            let read = columns.read(pieces, &mut next, threads * PIECES_OF_A_THREAD, &mut failed);
            look();
            read
        });
        for (piece, found) in now.iter_mut().zip(found.into_iter().flatten()) {
            let lines = piece.next_line() - 1;
            let again: Vec<usize> = match &found {
                Ok((_, fresh)) => {
                    all.iter().copied().filter(|index| !guesses[*index].merge(&fresh[*index])).collect()
                }
                // It fails again, now with its line known.
                Err(_) => all.clone(),
            };
            if !again.is_empty() {
                columns.observe(piece, line, &again, &mut guesses)?;
            }
            let seen = found?.0;
            rows += seen.rows;
            several_lines.merge(seen.several_lines, line - 1);
            skipped_lines += piece.skipped_lines();
            line += lines;
        }
        std::mem::swap(&mut now, &mut next);
    }
    if let Some(error) = failed {
        return Err(columns.error(error.at(line)));
    }
    Ok(Inferred { findings: columns.findings(guesses), rows, skipped_lines, several_lines })
}

impl Columns<'_> {
    /// Returns the indices of columns without a given type.
    fn inferred(&self) -> Vec<usize> {
        (0..self.names.len()).filter(|index| self.given[*index].is_none()).collect()
    }

    fn guesses(&self) -> Vec<Guess> {
        self.names.iter().map(|_| Guess::default()).collect()
    }

    fn findings(&self, guesses: Vec<Guess>) -> Vec<ColumnFinding> {
        let findings = self.names.iter().zip(guesses).zip(self.given);
        let finding = |((name, guess), given): ((&ColumnName, Guess), &Option<ColumnType>)| match given {
            Some(_) => ColumnFinding::given(name),
            None => ColumnFinding {
                name: name.name.clone(),
                header: name.header.clone(),
                null_count: guess.null_count,
                basis: guess.basis(),
            },
        };
        findings.map(finding).collect()
    }

    /// Reads up to `most` pieces, none after a failure; returns their number.
    fn read(
        &self,
        pieces: &mut Pieces,
        records: &mut Vec<Records>,
        most: usize,
        failed: &mut Option<PieceError>,
    ) -> usize {
        let mut count = 0;
        while count < most && failed.is_none() {
            if count == records.len() {
                records.push(Records::new(pieces.dialect(), EmptyLines::of(self.names.len())));
            }
            match records[count].refill(pieces) {
                Ok(true) => count += 1,
                Ok(false) => break,
                Err(error) => *failed = Some(error),
            }
        }
        count
    }

    /// Parses a piece as if it were the first: a guess for each column, and figures of its rows.
    fn look(&self, piece: &mut Records) -> Found {
        let mut guesses = self.guesses();
        let seen = self.observe(piece, 1, &self.inferred(), &mut guesses)?;
        Ok((seen, guesses))
    }

    /// Adds the values of some columns of a piece, which starts on this line, to the guesses;
    /// returns figures of its rows.
    fn observe(
        &self,
        piece: &mut Records,
        line: u64,
        columns: &[usize],
        guesses: &mut [Guess],
    ) -> Result<Seen, CsvError> {
        let mut seen = Seen::default();
        let mut scratch = Vec::new();
        piece.rewind(line);
        while piece.advance().map_err(|error| self.error(error))? {
            check_field_count(self.path, piece, self.names.len(), |index| self.name(index))?;
            seen.rows += 1;
            if piece.lines_within() > 0 {
                seen.several_lines.note(piece.line(), piece.lines_within());
            }
            for &index in columns {
                let value = piece.field(index);
                if is_null(value, &self.options.null_text) {
                    guesses[index].null_count += 1;
                    continue;
                }
                let meant = (self.options.date_form, self.options.decimal);
                guesses[index].observe(value, piece.line(), (meant, &mut scratch)).map_err(|fault| {
                    fault.at(self.path, piece.line(), self.names[index].name.clone(), value)
                })?;
            }
        }
        Ok(seen)
    }

    fn name(&self, index: usize) -> Option<String> {
        self.names.get(index).map(|name| name.name.clone())
    }

    fn error(&self, error: RecordError) -> CsvError {
        CsvError::from_record(self.path, error, |index| self.name(index))
    }
}

/// True if a field is a number or a date, and so hardly a name.
pub(super) fn is_value(field: &[u8]) -> bool {
    is_number(field) || is_date(field)
}

pub(super) fn is_number(field: &[u8]) -> bool {
    parse_number(field, &mut Vec::new()).is_ok()
}

pub(super) fn is_date(field: &[u8]) -> bool {
    Forms::of(field, None).is_ok()
}

/// Type that the values of a column so far allow.
#[derive(Default)]
struct Guess {
    null_count: u64,
    bytes_max: usize,
    kind: Kind,
}

#[derive(Default)]
enum Kind {
    #[default]
    Nothing,
    Numbers(Numbers),
    Dates(Dates),
    Text(TextReason),
}

/// The forms that all values may have, and the first value.
struct Dates {
    forms: Forms,
    spelling: DateSpelling,
    line: u64,
    value: String,
}

/// Most digits left and right of the point, and the spelling of all values.
struct Numbers {
    integer_digits: i16,
    fraction_digits: i16,
    spelling: Spelling,
}

/// Spellings of numbers that reproduce all values of a column.
#[derive(Clone, Copy)]
struct Spelling {
    /// No padding, as in `10`, `2.5`.
    shortest: bool,
    /// At least one digit after the point: `10.0`, `2.5`.
    float: bool,
    /// A fixed number of digits after the point: `10.00`, `2.50`.
    fixed: Option<usize>,
    /// True if a zero precedes the point of `0.5`; `None` until a value shows it.
    zero_before_point: Option<bool>,
}

/// Reason for which a value fits no column.
enum Fault {
    NotUtf8(std::str::Utf8Error),
    TooLong,
}

impl Fault {
    fn at(self, path: &Path, line: u64, column: String, value: &[u8]) -> CsvError {
        match self {
            Fault::NotUtf8(error) => CsvError::invalid_utf8(path, line, column, value, error),
            Fault::TooLong => CsvError::TextTooLong {
                path: path.to_owned(),
                line,
                column,
                found: excerpt(value),
                bytes: value.len(),
                expected: ColumnType::Text { max_bytes: TEXT_BYTES_MAX },
            },
        }
    }
}

impl Guess {
    /// Adds a value that is not NULL.
    #[inline]
    fn observe(
        &mut self,
        value: &[u8],
        line: u64,
        ((meant, decimal), scratch): ((Option<DateForm>, DecimalMark), &mut Vec<u8>),
    ) -> Result<(), Fault> {
        self.bytes_max = self.bytes_max.max(value.len());
        let pointed = decimal.pointed(trim_blanks(value));
        let trimmed = &*pointed;
        let cause = match &mut self.kind {
            Kind::Text(_) => return check_text(value),
            Kind::Numbers(numbers) => {
                match read_number(trimmed, scratch).and_then(|found| numbers.take(trimmed, &found)) {
                    Ok(()) => return Ok(()),
                    Err(cause) => cause,
                }
            }
            Kind::Dates(dates) => match read_date(trimmed, meant).and_then(|found| dates.take(found)) {
                Ok(()) => return Ok(()),
                Err(cause) => cause,
            },
            Kind::Nothing => match first_value(trimmed, line, (meant, scratch)) {
                Ok(kind) => {
                    self.kind = kind;
                    return Ok(());
                }
                Err(cause) => cause,
            },
        };
        check_text(value)?;
        self.kind = Kind::Text(TextReason { line, value: excerpt(value), cause });
        Ok(())
    }

    /// Merges the guess of the next piece. False, with nothing merged, if its values must
    /// be read again for that.
    fn merge(&mut self, next: &Guess) -> bool {
        let merged = match (&mut self.kind, &next.kind) {
            (_, Kind::Nothing) => true,
            (Kind::Dates(dates), Kind::Dates(found)) => dates.take((found.forms, found.spelling)).is_ok(),
            (Kind::Numbers(numbers), Kind::Numbers(found)) => numbers.take(b"", found).is_ok(),
            (Kind::Text(_), _) => next.bytes_max <= TEXT_BYTES_MAX as usize,
            _ => false,
        };
        if merged {
            self.null_count += next.null_count;
            self.bytes_max = self.bytes_max.max(next.bytes_max);
        }
        merged
    }

    fn basis(self) -> ColumnBasis {
        match self.kind {
            Kind::Nothing => ColumnBasis::NoValues,
            Kind::Dates(dates) => dates.basis(self.bytes_max as u32),
            Kind::Numbers(numbers) => numbers.basis(),
            Kind::Text(reason) => ColumnBasis::Text { bytes_max: self.bytes_max as u32, reason },
        }
    }
}

impl Dates {
    /// Adds a value; fails if no form is left.
    #[inline]
    fn take(&mut self, (found, spelling): (Forms, DateSpelling)) -> Result<(), TextCause> {
        match self.forms.and(found) {
            Some(forms) => {
                self.spelling = self.spelling.and(spelling).ok_or(TextCause::OtherSpelling)?;
                self.forms = forms;
                Ok(())
            }
            None if self.forms.differs_in_zone(found) => Err(TextCause::OtherZone),
            None => Err(TextCause::OtherForm),
        }
    }

    fn basis(self, bytes_max: u32) -> ColumnBasis {
        match self.forms.style() {
            Ok(style) => ColumnBasis::Dates { style, written: self.spelling.text(style.form) },
            Err(forms) => {
                let reason =
                    TextReason { line: self.line, value: self.value, cause: TextCause::DayOrMonth(forms) };
                ColumnBasis::Text { bytes_max, reason }
            }
        }
    }
}

impl Numbers {
    /// Adds a value; fails if no spelling reproduces all of them.
    #[inline]
    fn take(&mut self, value: &[u8], found: &Numbers) -> Result<(), TextCause> {
        self.spelling = self.spelling.and(found.spelling, value)?;
        self.integer_digits = self.integer_digits.max(found.integer_digits);
        self.fraction_digits = self.fraction_digits.max(found.fraction_digits);
        Ok(())
    }

    fn basis(&self) -> ColumnBasis {
        let written = self.spelling.form();
        ColumnBasis::Numbers {
            integer_digits: self.integer_digits.max(0).unsigned_abs(),
            fraction_digits: self.fraction_digits.max(0).unsigned_abs().max(u16::from(written.decimals)),
            written,
        }
    }
}

impl Spelling {
    /// Returns the spellings that reproduce this number.
    #[inline]
    fn of(number: &[u8]) -> Result<Spelling, TextCause> {
        let (sign, digits) = match number {
            [sign @ (b'-' | b'+'), digits @ ..] => (Some(sign), digits),
            digits => (None, digits),
        };
        if matches!(digits, [b'0', b'0'..=b'9', ..]) {
            return Err(TextCause::LeadingZeros);
        }
        if digits.iter().any(|byte| matches!(byte, b'e' | b'E')) {
            return Err(TextCause::Exponent);
        }
        let zero = || digits.iter().all(|byte| matches!(byte, b'0' | b'.'));
        if sign == Some(&b'+') || sign.is_some() && zero() {
            return Err(TextCause::Sign);
        }
        let point = digits.iter().position(|byte| *byte == b'.');
        let decimals = point.map_or(0, |point| digits.len() - 1 - point);
        if point.is_some() && decimals == 0 {
            return Err(TextCause::Point);
        }
        let closing_zero = decimals > 0 && digits.ends_with(b"0");
        let whole = point.map_or(digits, |point| &digits[..point]);
        Ok(Spelling {
            shortest: !closing_zero,
            float: decimals == 1 || decimals > 1 && !closing_zero,
            fixed: Some(decimals),
            zero_before_point: point.and(match whole {
                [] => Some(false),
                [b'0'] => Some(true),
                _ => None,
            }),
        })
    }

    /// Returns the first form that reproduces all values.
    fn form(self) -> NumberForm {
        let decimals = match self.fixed {
            _ if self.shortest => 0,
            Some(digits) => u8::try_from(digits).unwrap_or(u8::MAX),
            None => 1,
        };
        NumberForm { decimals, zero_before_point: self.zero_before_point != Some(false) }
    }

    /// Returns the common spellings; `value` has the second.
    #[inline]
    fn and(self, other: Spelling, value: &[u8]) -> Result<Spelling, TextCause> {
        let both = Spelling {
            shortest: self.shortest && other.shortest,
            float: self.float && other.float,
            fixed: self.fixed.filter(|_| self.fixed == other.fixed),
            zero_before_point: self.zero_before_point.or(other.zero_before_point),
        };
        if other.zero_before_point.is_some_and(|zero| both.zero_before_point != Some(zero)) {
            return Err(TextCause::Point);
        }
        match both.shortest || both.float || both.fixed.is_some() {
            true => Ok(both),
            false if !other.shortest && value.ends_with(b"0") => Err(TextCause::ClosingZeros),
            false => Err(TextCause::OtherDecimals),
        }
    }
}

/// Returns the kind of a column's first value.
fn first_value(
    value: &[u8],
    line: u64,
    (meant, scratch): (Option<DateForm>, &mut Vec<u8>),
) -> Result<Kind, TextCause> {
    let number = match read_number(value, scratch) {
        Ok(numbers) => return Ok(Kind::Numbers(numbers)),
        Err(cause) => cause,
    };
    match (read_date(value, meant), number) {
        (Ok((forms, spelling)), _) => Ok(Kind::Dates(Dates { forms, spelling, line, value: excerpt(value) })),
        (Err(TextCause::FractionalSeconds), _) => Err(TextCause::FractionalSeconds),
        (Err(_), TextCause::NotANumber) => Err(TextCause::NeitherNumberNorDate),
        (Err(_), cause) => Err(cause),
    }
}

/// Returns the digits left and right of the point, and the spelling.
#[inline]
fn read_number(value: &[u8], scratch: &mut Vec<u8>) -> Result<Numbers, TextCause> {
    scratch.clear();
    match parse_number(value, scratch) {
        Ok(shape) => Ok(Numbers {
            integer_digits: shape.integer_digits,
            fraction_digits: shape.fraction_digits,
            spelling: Spelling::of(value)?,
        }),
        Err(NumberError::TooManyDigits { .. } | NumberError::OutOfRange) => Err(TextCause::BeyondNumber),
        Err(_) => Err(TextCause::NotANumber),
    }
}

fn read_date(value: &[u8], meant: Option<DateForm>) -> Result<(Forms, DateSpelling), TextCause> {
    match Forms::of(value, meant) {
        Ok(forms) => DateSpelling::of(value).map(|spelling| (forms, spelling)).ok_or(TextCause::NotADate),
        Err(DateError::FractionalSeconds { .. }) => Err(TextCause::FractionalSeconds),
        Err(_) => Err(TextCause::NotADate),
    }
}

fn check_text(value: &[u8]) -> Result<(), Fault> {
    if value.len() > TEXT_BYTES_MAX as usize {
        return Err(Fault::TooLong);
    }
    check_utf8(value).map_err(Fault::NotUtf8)
}
