//! Epochs: one copy of a database goes on with log files outside of its directory.
//!
//! A copy of the directory has the original's id and reaches the same files. If both went on with
//! them, one would lose what it has committed: with the copy in the original's place, not even the
//! path tells the two apart. So each opening of the log has an epoch of its own:
//!
//! ```text
//! redo.ctl        now, before     in the directory: a copy has those of the moment of the copy
//! header          epoch           of each member outside: of the opening that wrote it last
//! ```
//!
//! A member is the directory's own if its epoch is one of the two. The first copy to be opened
//! takes a new epoch, and every other one finds an epoch that it never had.
//!
//! - O1 Before the control block has a new epoch, each member outside has the one before.
//! - O2 The control block has a new epoch, durably, before a member has it. So a crash in between
//!   leaves members of either, and both are in the control block.
//! - O3 Each member has the epoch, durably, before its opening writes a batch or begins a file.
//! - O4 The epoch is in the first 512 bytes of the header, under their checksum: a torn write
//!   leaves one epoch or the other.
//!
//! An epoch counts openings in its upper half, and is random in its lower one. The count tells a
//! member that missed openings, as one on a disk that was not there: it is made again like the
//! others. The rivals of one file count upwards from the epoch that it had when they parted, so a
//! lower count is never a rival's.
//!
//! A process that only reads opens no log, and takes no epoch.
//!
//! Limits: two copies of which each has only one of two members, the other disk being away, part
//! without a common file. Then the one with more openings wins.

use plumb_io::Disk;

/// Bits of an epoch that are random.
const RANDOM_BITS: u32 = 32;

/// The number of an opening of the log; 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Epoch(pub u64);

impl Epoch {
    /// Draws the epoch of the next opening.
    fn next(self, disk: &Disk) -> Epoch {
        Epoch((self.count() + 1) << RANDOM_BITS | u64::from(disk.random_id() as u32))
    }

    fn count(self) -> u64 {
        self.0 >> RANDOM_BITS
    }
}

/// The epochs that members outside of the directory may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Epochs {
    /// The epoch of the last opening.
    pub now: Epoch,
    /// The one before, which members have where the last opening was cut short.
    pub before: Epoch,
}

/// The standing of a member by its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has an epoch of this directory.
    Own,
    /// It missed openings, and is made again.
    Behind,
    /// Another copy has gone on with it.
    Continued,
}

impl Epochs {
    /// Returns those of the next opening.
    pub(super) fn next(self, disk: &Disk) -> Epochs {
        Epochs { now: self.now.next(disk), before: self.now }
    }

    pub(super) fn standing(self, member: Epoch) -> Standing {
        if member == self.now || member == self.before {
            Standing::Own
        } else if member.count() < self.before.count() {
            Standing::Behind
        } else {
            Standing::Continued
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_own_or_behind_or_continued_by_another_copy() {
        let epoch = |count: u64, random: u64| Epoch(count << RANDOM_BITS | random);
        let epochs = Epochs { now: epoch(7, 1), before: epoch(6, 2) };
        let standing = |count, random| epochs.standing(epoch(count, random));
        assert_eq!([standing(7, 1), standing(6, 2)], [Standing::Own; 2]);
        assert_eq!([standing(5, 9), standing(0, 0)], [Standing::Behind; 2]);
        // A copy of this moment, or of an earlier one, that was opened since.
        assert_eq!([standing(8, 1), standing(7, 9), standing(6, 9)], [Standing::Continued; 3]);
        // A log that was made before epochs were kept.
        assert_eq!(Epochs::default().standing(Epoch::default()), Standing::Own);
        let next = epochs.next(&Disk::Kernel);
        assert_eq!((next.now.count(), next.before), (8, epochs.now), "O1");
        assert_eq!(epochs.standing(next.now), Standing::Continued);
    }
}
