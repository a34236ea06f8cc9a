//! Mean time of a block, so that reports give the blocks that would decide a claim as time, too.

use super::head;
use super::result::Analysis;
use super::used_blocks::UsedBlocks;

/// Time that a study ran, with the runs and arms that took it.
#[derive(Debug, Clone, Copy)]
pub struct BlockTime {
    /// Time of the whole study in nanoseconds, without pauses.
    elapsed_ns: u64,
    /// Time before the first run in nanoseconds, without settling.
    loading_ns: u64,
    runs: u64,
    arms: u64,
}

impl BlockTime {
    pub(super) fn by(used: &UsedBlocks<'_>) -> BlockTime {
        BlockTime {
            elapsed_ns: used.contents.ran().0,
            loading_ns: head::loading(used),
            runs: used.contents.runs.len() as u64,
            arms: used.contents.plan.schedule.arms as u64,
        }
    }

    /// Returns the time of an analysed study.
    #[must_use]
    pub fn of(analysis: &Analysis) -> BlockTime {
        BlockTime {
            elapsed_ns: analysis.elapsed_ns,
            loading_ns: analysis.design.loading_ns,
            runs: analysis.runs.len() as u64,
            arms: analysis.arms.len() as u64,
        }
    }

    /// Returns `4 h at 9.1 s a block`, by the blocks that ran; `None` if none ran.
    #[must_use]
    pub fn in_time(self, blocks: u64) -> Option<String> {
        let block = self.block_ns()? as f64 / 1e9;
        let a_block = if block < 10.0 { format!("{block:.1} s") } else { rough(block) };
        Some(format!("{} at {a_block} a block", rough(block * blocks as f64)))
    }

    /// Mean time of a block, with everything between its runs.
    fn block_ns(self) -> Option<u64> {
        let spent = self.elapsed_ns.checked_sub(self.loading_ns)?;
        // The reference runs twice per block.
        spent.checked_div(self.runs).map(|run| run * (self.arms + 1)).filter(|block| *block > 0)
    }
}

/// Prints a time in a suitable unit.
fn rough(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6_000.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        _ => format!("{:.0} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_said_as_time_by_those_that_ran() {
        let spent = BlockTime { elapsed_ns: 100_000_000_000, loading_ns: 10_000_000_000, runs: 9, arms: 2 };
        assert_eq!(spent.block_ns(), Some(30_000_000_000));
        assert_eq!(spent.in_time(1577).as_deref(), Some("13 h at 30 s a block"));
        let quick = BlockTime { elapsed_ns: 19_000_000_000, ..spent };
        assert_eq!(quick.in_time(4).as_deref(), Some("12 s at 3.0 s a block"));
        assert_eq!(BlockTime { runs: 0, ..spent }.in_time(1577), None);
        let times = [9.0, 99.0, 720.0, 14_193.0, 400_000.0].map(rough);
        assert_eq!(times, ["9 s", "99 s", "12 min", "4 h", "5 days"]);
    }
}
