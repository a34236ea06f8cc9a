//! Epochs: only one copy of a database continues log files outside of its directory.
//!
//! A copy of the directory has the original's id and reaches the same files. If both continued
//! them, one would lose its commits. With the copy in the original's place, not even the path tells
//! the two apart. So each opening of the log draws an epoch:
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
//! The upper half of an epoch counts openings, the lower half is random. The count reveals a member
//! that missed openings, for example on a disk that was absent: it is created again from the other
//! one. Rivals for one file count upwards from the epoch at which they parted, so a lower count
//! never belongs to a rival.
//!
//! A process that only reads opens no log and draws no epoch.
//!
//! Limits: two copies may each reach only one of the two members, because the other disk is absent.
//! They part without a common file, and then the one with more openings wins.

use plumb_io::Disk;

const RANDOM_BITS: u32 = 32;

/// Number of one opening of the log; 0 for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Epoch(pub u64);

impl Epoch {
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
    /// The epoch before, which members have if the last opening was cut short.
    pub before: Epoch,
}

/// Relation of a member to the directory, by its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The member has an epoch of this directory.
    Own,
    /// It missed openings and is created again.
    Behind,
    /// Another copy has continued it.
    Continued,
}

impl Epochs {
    /// Returns the epochs of the next opening.
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
    fn a_member_is_own_behind_or_continued() {
        let epoch = |count: u64, random: u64| Epoch(count << RANDOM_BITS | random);
        let epochs = Epochs { now: epoch(7, 1), before: epoch(6, 2) };
        let standing = |count, random| epochs.standing(epoch(count, random));
        assert_eq!([standing(7, 1), standing(6, 2)], [Standing::Own; 2]);
        assert_eq!([standing(5, 9), standing(0, 0)], [Standing::Behind; 2]);
        // A copy taken now or earlier, and opened since.
        assert_eq!([standing(8, 1), standing(7, 9), standing(6, 9)], [Standing::Continued; 3]);
        // A log created before epochs existed.
        assert_eq!(Epochs::default().standing(Epoch::default()), Standing::Own);
        let next = epochs.next(&Disk::Kernel);
        assert_eq!((next.now.count(), next.before), (8, epochs.now), "O1");
        assert_eq!(epochs.standing(next.now), Standing::Continued);
    }
}
