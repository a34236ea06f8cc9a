//! Replaces numbers in a file by others, mostly by ends of ranges.

use plumb_proof::random::Generator;
use serde_json::Value;

/// Ends of ranges, types and signs.
const ENDS: [u64; 22] = [
    0,
    1,
    2,
    3,
    7,
    8,
    23,
    24,
    127,
    128,
    254,
    255,
    256,
    1 << 15,
    (1 << 16) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 32,
    1 << 62,
    (1 << 62) + 1,
    1 << 63,
    u64::MAX,
];

fn pick<T: Copy>(random: &mut Generator, from: &[T]) -> T {
    from[random.below(from.len())]
}

/// Returns a number to replace `old`.
fn number(random: &mut Generator, old: u64) -> u64 {
    match random.below(8) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => old.wrapping_mul(2),
        3 => old ^ 1 << random.below(64),
        4 => random.bits(),
        _ => pick(random, &ENDS),
    }
}

/// Changes a number of 1 to 8 bytes at a place within `range`.
pub(super) fn bytes(random: &mut Generator, bytes: &mut [u8], range: std::ops::Range<usize>) {
    let range = range.start.min(bytes.len())..range.end.min(bytes.len());
    if range.is_empty() {
        return;
    }
    let at = range.start + random.below(range.len());
    let width = pick(random, &[1, 2, 2, 4, 4, 8]).min(range.end - at);
    let old = bytes[at..at + width].iter().rev().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
    let new = number(random, old).to_le_bytes();
    bytes[at..at + width].copy_from_slice(&new[..width]);
}

/// Changes one value somewhere in a document.
pub(super) fn json(random: &mut Generator, document: &mut Value) {
    let mut count = 0;
    each(document, &mut |_| count += 1);
    let (chosen, mut at) = (random.below(count), 0);
    // A value may also be replaced by another value of the document.
    let (other, mut elsewhere, mut place) = (random.below(count), Value::Null, 0);
    each(document, &mut |value| {
        if place == other {
            elsewhere = value.clone();
        }
        place += 1;
    });
    each(document, &mut |value| {
        if at == chosen {
            let moved = if random.below(12) == 0 { Some(std::mem::take(&mut elsewhere)) } else { None };
            *value = moved.unwrap_or_else(|| instead_of(random, value));
        }
        at += 1;
    });
}

/// Visits every value of a document, containers first.
fn each(value: &mut Value, show: &mut impl FnMut(&mut Value)) {
    show(value);
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| each(value, show)),
        Value::Object(fields) => fields.iter_mut().for_each(|(_, value)| each(value, show)),
        _ => {}
    }
}

fn instead_of(random: &mut Generator, value: &Value) -> Value {
    match value {
        Value::Null => Value::from(0),
        Value::Bool(is) => Value::from(!is),
        Value::Number(old) if old.is_f64() => {
            Value::from(pick(random, &[0.0, -0.0, -1.0, 1e-300, 1e300, f64::MAX, f64::MIN_POSITIVE]))
        }
        Value::Number(old) => {
            let new = number(random, old.as_u64().unwrap_or(old.as_i64().unwrap_or(0).cast_unsigned()));
            if random.below(8) == 0 { Value::from(new.cast_signed()) } else { Value::from(new) }
        }
        Value::String(old) => Value::from(match random.below(8) {
            0 => String::new(),
            1 => "N".repeat(70_000),
            2 => format!("../{old}"),
            3 => format!("/{old}"),
            4 => format!("{old}\u{202E}\u{1B}[2J\0\n"),
            5 => old.to_lowercase(),
            6 => old.chars().skip(1).collect(),
            _ => number(random, 7).to_string(),
        }),
        Value::Array(values) => {
            let mut values = values.clone();
            match random.below(5) {
                0 => values.clear(),
                1 => drop(values.pop()),
                2 => values.extend(values.clone()),
                3 => values.reverse(),
                _ => values = values.iter().cycle().take(values.len() * 300).cloned().collect(),
            }
            Value::Array(values)
        }
        Value::Object(fields) => {
            let mut fields = fields.clone();
            let chosen = random.below(fields.len().max(1));
            if let Some(name) = fields.keys().nth(chosen).cloned() {
                fields.remove(&name);
            }
            Value::Object(fields)
        }
    }
}
