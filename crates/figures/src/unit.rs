//! Parses printed units into every size that an ambiguous one can mean.

use plumb_units::nearest;

/// Powers of bytes and of seconds in a quantity; counts, shares and ratios have neither.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dimension {
    pub bytes: i8,
    pub seconds: i8,
}

impl Dimension {
    pub fn times(self, other: Dimension) -> Dimension {
        Dimension { bytes: self.bytes + other.bytes, seconds: self.seconds + other.seconds }
    }

    pub fn over(self, other: Dimension) -> Dimension {
        Dimension { bytes: self.bytes - other.bytes, seconds: self.seconds - other.seconds }
    }

    /// Returns the words for an error: `bytes/s`, `s`, `a number`.
    pub fn shown(self) -> String {
        match (self.bytes, self.seconds) {
            (0, 0) => "a number".to_string(),
            (0, 1) => "a time".to_string(),
            (0, -1) => "a rate".to_string(),
            (1, 0) => "bytes".to_string(),
            (1, -1) => "bytes a second".to_string(),
            (bytes, seconds) => format!("bytes^{bytes} s^{seconds}"),
        }
    }
}

/// One meaning of a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitScale {
    /// Number of base units (bytes, seconds, things) in it.
    pub factor: f64,
    /// The ambiguous letters, and their meaning here.
    pub choice: Option<(String, String)>,
}

/// A printed unit with each scale that its text may have.
#[derive(Debug, Clone, PartialEq)]
pub struct PrintedUnit {
    pub dimension: Dimension,
    /// More than one if the text is ambiguous.
    pub scales: Vec<UnitScale>,
    /// True for things counted one by one; a whole number of them is not rounded.
    pub is_counted: bool,
}

const NONE: Dimension = Dimension { bytes: 0, seconds: 0 };
const TIME: Dimension = Dimension { bytes: 0, seconds: 1 };
const RATE: Dimension = Dimension { bytes: 0, seconds: -1 };
const BYTES: Dimension = Dimension { bytes: 1, seconds: 0 };

/// Names of units without letters of a multiple: quantity, base units in one, spellings.
pub const NAMED: [(Dimension, f64, &[&str]); 15] = [
    (TIME, 1e-9, &["ns", "nsec", "nanoseconds"]),
    (TIME, 1e-6, &["us", "\u{b5}s", "\u{3bc}s", "usec", "microseconds"]),
    (TIME, 1e-3, &["ms", "msec", "milliseconds"]),
    (TIME, 1e-2, &["cs", "centiseconds"]),
    (TIME, 1.0, &["s", "sec", "seconds", "m:ss"]),
    (TIME, 60.0, &["min", "minutes"]),
    (TIME, 3600.0, &["h", "hr", "hours"]),
    (TIME, 86_400.0, &["days"]),
    (RATE, 1.0, &["IOPS", "TPS", "QPS", "RPS"]),
    (RATE, 1.0 / 60.0, &["NOPM", "TPM", "tpmC"]),
    (NONE, 0.01, &["%", "percent", "per cent"]),
    (NONE, 1.0, &["x", "times", "fold", "1"]),
    (BYTES, 1.0, &["B", "bytes"]),
    (BYTES, 0.125, &["bit", "bits"]),
    (Dimension { bytes: 1, seconds: -1 }, 0.125, &["bps"]),
];
/// Things that are counted one by one.
pub const COUNTED: [&str; 31] = [
    "rows",
    "records",
    "tuples",
    "blocks",
    "pages",
    "requests",
    "reads",
    "writes",
    "IOs",
    "waits",
    "transactions",
    "txns",
    "commits",
    "operations",
    "ops",
    "statements",
    "queries",
    "orders",
    "sessions",
    "clients",
    "users",
    "disks",
    "devices",
    "ports",
    "lanes",
    "instances",
    "threads",
    "runs",
    "keys",
    "nodes",
    "dollars",
];
const PREFIXES: [char; 5] = ['K', 'M', 'G', 'T', 'P'];
/// Multiples that stand between a number and its unit.
const MULTIPLES: [(&str, char); 7] = [
    ("thousand", 'K'),
    ("million", 'M'),
    ("Mio", 'M'),
    ("mio", 'M'),
    ("billion", 'G'),
    ("bn", 'G'),
    ("trillion", 'T'),
];

/// Returns the multiple of a text such as `k`, `M` or `million`.
pub(crate) fn multiple(text: &str) -> Option<char> {
    let letter = || text.chars().next().filter(|letter| text.len() == 1 && power_of(*letter).is_some());
    MULTIPLES.iter().find(|(word, _)| *word == text).map(|(_, letter)| *letter).or_else(letter)
}

/// Returns the units by kind, for the error of an unknown one.
fn known() -> String {
    let of = |dimension: Dimension| -> String {
        let own = NAMED.iter().filter(|(own, ..)| *own == dimension);
        own.flat_map(|(.., names)| *names).copied().collect::<Vec<_>>().join(", ")
    };
    format!(
        "known are times ({}), rates ({}), bytes (B, KB, KiB, Kbit, KB/s, Kbps, up to P), things ({}), {}, and one \
         over another (rows/s)",
        of(TIME),
        of(RATE),
        COUNTED.join(", "),
        of(NONE)
    )
}

impl PrintedUnit {
    /// A number without a unit.
    pub fn none() -> PrintedUnit {
        PrintedUnit::plain(Dimension::default(), 1.0)
    }

    fn plain(dimension: Dimension, factor: f64) -> PrintedUnit {
        PrintedUnit { dimension, scales: vec![UnitScale { factor, choice: None }], is_counted: false }
    }

    /// Parses a unit: `MB/s`, `KiB`, `ms or us`, `rows`, `%`.
    pub fn parse(text: &str) -> Result<PrintedUnit, String> {
        let alternatives: Vec<&str> = text.split(" or ").map(str::trim).collect();
        let [one] = alternatives[..] else { return PrintedUnit::one_of(text, &alternatives) };
        let over = one.split_once('/').or_else(|| one.split_once(" per "));
        let (numerator, denominator) = over.map_or((one, None), |(a, b)| (a, Some(b)));
        let unit = PrintedUnit::single(numerator.trim())?;
        let Some(denominator) = denominator else { return Ok(unit) };
        let per = PrintedUnit::single(denominator.trim())?;
        let divided =
            |scale: &UnitScale| UnitScale { factor: scale.factor / per.scales[0].factor, ..scale.clone() };
        Ok(PrintedUnit {
            dimension: unit.dimension.over(per.dimension),
            scales: unit.scales.iter().map(divided).collect(),
            is_counted: false,
        })
    }

    /// Returns a unit with each alternative of an ambiguous text.
    fn one_of(text: &str, alternatives: &[&str]) -> Result<PrintedUnit, String> {
        let units: Vec<PrintedUnit> =
            alternatives.iter().map(|one| PrintedUnit::parse(one)).collect::<Result<_, _>>()?;
        let dimension = units[0].dimension;
        if units.iter().any(|unit| unit.dimension != dimension) {
            return Err(format!("unit {text:?}: its alternatives are of different kinds"));
        }
        let scale = |(one, unit): (&&str, &PrintedUnit)| UnitScale {
            factor: unit.scales[0].factor,
            choice: Some((text.to_string(), format!("the unit is {one}"))),
        };
        let scales = alternatives.iter().zip(&units).map(scale).collect();
        Ok(PrintedUnit { dimension, scales, is_counted: false })
    }

    fn single(name: &str) -> Result<PrintedUnit, String> {
        let own = |(.., names): &&(Dimension, f64, &[&str])| names.iter().any(|own| is_spelled(own, name));
        if let Some((dimension, factor, _)) = NAMED.iter().find(own) {
            return Ok(PrintedUnit::plain(*dimension, *factor));
        }
        if name.is_empty() {
            return Ok(PrintedUnit::none());
        }
        if COUNTED.iter().any(|own| is_spelled(own, name)) || name == "query" || name == "reqs" {
            return Ok(PrintedUnit { is_counted: true, ..PrintedUnit::none() });
        }
        PrintedUnit::bytes(name).ok_or_else(|| {
            let names = NAMED.iter().flat_map(|(.., names)| *names).copied();
            let near = nearest(name, names.chain(COUNTED).chain(["MB", "KiB"]));
            let near = near.map_or_else(known, |near| format!("did you mean {near}?"));
            format!("unit {name:?} is not known; {near}")
        })
    }

    /// Parses a unit of bytes or bits with a multiple: `KiB` is binary, and `KB` or `K` can be
    /// either. `Gbps` are bits; `Gb` can be bits or, misspelled, bytes.
    fn bytes(name: &str) -> Option<PrintedUnit> {
        let letter = name.chars().next()?;
        let power = power_of(letter)?;
        let rest = &name[1..];
        let (rest, dimension) = match rest.strip_suffix("ps") {
            Some(rest) => (rest, Dimension { bytes: 1, seconds: -1 }),
            None => (rest, BYTES),
        };
        let decimal = (1000f64.powi(power), format!("10^{}", 3 * power));
        let binary = (1024f64.powi(power), format!("2^{}", 10 * power));
        let bits = (decimal.0 / 8.0, format!("10^{} bits", 3 * power));
        let meanings = match rest {
            "iB" => return Some(PrintedUnit::plain(dimension, binary.0)),
            "ibit" => return Some(PrintedUnit::plain(dimension, binary.0 / 8.0)),
            "bit" | "bits" => return Some(PrintedUnit::plain(dimension, bits.0)),
            "b" if dimension != BYTES => return Some(PrintedUnit::plain(dimension, bits.0)),
            "b" => vec![bits, decimal, binary],
            "" | "B" => vec![decimal, binary],
            _ => return None,
        };
        let scale = |(factor, shown): (f64, String)| UnitScale {
            factor,
            choice: Some((name.to_string(), format!("{name} = {shown}"))),
        };
        let scales = meanings.into_iter().map(scale).collect();
        Some(PrintedUnit { dimension, scales, is_counted: false })
    }
}

/// True if a word is a name of a unit, in the singular or the plural. Upper and lower case do not
/// count beyond one letter, of which `b` and `B` are two units.
fn is_spelled(own: &str, word: &str) -> bool {
    let same = |word: &str| own == word || own.len() > 1 && own.eq_ignore_ascii_case(word);
    same(word)
        || own.len() > 2 && own.strip_suffix(['s', 'S']).is_some_and(|one| one.eq_ignore_ascii_case(word))
        || word.strip_suffix('s').is_some_and(|one| one.len() > 1 && same(one))
}

/// Returns the power of a thousand of a letter.
pub fn power_of(letter: char) -> Option<i32> {
    let place = PREFIXES.iter().position(|prefix| *prefix == letter.to_ascii_uppercase())?;
    i32::try_from(place + 1).ok()
}

/// Returns the seconds of a unit of time.
#[must_use]
pub fn seconds_in(name: &str) -> Option<f64> {
    let own = |(of, _, names): &&(Dimension, f64, &[&str])| {
        *of == TIME && names.iter().any(|own| is_spelled(own, name))
    };
    NAMED.iter().find(own).map(|(_, seconds, _)| *seconds)
}
