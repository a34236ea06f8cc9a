//! The log buffer under a model checker (loom): every order of its steps that threads and the memory model allow, up to some
//! preemptions. The file is the engine's own; only its atomics are the checker's, and its records are shorter.

use loom::model::Builder;
use loom::thread;
use plumb_units::Lsn;
use std::sync::Arc;

use loom::sync::atomic;

mod record {
    pub const HEADER_BYTES: usize = 16;
}

#[allow(dead_code)]
#[path = "../../src/redo/log_buffer.rs"]
mod log_buffer;

use log_buffer::LogBuffer;

/// Bytes of a record: its length, and a number.
const RECORD: usize = 16;
/// Records in the ring.
const RING: usize = 4;

fn record(number: u64) -> Vec<u8> {
    [RECORD as u64, number].iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Each session appends these numbers in turn; the writer takes and releases until it has all. Gives them in the order of their places.
fn written(sessions: &'static [&'static [u64]]) -> Vec<u64> {
    let buffer = Arc::new(LogBuffer::new(RING * RECORD, Lsn(0)));
    let append = |numbers: &'static [u64]| {
        let buffer = Arc::clone(&buffer);
        thread::spawn(move || {
            for number in numbers {
                let lsn = buffer.reserve(RECORD);
                while !buffer.has_room(Lsn(lsn.0 + RECORD as u64)) {
                    thread::yield_now();
                }
                buffer.fill(lsn, &record(*number));
            }
        })
    };
    let threads: Vec<_> = sessions.iter().map(|numbers| append(numbers)).collect();
    let count: usize = sessions.iter().map(|numbers| numbers.len()).sum();
    let (mut at, mut found) = (Lsn(0), Vec::new());
    while found.len() < count {
        let mut records = 0;
        let end = buffer.complete_from(at, RING * RECORD, |length| {
            assert_eq!(length, RECORD, "a length is there with its record");
            records += 1;
        });
        let mut bytes = vec![0; records * RECORD];
        buffer.copy(at, &mut bytes);
        for bytes in bytes.chunks_exact(RECORD) {
            found.push(u64::from_le_bytes(bytes[8..].try_into().expect("eight bytes")));
        }
        at = end;
        buffer.release(at);
        if records == 0 {
            thread::yield_now();
        }
    }
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    found
}

fn check(preemptions: usize, work: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(work);
}

#[test]
fn a_record_that_is_taken_is_whole_and_in_its_place() {
    check(3, || {
        let mut found = written(&[&[11], &[21]]);
        found.sort_unstable();
        assert_eq!(found, [11, 21]);
    });
}

/// More records than the ring holds: places are given to others, and are zeros then.
#[test]
fn places_are_used_again_and_nothing_of_a_round_before_is_taken() {
    check(2, || assert_eq!(written(&[&[1, 2, 3, 4, 5, 6]]), [1, 2, 3, 4, 5, 6]));
}

/// A reader of an old version copies while the place is given back: it has the record, or knows that it is gone.
#[test]
fn a_reader_has_the_record_or_none() {
    check(3, || {
        let buffer = Arc::new(LogBuffer::new(RING * RECORD, Lsn(0)));
        for number in 1..=3 {
            let lsn = buffer.reserve(RECORD);
            buffer.fill(lsn, &record(number));
        }
        let reader = Arc::clone(&buffer);
        let reading = thread::spawn(move || {
            let mut bytes = Vec::new();
            if reader.read(Lsn(0), &mut bytes).is_some() {
                assert_eq!(bytes, record(1));
            }
        });
        buffer.release(Lsn(3 * RECORD as u64));
        let lsn = buffer.reserve(RECORD);
        buffer.fill(lsn, &record(4));
        let lsn = buffer.reserve(RECORD);
        assert!(buffer.has_room(Lsn(lsn.0 + RECORD as u64)), "the first place was given back");
        buffer.fill(lsn, &record(5));
        reading.join().expect("no panic");
    });
}
