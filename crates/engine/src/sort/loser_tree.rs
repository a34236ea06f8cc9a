//! A tree of losers: the smallest of k heads, and the next after one is replaced.
//!
//! Each inner node keeps the loser of the match between its subtrees, the root the overall winner.
//! Replacing the winner plays the new head up one path: ceil(log2 k) comparisons, each with a node
//! on that path (a heap needs two a level). Heads are copied into the nodes, so a match touches one
//! cache line. (Knuth, The Art of Computer Programming 3, section 5.4.1.)
//!
//! Invariant:
//! - L1 A source is in order: its next head is not below the one that has won. So the
//!   tree returns heads in order.

use plumb_io::strict_assert;

/// The tournament. Each call gets the closure that compares heads.
#[derive(Debug)]
pub struct LoserTree<H> {
    /// Node 0 is the winner; the others are the losers of the inner nodes. Leaf i, if it were
    /// stored, would be node `len + i`.
    nodes: Vec<H>,
}

impl<H: Copy> LoserTree<H> {
    /// Plays all matches of the tournament.
    ///
    /// # Panics
    /// If there are no heads.
    pub fn new(heads: &[H], less: impl Fn(&H, &H) -> bool) -> LoserTree<H> {
        let count = heads.len();
        assert!(count > 0, "a tournament has a head");
        let mut nodes = vec![heads[0]; count];
        // `winners[i]` is the winner below node i.
        let mut winners = vec![heads[0]; 2 * count];
        winners[count..].copy_from_slice(heads);
        for node in (1..count).rev() {
            let (one, two) = (winners[2 * node], winners[2 * node + 1]);
            let second_wins = less(&two, &one);
            winners[node] = if second_wins { two } else { one };
            nodes[node] = if second_wins { one } else { two };
        }
        nodes[0] = if count > 1 { winners[1] } else { heads[0] };
        LoserTree { nodes }
    }

    /// Returns the smallest of all heads.
    #[inline]
    pub fn winner(&self) -> H {
        self.nodes[0]
    }

    /// Replaces the head of `leaf`, which must be the winner's, and plays again.
    #[inline]
    pub fn replace(&mut self, leaf: u32, head: H, less: impl Fn(&H, &H) -> bool) {
        strict_assert!(!less(&head, &self.nodes[0]), "L1: the source of leaf {leaf} is out of order");
        let mut candidate = head;
        let mut node = (self.nodes.len() + leaf as usize) / 2;
        while node > 0 {
            let stored = self.nodes[node];
            let loses = less(&stored, &candidate);
            self.nodes[node] = if loses { candidate } else { stored };
            candidate = if loses { stored } else { candidate };
            node /= 2;
        }
        self.nodes[0] = candidate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    #[should_panic(expected = "L1: the source of leaf 1 is out of order")]
    fn a_source_that_goes_back_is_noticed() {
        let mut tree = LoserTree::new(&[7, 5], u32::lt);
        assert_eq!(tree.winner(), 5);
        tree.replace(1, 4, u32::lt);
    }

    proptest! {
        #[test]
        fn sources_merge_into_one_order(sources in proptest::collection::vec(
            proptest::collection::vec(0u32..1000, 0..30), 1..40,
        )) {
            let mut sources = sources;
            sources.iter_mut().for_each(|source| source.sort_unstable_by(|a, b| b.cmp(a)));
            let mut expected: Vec<u32> = sources.concat();
            expected.sort_unstable();
            let source_count = sources.len();
            let mut head = |source: usize| (sources[source].pop().map_or(u64::MAX, u64::from), source as u32);
            let less = |one: &(u64, u32), two: &(u64, u32)| one.0 < two.0;
            let heads: Vec<(u64, u32)> = (0..source_count).map(&mut head).collect();
            let mut tree = LoserTree::new(&heads, less);
            let mut merged = Vec::new();
            while tree.winner().0 != u64::MAX {
                let (value, source) = tree.winner();
                merged.push(value as u32);
                tree.replace(source, head(source as usize), less);
            }
            prop_assert_eq!(merged, expected);
        }
    }
}
