//! Tests the fit of the read cost, and the measurement on files in memory.

use super::*;
use crate::instance::{InitialSizes, Layout};
use crate::settings::Settings;
use plumb_events::{Cancel, Role};
use std::path::PathBuf;

#[test]
fn flat_reads_have_the_rate_of_the_longest() {
    let falling = fit(&[(8192.0, 3e-4), (65536.0, 2e-4), (262_144.0, 1e-4)]);
    assert_eq!(falling.start_seconds, 1e-4);
    assert_eq!(falling.bytes_per_second, 262_144.0 / 1e-4);
    let alone = fit(&[(8192.0, 1e-4)]);
    assert_eq!((alone.start_seconds, alone.bytes_per_second), (1e-4, 8192.0 / 1e-4));
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
                cost.line.bytes_per_second > 0.0
                    && cost.line.start_seconds >= 0.0
                    && cost.block_read_seconds > 0.0
            );
            assert!(cost.line.read_fac(instance.tablespace(purpose).block_size.bytes() as u64) >= 1);
        }
        let stream = instance.recorder.snapshot().since(&empty_snapshot()).stream(IoStream::Probe);
        assert!(stream.count >= 3 * (ROUNDS_MIN * BLOCK_READS) as u64, "{}", stream.count);
    }
}

fn empty_snapshot() -> plumb_events::Snapshot {
    plumb_events::Snapshot { at: Nanos(0), sessions: Vec::new() }
}

#[test]
fn a_sequential_read_covers_existing_extents_without_headers() {
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
