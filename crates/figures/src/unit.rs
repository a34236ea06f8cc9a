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
pub struct Scale {
    /// Number of base units (bytes, seconds, things) in it.
    pub factor: f64,
    /// The ambiguous letters, and their meaning here.
    pub choice: Option<(String, String)>,
}

/// A printed unit with each scale that its text may have.
#[derive(Debug, Clone, PartialEq)]
pub struct Unit {
    pub dimension: Dimension,
    /// More than one if the text is ambiguous.
    pub scales: Vec<Scale>,
    /// True for things counted one by one; a whole number of them is not rounded.
    pub is_counted: bool,
}

const TIMES: [(&str, f64); 15] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("\u{b5}s", 1e-6),
    ("usecs", 1e-6),
    ("ms", 1e-3),
    ("cs", 1e-2),
    ("s", 1.0),
    ("sec", 1.0),
    ("secs", 1.0),
    ("second", 1.0),
    ("seconds", 1.0),
    ("min", 60.0),
    ("minute", 60.0),
    ("h", 3600.0),
    ("m:ss", 1.0),
];
const COUNTED: [&str; 21] = [
    "rows",
    "blocks",
    "requests",
    "reads",
    "writes",
    "waits",
    "transactions",
    "commits",
    "operations",
    "statements",
    "sessions",
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

impl Unit {
    /// A number without a unit.
    pub fn none() -> Unit {
        Unit::plain(Dimension::default(), 1.0)
    }

    fn plain(dimension: Dimension, factor: f64) -> Unit {
        Unit { dimension, scales: vec![Scale { factor, choice: None }], is_counted: false }
    }

    /// Parses a unit: `MB/s`, `KiB`, `ms or us`, `rows`, `%`.
    pub fn parse(text: &str) -> Result<Unit, String> {
        let alternatives: Vec<&str> = text.split(" or ").map(str::trim).collect();
        let [one] = alternatives[..] else { return Unit::one_of(text, &alternatives) };
        let (numerator, denominator) = one.split_once('/').map_or((one, None), |(a, b)| (a, Some(b)));
        let unit = Unit::single(numerator.trim())?;
        let Some(denominator) = denominator else { return Ok(unit) };
        let per = Unit::single(denominator.trim())?;
        let divided = |scale: &Scale| Scale { factor: scale.factor / per.scales[0].factor, ..scale.clone() };
        Ok(Unit {
            dimension: unit.dimension.over(per.dimension),
            scales: unit.scales.iter().map(divided).collect(),
            is_counted: false,
        })
    }

    /// Returns a unit with each alternative of an ambiguous text.
    fn one_of(text: &str, alternatives: &[&str]) -> Result<Unit, String> {
        let units: Vec<Unit> = alternatives.iter().map(|one| Unit::parse(one)).collect::<Result<_, _>>()?;
        let dimension = units[0].dimension;
        if units.iter().any(|unit| unit.dimension != dimension) {
            return Err(format!("unit {text:?}: its alternatives are of different kinds"));
        }
        let scale = |(one, unit): (&&str, &Unit)| Scale {
            factor: unit.scales[0].factor,
            choice: Some((text.to_string(), format!("the unit is {one}"))),
        };
        let scales = alternatives.iter().zip(&units).map(scale).collect();
        Ok(Unit { dimension, scales, is_counted: false })
    }

    fn single(name: &str) -> Result<Unit, String> {
        let seconds = Dimension { bytes: 0, seconds: 1 };
        if let Some(factor) = seconds_in(name) {
            return Ok(Unit::plain(seconds, factor));
        }
        match name {
            "" | "x" | "times" => return Ok(Unit::none()),
            "%" | "percent" => return Ok(Unit::plain(Dimension::default(), 0.01)),
            "IOPS" | "TPS" => return Ok(Unit::plain(Dimension { bytes: 0, seconds: -1 }, 1.0)),
            _ if COUNTED.contains(&name) => return Ok(Unit { is_counted: true, ..Unit::none() }),
            _ => {}
        }
        Unit::bytes(name).ok_or_else(|| {
            let known =
                TIMES.iter().map(|(known, _)| *known).chain(COUNTED).chain(["bytes", "MB", "KiB", "%"]);
            let near = nearest(name, known).map_or(String::new(), |near| format!("; did you mean {near}?"));
            format!("unit {name:?} is not known{near}")
        })
    }

    /// Parses a unit of bytes: `KiB` is binary, and `KB` or `K` can be either.
    fn bytes(name: &str) -> Option<Unit> {
        let bytes = Dimension { bytes: 1, seconds: 0 };
        if matches!(name, "B" | "byte" | "bytes") {
            return Some(Unit::plain(bytes, 1.0));
        }
        let power = power_of(name.chars().next()?)?;
        match &name[1..] {
            "iB" => Some(Unit::plain(bytes, 1024f64.powi(power))),
            "" | "B" => {
                let scale = |(base, shown): (f64, String)| Scale {
                    factor: base.powi(power),
                    choice: Some((name.to_string(), format!("{name} = {shown}"))),
                };
                let both = [(1000.0, format!("10^{}", 3 * power)), (1024.0, format!("2^{}", 10 * power))];
                Some(Unit { dimension: bytes, scales: both.map(scale).to_vec(), is_counted: false })
            }
            _ => None,
        }
    }
}

/// Returns the power of a thousand of a letter.
pub fn power_of(letter: char) -> Option<i32> {
    let place = PREFIXES.iter().position(|prefix| *prefix == letter.to_ascii_uppercase())?;
    i32::try_from(place + 1).ok()
}

/// Returns the seconds of a unit of time.
#[must_use]
pub fn seconds_in(name: &str) -> Option<f64> {
    TIMES.iter().find(|(known, _)| *known == name).map(|(_, seconds)| *seconds)
}
