//! Indexes against the plain model: a Vec sorted by values, then by row id.
//!
//! The model uses no encoded bytes: numbers are compared as integers of a common scale, dates field
//! by field, texts as texts.

use crate::support::{
    Rows, SMALLEST, assert_green, assert_no_space_leaks, build_on, images, index_rows, load, scan_rows,
};
use plumb_engine::{EngineError, Instance, Layout, Setting, Settings};
use plumb_events::Cancel;
use plumb_io::IoError;
use plumb_types::{Column, ColumnType, DateTime, Number, Schema, Value, decode_number};
use plumb_units::{Bytes, RowId, SplitMix};
use proptest::prelude::*;
use proptest::test_runner::Config;
use std::cmp::Ordering;
use std::path::PathBuf;

/// Order of the rows in the load.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Arrival {
    Random,
    Sorted,
    Reversed,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A NUMBER below a bound on either side of zero, with `scale` decimals.
    Number { bound: u64, scale: i8 },
    /// A DATE, one of `distinct` dates.
    Date { distinct: u64 },
    /// A text of up to `letters` letters after a shared prefix of `shared` letters.
    Text { shared: usize, letters: u64 },
}

/// A table, an index on it, and the settings to make them with.
#[derive(Debug, Clone)]
struct Spec {
    seed: u64,
    rows: usize,
    columns: Vec<Kind>,
    /// Percentage of values that are NULL.
    nulls: u64,
    /// True if one key is in half of the rows.
    half: bool,
    arrival: Arrival,
    /// Columns of the key, each with `true` if it is descending.
    key: Vec<(usize, bool)>,
    settings: Vec<(&'static str, String)>,
    on_disk: bool,
}

const LETTERS: [char; 9] = ['\0', '\u{1}', '\u{2}', 'a', 'b', '~', 'é', '€', '😀'];

impl Spec {
    /// Draws a spec from a seed; only the number of rows is given.
    fn of_seed(seed: u64, rows: usize) -> Spec {
        let mut random = SplitMix(seed);
        let kind = |random: &mut SplitMix| match random.below(3) {
            0 => Kind::Number {
                bound: random.pick(&[3, 100, 50_000, 1 << 50]),
                scale: random.pick(&[0, 0, 2, 5]),
            },
            1 => Kind::Date { distinct: random.pick(&[2, 31, 1 << 30]) },
            _ => Kind::Text { shared: random.pick(&[0, 0, 7, 40]), letters: random.pick(&[1, 3, 10]) },
        };
        let columns: Vec<Kind> = (0..1 + random.below(5)).map(|_| kind(&mut random)).collect();
        let mut positions: Vec<usize> = (0..columns.len()).collect();
        let key_columns = 1 + random.below(columns.len() as u64);
        let key = (0..key_columns)
            .map(|_| {
                let at = random.below(positions.len() as u64) as usize;
                (positions.swap_remove(at), random.below(2) == 0)
            })
            .collect();
        let nulls = random.pick(&[0, 10, 50]);
        let half = random.below(4) == 0;
        let arrival = random.pick(&[Arrival::Random, Arrival::Random, Arrival::Sorted, Arrival::Reversed]);
        let settings = random_settings(&mut random);
        Spec { seed, rows, columns, nulls, half, arrival, key, settings, on_disk: false }
    }

    fn with(mut self, changes: &[(&'static str, &str)]) -> Spec {
        for (name, value) in changes {
            self.settings.retain(|(known, _)| known != name);
            self.settings.push((name, value.to_string()));
        }
        self
    }

    fn schema(&self) -> Schema {
        let column = |(at, kind): (usize, &Kind)| {
            let column_type = match kind {
                Kind::Number { .. } => ColumnType::NUMBER,
                Kind::Date { .. } => ColumnType::Date,
                Kind::Text { .. } => ColumnType::Text { max_bytes: 200 },
            };
            Column::nullable(format!("C{at}"), column_type)
        };
        Schema::new(self.columns.iter().enumerate().map(column).collect()).expect("columns with names")
    }

    fn rows(&self) -> Vec<Vec<Value>> {
        let mut random = SplitMix(self.seed ^ 0xDA7A);
        let row =
            |random: &mut SplitMix| self.columns.iter().map(|kind| value(random, kind, self.nulls)).collect();
        let mut rows: Vec<Vec<Value>> = (0..self.rows).map(|_| row(&mut random)).collect();
        if self.half
            && let Some(one) = rows.first().cloned()
        {
            for row in rows.iter_mut().step_by(2) {
                for (position, _) in &self.key {
                    row[*position] = one[*position].clone();
                }
            }
        }
        if self.arrival != Arrival::Random {
            rows.sort_by_cached_key(|row| key_of(row, &self.key));
        }
        if self.arrival == Arrival::Reversed {
            rows.reverse();
        }
        rows
    }
}

fn random_settings(random: &mut SplitMix) -> Vec<(&'static str, String)> {
    let block_kilobytes = random.pick(&[2, 4, 8, 8, 16, 32]);
    // A sort area holds at least four blocks.
    let area_kilobytes = random.pick(&[64, 64, 100, 256, 1024, 16 * 1024]).max(4 * block_kilobytes);
    vec![
        ("db_block_size", format!("{block_kilobytes}K")),
        ("extent_size", random.pick(&["256K", "1M"]).to_string()),
        ("data_files", random.pick(&["1", "2", "3"]).to_string()),
        ("db_cache_size", random.pick(&["1M", "4M"]).to_string()),
        ("sort_area_size", format!("{area_kilobytes}K")),
        ("sort_direct_writes", random.pick(&["auto", "true", "false"]).to_string()),
        ("sort_write_buffers", random.pick(&["2", "4"]).to_string()),
        ("sort_write_buffer_size", random.pick(&["32K", "256K"]).to_string()),
        ("sort_read_fac", random.pick(&["1", "5", "50", "1000"]).to_string()),
        ("db_file_multiblock_read_count", random.pick(&["1", "5", "64"]).to_string()),
        ("scan_read_ahead", random.pick(&["1", "4"]).to_string()),
        ("serial_direct_read", random.pick(&["true", "false"]).to_string()),
        ("parallel_degree", random.pick(&["1", "2", "3", "5"]).to_string()),
    ]
}

fn value(random: &mut SplitMix, kind: &Kind, nulls: u64) -> Value {
    if random.below(100) < nulls {
        return Value::Null;
    }
    match *kind {
        Kind::Number { bound, scale } => {
            let unscaled = i128::from(random.below(2 * bound + 1)) - i128::from(bound);
            Value::Number(Number::new(unscaled, scale).expect("at most 17 digits"))
        }
        Kind::Date { distinct } => {
            let mut which = random.below(distinct);
            let mut part = |count: u64| {
                let part = which % count;
                which /= count;
                part
            };
            let (day, hour, year) = (part(28) as u8 + 1, part(24) as u8, part(150) as u16 + 1900);
            let (second, minute, month) = (part(60) as u8, part(60) as u8, part(12) as u8 + 1);
            Value::Date(
                DateTime::new(year, month, day, hour, minute, second).expect("a date of the calendar"),
            )
        }
        Kind::Text { shared, letters } => {
            let mut text =
                "https://www.example.com/a/path/that/all/begin/with".chars().take(shared).collect::<String>();
            text.extend((0..1 + random.below(letters)).map(|_| random.pick(&LETTERS)));
            Value::Text(text)
        }
    }
}

/// A value as the model compares it, without encoded bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Plain {
    Number(i128),
    Date([u16; 6]),
    Text(String),
}

/// A column of a key: NULL after all others in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KeyPart {
    value: Option<Plain>,
    descending: bool,
}

impl Ord for KeyPart {
    fn cmp(&self, other: &KeyPart) -> Ordering {
        match (&self.value, &other.value) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(one), Some(two)) if self.descending => two.cmp(one),
            (Some(one), Some(two)) => one.cmp(two),
        }
    }
}

impl PartialOrd for KeyPart {
    fn partial_cmp(&self, other: &KeyPart) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn key_of(row: &[Value], key: &[(usize, bool)]) -> Vec<KeyPart> {
    key.iter().map(|(at, descending)| KeyPart { value: plain(&row[*at]), descending: *descending }).collect()
}

fn plain(value: &Value) -> Option<Plain> {
    match value {
        Value::Null => None,
        Value::Number(number) => {
            let (unscaled, scale) = decode_number(number.as_bytes()).expect("a number that was loaded");
            let shift = u32::try_from(6 - scale).expect("at most 5 decimals");
            Some(Plain::Number(unscaled * 10i128.pow(shift)))
        }
        Value::Date(date) => {
            let (hour, minute, second) = (date.hour(), date.minute(), date.second());
            let small = [date.month(), date.day(), hour, minute, second].map(u16::from);
            Some(Plain::Date([date.year(), small[0], small[1], small[2], small[3], small[4]]))
        }
        Value::Text(text) => Some(Plain::Text(text.clone())),
    }
}

/// Prints the case when an assertion fails.
struct Case<'a>(&'a Spec);

impl Drop for Case<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the case that failed: {:?}", self.0);
        }
    }
}

/// Loads, builds, and compares the index with the model.
fn check(spec: &Spec) {
    let _case = Case(spec);
    let directory = tempfile::tempdir().expect("a directory");
    let mut settings = Settings::default();
    for (name, value) in &spec.settings {
        settings.set(name, value, "test").expect("a setting in its range");
    }
    // Enlarges the extent for large blocks, because a read must fit an extent.
    let read = settings.number(Setting::DbFileMultiblockReadCount) * settings.number(Setting::DbBlockSize);
    if read > settings.number(Setting::ExtentSize) {
        let extent = Bytes(read.next_power_of_two()).as_setting();
        settings.set("extent_size", &extent, "test").expect("a setting in its range");
    }
    let home = if spec.on_disk { directory.path().join("db") } else { PathBuf::from("/in/memory") };
    if !spec.on_disk {
        settings.set("io_method", "null", "test").expect("there is a null device");
    }
    let created = Instance::create(&Layout::in_one(home), settings, SMALLEST, Cancel::default());
    let instance = match created {
        Err(EngineError::Io(
            error @ (IoError::DirectUnsupported { .. } | IoError::MethodUnsupported { .. }),
        )) => {
            assert!(spec.on_disk, "{error}");
            eprintln!("passed over: {error}");
            return;
        }
        created => created.expect("a database"),
    };
    let rows = spec.rows();
    let source = Rows::of_values(spec.schema(), &rows);
    let outcome = load(&instance, "t", &source).expect("loaded");
    assert_eq!(outcome.row_count, rows.len() as u64);
    let columns: Vec<(String, bool)> =
        spec.key.iter().map(|(at, descending)| (format!("c{at}"), *descending)).collect();
    let columns: Vec<(&str, bool)> =
        columns.iter().map(|(name, descending)| (name.as_str(), *descending)).collect();
    build_on(&instance, ("i", "t"), &columns).expect("built");

    let found = scan_rows(&instance, "t");
    assert_same_rows(&rows, &found);
    let mut model: Vec<(Vec<KeyPart>, RowId)> =
        found.iter().map(|(row_id, row)| (key_of(row, &spec.key), *row_id)).collect();
    model.sort();
    let index = index_rows(&instance, "i");
    assert_eq!(index.len(), model.len(), "entries of the index");
    if let Some(at) = index.iter().zip(&model).position(|(row_id, (_, expected))| row_id != expected) {
        panic!("entry {at} is of the row at {}, expected {:?}", index[at], model[at]);
    }
    assert_green(&instance, "t");
    assert_no_space_leaks(&instance);
    instance.destroy().expect("removed");
}

/// Asserts that the table has the rows that were loaded, in any order.
fn assert_same_rows(loaded: &[Vec<Value>], found: &[(RowId, Vec<Value>)]) {
    let found: Vec<Vec<Value>> = found.iter().map(|(_, row)| row.clone()).collect();
    let (loaded, found) = (images(loaded), images(&found));
    let (mut loaded, mut found): (Vec<&[u8]>, Vec<&[u8]>) = (loaded.iter().collect(), found.iter().collect());
    loaded.sort_unstable();
    found.sort_unstable();
    assert!(loaded == found, "the table has not the rows that were loaded");
}

#[test]
fn an_index_of_few_rows_is_in_order() {
    for (seed, rows) in [0, 1, 2, 3, 17, 100].into_iter().cycle().take(36).enumerate() {
        check(&Spec::of_seed(100 + seed as u64, rows));
    }
}

#[test]
fn an_index_of_some_thousand_rows_is_in_order() {
    for seed in 0..30 {
        check(&Spec::of_seed(200 + seed, 500 + 173 * seed as usize));
    }
}

#[test]
fn an_index_of_fifty_thousand_rows_is_in_order() {
    for seed in 0..6 {
        check(&Spec::of_seed(300 + seed, 50_000));
    }
}

#[test]
fn fifty_thousand_rows_sort_from_any_arrival() {
    for (seed, arrival) in [Arrival::Random, Arrival::Sorted, Arrival::Reversed].into_iter().enumerate() {
        for degree in ["1", "3"] {
            let spec = Spec::of_seed(400 + seed as u64, 50_000);
            let spec =
                spec.with(&[("parallel_degree", degree), ("db_block_size", "4K"), ("sort_area_size", "64K")]);
            check(&Spec { arrival, half: true, ..spec });
        }
    }
}

#[test]
fn an_index_of_three_hundred_thousand_rows_is_in_order() {
    let columns = vec![Kind::Number { bound: 5000, scale: 0 }, Kind::Text { shared: 7, letters: 5 }];
    let key = vec![(1, true), (0, false)];
    let spec = Spec { columns, key, nulls: 10, ..Spec::of_seed(500, 300_000) };
    check(&spec.with(&[("sort_area_size", "256K"), ("parallel_degree", "2"), ("db_block_size", "8K")]));
}

#[test]
fn every_write_path_and_block_size_gives_the_same_order() {
    for (seed, mode) in ["auto", "true", "false"].into_iter().enumerate() {
        for (block, area) in [("2K", "64K"), ("4K", "64K"), ("8K", "64K"), ("16K", "64K"), ("32K", "128K")] {
            let spec = Spec::of_seed(600 + seed as u64, 4000);
            check(&spec.with(&[
                ("sort_direct_writes", mode),
                ("db_block_size", block),
                ("sort_area_size", area),
            ]));
        }
    }
}

/// Keys of one machine word are sorted in another form than longer ones.
#[test]
fn keys_around_the_size_of_a_word_are_in_order() {
    for (seed, bound) in [100, 1 << 20, 1 << 30, 1 << 40].into_iter().enumerate() {
        for descending in [false, true] {
            let columns = vec![Kind::Number { bound, scale: 0 }, Kind::Number { bound: 40, scale: 0 }];
            let spec = Spec { columns, ..Spec::of_seed(700 + seed as u64, 5000) };
            check(&Spec { key: vec![(1, descending), (0, !descending)], ..spec.clone() });
            check(&Spec { key: vec![(0, descending)], ..spec });
        }
    }
}

#[test]
fn real_files_by_every_io_method_give_the_same_order() {
    let ways = [
        ("sync", "none"),
        ("sync", "directio"),
        ("threads", "asynch"),
        ("threads", "setall"),
        ("io_uring", "asynch"),
        ("io_uring", "setall"),
    ];
    for (seed, (method, options)) in ways.into_iter().enumerate() {
        for mode in ["true", "false"] {
            let spec = Spec { on_disk: true, ..Spec::of_seed(800 + seed as u64, 8000) };
            check(&spec.with(&[
                ("io_method", method),
                ("filesystemio_options", options),
                ("sort_direct_writes", mode),
                ("sort_area_size", "128K"),
            ]));
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 24, failure_persistence: None, ..Config::default() })]

    #[test]
    fn any_seed_gives_an_index_in_order(seed in any::<u64>(), rows in 0usize..1500) {
        check(&Spec::of_seed(seed, rows));
    }
}
