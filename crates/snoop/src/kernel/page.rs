//! Pages of the kernel's ring buffer, as `trace_pipe_raw` returns them.
//!
//! ```text
//! u64 time of the first event | u64 bytes of data, with flags | data ...
//! event = u32 head: 5 bits type or length / 4, 27 bits time since the event before | payload
//!   0       length in the next u32        1..28  payload of 4 to 112 bytes
//!   29      padding: the rest of the page, or a discarded event
//!   30      extends the time              31     an absolute time
//! ```
//!
//! Why raw pages: text of `trace_pipe` costs the kernel 2 us an event to format and the reader as
//! much to parse; a page is copied once and walked here.
//!
//! P1 A walk never leaves the page: a length beyond its end ends the walk.

/// Bytes before the data of a page.
pub const HEAD: usize = 16;
/// Flags of the length of a page's data: events were lost before it, and their number follows it.
const LOST: u64 = 1 << 31;
const LOST_COUNTED: u64 = 1 << 30;
const LENGTH: u64 = (1 << 27) - 1;
/// Bits of an absolute time; the others are those of the page's own time.
const ABSOLUTE: u64 = (1 << 59) - 1;

/// Walks the events of a page: calls `each` with the time in nanoseconds and the record. Returns
/// the number of events that the kernel says were lost before it.
pub fn walk(page: &[u8], each: &mut impl FnMut(u64, &[u8])) -> u64 {
    let Some(data) = page.get(HEAD..) else { return 0 };
    let mut time = long(page, 0);
    let commit = long(page, 8);
    let length = ((commit & LENGTH) as usize).min(data.len());
    let lost = match (commit & LOST != 0, commit & LOST_COUNTED != 0) {
        (true, true) => long(data, length),
        (true, false) => 1,
        _ => 0,
    };
    let data = &data[..length];
    let mut at = 0;
    while at + 4 <= data.len() {
        let head = word(data, at);
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        let next = u64::from(word(data, at + 4));
        let (payload, size) = match kind {
            0 => (at + 8, next as usize + 4),
            29 if delta == 0 => break,
            29 => (data.len(), next as usize + 4),
            30 | 31 => (data.len(), 8),
            _ => (at + 4, 4 + 4 * kind as usize),
        };
        time = match kind {
            30 => time + (next << 27) + delta,
            31 => (time & !ABSOLUTE) | ((next << 27) + delta),
            _ => time + delta,
        };
        let end = (at + size).min(data.len());
        if payload < end {
            assert!(end <= data.len(), "P1");
            each(time, &data[payload..end]);
        }
        // P1: a size of 0 would not end.
        at += size.max(4);
    }
    lost
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |found| u32::from_le_bytes(found.try_into().unwrap_or_default()))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).map_or(0, |found| u64::from_le_bytes(found.try_into().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(time: u64, flags: u64, events: &[&[u32]]) -> Vec<u8> {
        let data: Vec<u8> = events.concat().iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut page = time.to_le_bytes().to_vec();
        page.extend((data.len() as u64 | flags).to_le_bytes());
        page.extend(data);
        page
    }

    fn walked(page: &[u8]) -> (Vec<(u64, usize)>, u64) {
        let mut found = Vec::new();
        let lost = walk(page, &mut |time, record| found.push((time, record.len())));
        (found, lost)
    }

    #[test]
    fn events_have_times_from_those_before_them() {
        let extend = [30 | (5 << 5), 2];
        let long = [7 << 5, 12, 0xAAAA, 0xBBBB];
        let events: [&[u32]; 5] = [&[2, 1, 2], &[1 | (10 << 5), 3], &extend, &long, &[29]];
        let (found, lost) = walked(&page(1000, 0, &events));
        assert_eq!(found, [(1000, 8), (1010, 4), (1010 + (2 << 27) + 5 + 7, 8)]);
        assert_eq!(lost, 0);
    }

    #[test]
    fn absolute_times_keep_the_bits_that_they_lack_and_discarded_events_their_time() {
        let high = 3 << 60;
        let events: [&[u32]; 3] = [&[31 | (9 << 5), 4], &[29 | (1 << 5), 8, 0], &[1, 0]];
        let (found, _) = walked(&page(high + 77, 0, &events));
        assert_eq!(found, [(high + (4 << 27) + 9 + 1, 4)]);
    }

    #[test]
    fn lost_events_are_counted_by_the_number_behind_the_data() {
        let mut counted = page(1, LOST | LOST_COUNTED, &[&[1, 0]]);
        counted.extend(4711_u64.to_le_bytes());
        assert_eq!(walked(&counted).1, 4711);
        assert_eq!(walked(&page(1, LOST, &[&[1, 0]])).1, 1);
    }

    /// P1: any bytes are walked to an end, within the page.
    #[test]
    fn damaged_pages_end_the_walk() {
        for events in [vec![0_u32], vec![0, u32::MAX], vec![29 | 32, u32::MAX, 1], vec![28 | 32, 1]] {
            let (found, _) = walked(&page(0, 0, &[&events]));
            assert!(found.iter().all(|(_, length)| *length <= 4 * events.len()), "{events:?}");
        }
        assert_eq!(walked(&[1, 2, 3]).0, []);
    }
}
