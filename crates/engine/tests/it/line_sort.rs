//! Files of lines, and of records of any length, sorted: against a plain sorted Vec whose comparison is written from
//! the manual of sort(1), in little memory and in much, and with files that fail.
//!
//! Must survive: what `faults` says, and a process that is asked to stop. Survive means here: no file of the output's name
//! or of its unfinished one, and no extent of the temporary tablespace that is still taken.

use crate::support::{assert_no_space_leaks, content, create_in, in_memory, memory_disk, within};
use plumb_engine::file_sort::create::create;
use plumb_engine::line_sort::judge::judge;
use plumb_engine::line_sort::{
    Compared, LineSortOutcome, LineSortSpec, Part, Shape, SortKey, SortOrder, Ties, sort_lines,
};
use plumb_engine::{EngineError, Instance};
use plumb_io::sim::Faults;
use plumb_types::RecordSource;
use plumb_units::SplitMix;
use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

const WHOLE: SortOrder = SortOrder { keys: Vec::new(), ties: Ties::Bytes };

fn spec(shape: Shape, order: SortOrder) -> LineSortSpec {
    let home = Path::new("/in/memory");
    LineSortSpec { input: home.join("in.txt"), output: home.join("out.txt"), shape, order }
}

fn by_field(first: usize, compared: Compared, ties: Ties) -> SortOrder {
    let part = Part::Fields { first, last: Some(first), delimiter: Some(b',') };
    SortOrder { keys: vec![SortKey { part, compared }], ties }
}

/// Lines of three fields: text, a number, and something that may be long.
fn lines(count: u64, seed: u64) -> Vec<u8> {
    let mut random = SplitMix(seed);
    let mut text = Vec::new();
    for _ in 0..count {
        let word =
            random.pick(&["alpha", "beta", "", "a longer word than the others", "al", "\u{e9}t\u{e9}"]);
        let number = random.below(2000) as i64 - 1000;
        let fraction = random.pick(&["", ".5", ".50", ".05"]);
        let tail = "x".repeat(random.pick(&[0, 1, 10, 100]));
        let line = format!("{word}{},{number}{fraction},{tail}\n", random.below(50));
        text.extend_from_slice(line.as_bytes());
    }
    text
}

/// Bytes as records of one byte.
struct Text<'a>(&'a [u8]);

impl RecordSource for Text<'_> {
    fn record_bytes(&self) -> usize {
        1
    }

    fn record_count(&self) -> u64 {
        self.0.len() as u64
    }

    fn fill(&self, first: u64, out: &mut [u8]) {
        out.copy_from_slice(&self.0[first as usize..][..out.len()]);
    }
}

/// Makes a file in memory anew.
fn write(instance: &Instance, path: &Path, bytes: &[u8]) {
    let _ = instance.access.disk.remove(path);
    create(instance, path, &Text(bytes)).expect("written");
}

/// The field that a line of the tests is compared by.
fn field(line: &[u8], first: usize) -> &[u8] {
    line.split(|byte| *byte == b',').nth(first - 1).unwrap_or(b"")
}

fn number(field: &[u8]) -> f64 {
    std::str::from_utf8(field).expect("ASCII").parse().expect("a number of the tests")
}

/// What the manual says of two lines.
fn compare(order: &SortOrder, one: &[u8], two: &[u8]) -> Ordering {
    let mut found = Ordering::Equal;
    for SortKey { part, compared } in &order.keys {
        let Part::Fields { first, .. } = part else { unreachable!("the tests have fields") };
        let (one, two) = (field(one, *first), field(two, *first));
        found = found.then_with(|| match compared {
            Compared::Bytes => one.cmp(two),
            Compared::Numbers => number(one).total_cmp(&number(two)),
        });
    }
    match order.ties {
        Ties::Bytes => found.then_with(|| one.cmp(two)),
        Ties::Input if order.keys.is_empty() => one.cmp(two),
        Ties::Input => found,
    }
}

fn sorted(text: &[u8], order: &SortOrder) -> Vec<u8> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    lines.sort_by(|one, two| compare(order, one, two));
    lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect()
}

/// Sorts a text in a database in memory with these settings and compares with a sorted Vec.
fn check(text: &[u8], order: &SortOrder, changes: &[(&str, &str)]) -> LineSortOutcome {
    let instance = in_memory(changes);
    let spec = spec(Shape::Lines, order.clone());
    write(&instance, &spec.input, text);
    let outcome = sort_lines(&instance, &spec).expect("sorted");
    let found = content(&instance, &spec.output);
    let expected = if text.is_empty() { Vec::new() } else { sorted(text, order) };
    if found != expected {
        let place = found.iter().zip(&expected).take_while(|(one, two)| one == two).count();
        panic!(
            "{order:?} {changes:?}: {} bytes, expected {}; first at byte {place}",
            found.len(),
            expected.len()
        );
    }
    assert_eq!(content(&instance, &spec.input), text, "the input is only read");
    let judged = judge(&instance, &spec).expect("read");
    assert_eq!((judged.unordered, judged.summed), (0, outcome.summed));
    assert_no_space_leaks(&instance);
    outcome
}

const SPILLING: [(&str, &str); 4] = [
    ("sort_area_size", "128K"),
    ("db_block_size", "4K"),
    ("db_file_multiblock_read_count", "4"),
    ("sort_read_fac", "5"),
];

#[test]
fn lines_come_out_in_the_order_of_their_bytes() {
    for (count, seed) in [(1, 1), (2, 2), (1_000, 3), (30_000, 4)] {
        for degree in ["1", "2", "3"] {
            let degree = ("parallel_degree", degree);
            check(&lines(count, seed), &WHOLE, &[degree]);
            let spilled = check(&lines(count, seed), &WHOLE, &[&SPILLING[..], &[degree]].concat());
            assert_eq!(spilled.sort.servers.iter().any(|server| server.run_count > 0), count > 1_000);
        }
    }
}

#[test]
fn keys_and_ties_are_those_of_sort() {
    let text = lines(20_000, 5);
    for ties in [Ties::Bytes, Ties::Input] {
        for compared in [Compared::Bytes, Compared::Numbers] {
            let order = by_field(2, compared, ties);
            check(&text, &order, &[]);
            check(&text, &order, &SPILLING);
        }
        check(&text, &by_field(1, Compared::Bytes, ties), &SPILLING);
        let two = [by_field(1, Compared::Bytes, ties), by_field(2, Compared::Numbers, ties)];
        let keys = two.into_iter().flat_map(|order| order.keys).collect();
        check(&text, &SortOrder { keys, ties }, &SPILLING);
    }
}

#[test]
fn odd_files_are_sorted_too() {
    for text in ["", "\n", "\n\n\n", "b\na", "b\n\na\n", "same\nsame\nsame", "\0\nb\0\n\u{1}\n", "a\r\nA\r\n"]
    {
        check(text.as_bytes(), &WHOLE, &[]);
        check(text.as_bytes(), &WHOLE, &[("parallel_degree", "1")]);
    }
    // All equal: they are divided among servers all the same.
    let equal = check(&b"one and the same line\n".repeat(30_000), &WHOLE, &SPILLING);
    let rows: Vec<u64> = equal.sort.servers.iter().map(|server| server.row_count).collect();
    assert!(rows.iter().all(|rows| *rows > 12_000), "{rows:?}");
    // In order, and in reverse.
    let ordered = sorted(&lines(15_000, 6), &WHOLE);
    check(&ordered, &WHOLE, &SPILLING);
    let mut reversed: Vec<&[u8]> = ordered.split_inclusive(|byte| *byte == b'\n').collect();
    reversed.reverse();
    check(&reversed.concat(), &WHOLE, &SPILLING);
}

#[test]
fn lines_with_nul_bytes_are_sorted_as_all_others() {
    let nine = b"b\na\0\na\nc\nd\ne\nf\ng\nh\n";
    check(nine, &WHOLE, &[("parallel_degree", "1")]);
    let mut random = SplitMix(7);
    let mut text = Vec::new();
    for _ in 0..6000 {
        let word = random.pick(&["", "a", "job done", "a longer word than the others"]);
        let zeros = "\0".repeat(random.pick(&[0, 1, 2, 7, 8, 9, 300]));
        let end = random.pick(&["", "", "\0", "b", "\u{1}"]);
        let line = format!("{word}{zeros}{end},{}\0,{word}{zeros}{end}\n", random.below(3));
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(format!("{word}{zeros}{end}\n").as_bytes());
    }
    for memory in ["64K", "8M"] {
        for degree in ["1", "2"] {
            check(&text, &WHOLE, &[("sort_area_size", memory), ("parallel_degree", degree)]);
            for ties in [Ties::Bytes, Ties::Input] {
                let order = by_field(1, Compared::Bytes, ties);
                check(&text, &order, &[("sort_area_size", memory), ("parallel_degree", degree)]);
            }
        }
    }
    let numbers: String =
        (0..3000).map(|line| format!("x\0,{}\0{}\n", line % 7, "\0".repeat(line % 4))).collect();
    let mut lines: Vec<&str> = numbers.lines().collect();
    lines.sort_by(|one, two| one[3..4].cmp(&two[3..4]).then_with(|| one.cmp(two)));
    let instance = in_memory(&[("sort_area_size", "64K")]);
    let spec = spec(Shape::Lines, by_field(2, Compared::Numbers, Ties::Bytes));
    write(&instance, &spec.input, numbers.as_bytes());
    sort_lines(&instance, &spec).expect("sorted");
    let expected: String = lines.iter().map(|line| format!("{line}\n")).collect();
    assert!(content(&instance, &spec.output) == expected.as_bytes(), "numbers with NUL bytes behind them");
}

#[test]
fn long_lines_are_sorted_as_far_as_a_block_reaches() {
    let long = |letter: u8, bytes: usize| [vec![letter; bytes], b"\n".to_vec()].concat();
    let room = 32 * 1024 - 38;
    let text = [long(b'b', room), long(b'a', room), lines(100, 7), long(b'c', 20_000)].concat();
    let large = [("db_block_size", "32K"), ("sort_area_size", "1M")];
    let instance = in_memory(&large);
    let spec = spec(Shape::Lines, WHOLE);
    write(&instance, &spec.input, &text);
    sort_lines(&instance, &spec).expect("sorted");
    assert_eq!(content(&instance, &spec.output), sorted(&text, &WHOLE));
    instance.access.disk.remove(&spec.output).expect("removed");
    write(&instance, &spec.input, &[text, long(b'd', room + 1)].concat());
    let error = sort_lines(&instance, &spec).expect_err("refused").to_string();
    assert!(error.contains("takes 32731 bytes with its key, and a block has room for 32730"), "{error}");
    assert!(error.ends_with("longer ones cannot be sorted: shorten or remove it"), "{error}");
    assert_nothing_of_the_output(&instance);
}

#[test]
fn records_of_any_length_are_sorted_by_any_of_their_bytes() {
    let mut random = SplitMix(8);
    for (bytes, key) in [(1, 0..1), (7, 2..4), (16, 0..3), (100, 90..100), (5_000, 4_990..5_000)] {
        let count = 150_000 / bytes;
        let text: Vec<u8> = (0..count * bytes).map(|_| random.below(4) as u8).collect();
        let keys = vec![SortKey { part: Part::Bytes(key.clone()), compared: Compared::Bytes }];
        for settings in
            [&[("db_block_size", "32K")][..], &[("sort_area_size", "128K"), ("db_block_size", "16K")]]
        {
            let instance = in_memory(settings);
            let spec = spec(Shape::Records(bytes), SortOrder { keys: keys.clone(), ties: Ties::Bytes });
            write(&instance, &spec.input, &text);
            sort_lines(&instance, &spec).expect("sorted");
            let mut expected: Vec<&[u8]> = text.chunks(bytes).collect();
            expected.sort_by(|one, two| {
                let others = |record: &[u8]| [&record[..key.start], &record[key.end..]].concat();
                one[key.clone()].cmp(&two[key.clone()]).then_with(|| others(one).cmp(&others(two)))
            });
            assert!(content(&instance, &spec.output) == expected.concat(), "{bytes} {key:?}");
            assert_eq!(judge(&instance, &spec).expect("read").unordered, 0);
        }
    }
}

#[test]
fn a_judge_finds_what_is_out_of_order_wherever_it_is() {
    let text = sorted(&lines(60_000, 9), &WHOLE);
    let all: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let instance = in_memory(&[]);
    let spec = spec(Shape::Lines, WHOLE);
    for place in [0, 1, 30_000, all.len() - 2] {
        let mut lines = all.clone();
        let other = (place + 20_000) % all.len();
        lines.swap(place, other);
        let bytes = lines.concat();
        write(&instance, &spec.output, &bytes);
        let found = judge(&instance, &spec).expect("read");
        let unordered = lines.windows(2).filter(|pair| pair[1] < pair[0]).count() as u64;
        assert_eq!(found.unordered, unordered, "at {place}");
        let first = lines.windows(2).position(|pair| pair[1] < pair[0]).expect("one at least") + 1;
        let offset = lines[..first].iter().map(|line| line.len() as u64).sum();
        assert_eq!(found.first_unordered, Some(offset), "at {place}");
    }
}

fn assert_nothing_of_the_output(instance: &Instance) {
    let names: Vec<PathBuf> = memory_disk(instance).paths();
    assert!(names.iter().all(|name| !name.display().to_string().contains("out.txt")), "{names:?}");
    assert_no_space_leaks(instance);
}

#[test]
fn a_transfer_that_fails_anywhere_leaves_nothing() {
    within(240, || {
        // Past the cache: a database writer that failed stays closed.
        let direct = [("sort_direct_writes", "true"), ("sort_write_buffer_size", "32K")];
        let instance = in_memory(&[&SPILLING[..], &direct].concat());
        let spec = spec(Shape::Lines, WHOLE);
        write(&instance, &spec.input, &lines(20_000, 10));
        memory_disk(&instance).plan_faults(Faults::default());
        sort_lines(&instance, &spec).expect("nothing fails yet");
        let (reads, writes) = memory_disk(&instance).calls();
        instance.access.disk.remove(&spec.output).expect("sorted");
        let mut failures = 0;
        for (calls, write) in [(reads, false), (writes, true)] {
            for place in 0..20 {
                let place = Some(1 + place * calls / 20);
                let plan = if write {
                    Faults { fail_write: place, ..Faults::default() }
                } else {
                    Faults { fail_read: place, ..Faults::default() }
                };
                memory_disk(&instance).plan_faults(plan);
                let result = sort_lines(&instance, &spec);
                memory_disk(&instance).plan_faults(Faults::default());
                match result {
                    Ok(_) => instance.access.disk.remove(&spec.output).expect("sorted"),
                    Err(error) => {
                        failures += 1;
                        let text = error.to_string();
                        assert!(text.contains("/in/memory/") && text.lines().count() == 1, "{text}");
                    }
                }
                assert_nothing_of_the_output(&instance);
            }
        }
        // Requests vary a little from run to run where servers share the work.
        assert!(failures >= 30, "{failures} of 40 places failed");
        sort_lines(&instance, &spec).expect("the cause is gone");
    });
}

#[test]
fn a_sort_that_is_asked_to_stop_leaves_nothing() {
    let instance = in_memory(&SPILLING);
    let spec = spec(Shape::Lines, WHOLE);
    write(&instance, &spec.input, &lines(1_000, 11));
    instance.cancel.request();
    let stopped = sort_lines(&instance, &spec);
    assert!(matches!(stopped, Err(EngineError::Interrupted)), "{stopped:?}");
    assert_nothing_of_the_output(&instance);
}

/// Direct I/O, by the method that the machine offers.
#[test]
fn lines_past_the_page_cache() {
    let home = tempfile::tempdir().expect("a temporary directory");
    let instance = create_in(&home.path().join("db"), &[("sort_area_size", "512K")]);
    let text = lines(100_000, 12);
    let (input, output) = (home.path().join("in.txt"), home.path().join("out.txt"));
    let text = text.strip_suffix(b"\n").expect("the last line ends");
    fs::write(&input, text).expect("a file");
    let spec = LineSortSpec { input, output, shape: Shape::Lines, order: WHOLE };
    sort_lines(&instance, &spec).expect("sorted");
    assert!(fs::read(&spec.output).expect("there") == sorted(text, &WHOLE));
    let again = sort_lines(&instance, &spec).expect_err("it is there").to_string();
    assert!(again.ends_with("out.txt exists already: choose another name, or remove it first"), "{again}");
}
