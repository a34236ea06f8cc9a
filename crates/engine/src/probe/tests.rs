//! The fit of the read cost, and the measurement on files in memory.

use super::*;
use crate::instance::{InitialSizes, Layout};
use crate::settings::Settings;
use plumb_events::Cancel;
use plumb_events::Role;
use std::path::PathBuf;

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected.abs() * 0.02
}

fn cost(start_seconds: f64, bytes_per_second: f64) -> ReadCost {
    ReadCost { start_seconds, bytes_per_second, block_read_seconds: start_seconds }
}

#[test]
fn the_line_is_found_and_one_bad_size_bends_it_little() {
    let line = |start: f64, rate: f64| {
        [8192.0, 65536.0, 262_144.0, 1_048_576.0].map(|bytes: f64| (bytes, start + bytes / rate)).to_vec()
    };
    let (start, rate) = fit(&line(100e-6, 1.5e9));
    assert!(close(start, 100e-6) && close(rate, 1.5e9), "{start} {rate}");
    let (start, rate) = fit(&line(8e-3, 150e6));
    assert!(close(start, 8e-3) && close(rate, 150e6), "{start} {rate}");
    let mut slow_end = line(100e-6, 1.5e9);
    slow_end[3].1 *= 1.3;
    let (start, _) = fit(&slow_end);
    assert!((60e-6..110e-6).contains(&start), "{start}");
}

#[test]
fn a_line_that_makes_no_sense_gives_figures_that_do() {
    let falling = [(8192.0, 3e-4), (65536.0, 2e-4), (262_144.0, 1e-4)];
    let (start, rate) = fit(&falling);
    assert!(start > 0.0 && close(rate, 262_144.0 / 1e-4), "{start} {rate}");
    let through_below_zero = [(8192.0, 1e-6), (65536.0, 4e-5), (262_144.0, 3e-4)];
    let (start, rate) = fit(&through_below_zero);
    assert!(start == 0.0 && rate > 0.0, "{start} {rate}");
    let alone = fit(&[(8192.0, 1e-4)]);
    assert!(close(alone.0, 1e-4) && close(alone.1, 81_920_000.0), "{alone:?}");
}

#[test]
fn the_read_factor_follows_the_formula() {
    let block = BlockSize::new(8192).expect("a block size");
    // A disk of 1996: 10 ms seek and latency, 8 MB/s: a block takes 1 ms.
    assert_eq!(cost(10e-3, 8_192_000.0).read_fac(block), 11);
    assert_eq!(cost(100e-6, 1.5e9).read_fac(block), 19);
    assert_eq!(cost(0.0, 1.5e9).read_fac(block), 1);
    assert_eq!(cost(f64::NAN, 1.5e9).read_fac(block), 1);
}

fn instance(extent: &str) -> Instance {
    let mut settings = Settings::default();
    for (name, value) in [("io_method", "null"), ("extent_size", extent), ("parallel_degree", "2")] {
        settings.set(name, value, "test").expect("in range");
    }
    let sizes = InitialSizes { users: Bytes(3 << 20), temp: Bytes(1 << 20), indx: Bytes(1 << 20) };
    Instance::create(&Layout::in_one(PathBuf::from("/null")), settings, sizes, Cancel::default())
        .expect("created")
}

#[test]
fn files_of_any_length_can_be_measured() {
    for extent in ["256K", "4M"] {
        let instance = instance(extent);
        let session = instance.recorder.session(Role::User);
        for purpose in Purpose::FIRST {
            let cost = measure(&instance, &session, purpose).expect("measured");
            assert!(
                cost.bytes_per_second > 0.0 && cost.start_seconds >= 0.0 && cost.block_read_seconds > 0.0
            );
            assert!(cost.read_fac(instance.tablespace(purpose).block_size) >= 1);
        }
        let stream = instance.recorder.snapshot().since(&empty_snapshot()).stream(IoStream::Probe);
        assert!(stream.count >= 3 * (ROUNDS_MIN * BLOCK_READS) as u64, "{}", stream.count);
    }
}

fn empty_snapshot() -> plumb_events::Snapshot {
    plumb_events::Snapshot { at: Nanos(0), sessions: Vec::new() }
}

#[test]
fn a_sequential_read_takes_the_extents_there_are_and_no_header() {
    let instance = instance("256K");
    let session = instance.recorder.session(Role::User);
    let one = Shots { bytes: 1 << 40, count: 1 };
    let rate = sequential_reads(&instance, &session, Purpose::Users, one).expect("read")[0];
    assert!(rate > 0.0);
    let read = instance.recorder.snapshot().since(&empty_snapshot()).stream(IoStream::Probe).bytes;
    // Two files of 1.5 MB, without a header block each.
    assert_eq!(read, (3 << 20) - 2 * 8192);
    let rates = sequential_reads(&instance, &session, Purpose::Users, Shots { bytes: 300 << 10, count: 2 });
    assert_eq!(rates.expect("read").len(), 2, "in two parts");
    let again = instance.recorder.snapshot().since(&empty_snapshot()).stream(IoStream::Probe).bytes;
    assert_eq!(again - read, 2 * (256 << 10) - 2 * 8192);
}
