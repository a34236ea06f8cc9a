//! The differences of two images of a row with the same length: what an update logs, and its undo.
//!
//! ```text
//!  piece   offset u16, length u16, the bytes before the update
//! ```
//! An update of two columns in a row that fills its block logs 300 bytes this way, and 16K as whole
//! images. Ranges closer than a piece's header are merged. A row is logged whole if the pieces have
//! half its bytes or more ([`pieces`] returns `None`), because splitting it saves nothing then.

use std::ops::Range;

/// Bytes of a piece before its data.
const HEADER: usize = 4;

/// Returns the ranges in which two images of the same length differ, in order.
pub(super) fn differing(before: &[u8], after: &[u8]) -> Vec<Range<usize>> {
    assert_eq!(before.len(), after.len(), "pieces are of images of one length");
    let mut ranges: Vec<Range<usize>> = Vec::new();
    const WORD: usize = 8;
    for (number, (old, new)) in before.chunks(WORD).zip(after.chunks(WORD)).enumerate() {
        if old == new {
            continue;
        }
        let at = number * WORD;
        let first = (0..old.len()).find(|byte| old[*byte] != new[*byte]).unwrap_or(0);
        let last = (0..old.len()).rfind(|byte| old[*byte] != new[*byte]).unwrap_or(0);
        match ranges.last_mut() {
            Some(range) if at + first <= range.end + HEADER => range.end = at + last + 1,
            _ => ranges.push(at + first..at + last + 1),
        }
    }
    ranges
}

/// Returns the pieces that turn the image `after` into `before`; `None` if whole images are better.
pub(super) fn pieces(before: &[u8], after: &[u8]) -> Option<Vec<u8>> {
    if before.len() != after.len() {
        return None;
    }
    let ranges = differing(before, after);
    let bytes: usize = ranges.iter().map(|range| HEADER + range.len()).sum();
    if bytes * 2 >= before.len() {
        return None;
    }
    let mut pieces = Vec::with_capacity(bytes);
    for range in ranges {
        pieces.extend_from_slice(&(range.start as u16).to_le_bytes());
        pieces.extend_from_slice(&(range.len() as u16).to_le_bytes());
        pieces.extend_from_slice(&before[range]);
    }
    Some(pieces)
}

/// Iterates over the pieces: offset and bytes. Stops at malformed bytes.
pub(super) fn each(pieces: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut rest = pieces;
    std::iter::from_fn(move || {
        let ([o0, o1, l0, l1], behind) = rest.split_first_chunk::<HEADER>()?;
        let (bytes, next) = behind.split_at_checked(usize::from(u16::from_le_bytes([*l0, *l1])))?;
        rest = next;
        Some((usize::from(u16::from_le_bytes([*o0, *o1])), bytes))
    })
}

/// Applies the pieces to an image. Bytes after its end are skipped, because it never had them.
pub(super) fn apply(pieces: &[u8], image: &mut [u8]) {
    for (offset, bytes) in each(pieces) {
        if let Some(place) = image.get_mut(offset..offset + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn near_differences_are_one_piece_and_far_ones_two() {
        let before = [0_u8; 64];
        let mut after = before;
        (after[3], after[7], after[40]) = (1, 1, 1);
        assert_eq!(differing(&before, &after), vec![3..8, 40..41]);
        assert_eq!(pieces(&before, &after).map(|pieces| pieces.len()), Some(2 * HEADER + 6));
        assert_eq!(pieces(&before, &[1; 64]), None);
        assert_eq!(pieces(&before, &after[..63]), None);
    }

    proptest! {
        #[test]
        fn the_pieces_restore_the_image_before_an_update(
            before in prop::collection::vec(any::<u8>(), 1..300),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut after = before.clone();
            changes.iter().for_each(|(place, byte)| after[place.index(before.len())] = *byte);
            let mut found = after.clone();
            match pieces(&before, &after) {
                Some(pieces) => {
                    apply(&pieces, &mut found);
                    prop_assert_eq!(found, before);
                }
                None => prop_assert!(before.len() < 2 * 6 * (HEADER + 8)),
            }
        }
    }
}
