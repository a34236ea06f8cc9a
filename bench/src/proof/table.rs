//! Shares of simulated studies, and the table of them.

use super::rows::Bound;
use plumb_proof::interval::Interval;
use plumb_proof::proportion;
use plumb_proof::random::Generator;
use std::fmt;
use std::panic::resume_unwind;

/// Error of the intervals of shares (Clopper, Pearson 1934).
const ALPHA: f64 = 0.05;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    pub(super) hits: usize,
    pub(super) of: usize,
}

impl Share {
    pub(super) fn counted<'a>(seen: impl IntoIterator<Item = &'a bool>) -> Share {
        seen.into_iter().fold(Share { hits: 0, of: 0 }, |Share { hits, of }, hit| Share {
            hits: hits + usize::from(*hit),
            of: of + 1,
        })
    }

    pub(super) fn found(self) -> f64 {
        self.hits as f64 / self.of.max(1) as f64
    }

    fn interval(self) -> Interval {
        proportion::interval(self.hits, self.of, ALPHA)
    }
}

/// Standing of a share against its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Kept,
    /// The interval has both sides of the bound.
    Open,
    Broken,
}

/// A row of the table.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) size: String,
    pub(super) what: String,
    pub(super) share: Share,
    pub(super) bound: Option<Bound>,
    /// True if docs/proof.md names the law as one that exceeds the bound.
    pub(super) named: bool,
    pub(super) beside: String,
}

impl Line {
    pub(super) fn of(seen: &[bool], bound: Option<Bound>) -> Line {
        let share = Share::counted(seen);
        let [name, size, what, beside] = std::array::from_fn(|_| String::new());
        Line { name, size, what, share, bound, named: false, beside }
    }

    pub(super) fn standing(&self) -> Standing {
        let Interval { low, high } = self.share.interval();
        let (is_kept, is_broken) = match self.bound {
            None => (true, false),
            Some(Bound::AtMost(most)) => (high <= most, low > most),
            Some(Bound::AtLeast(least)) => (low >= least, high < least),
        };
        match () {
            () if is_broken => Standing::Broken,
            () if is_kept => Standing::Kept,
            () => Standing::Open,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Interval { low, high } = self.share.interval();
        let found = format!("{:.1} [{:.1}, {:.1}]", 100.0 * self.share.found(), 100.0 * low, 100.0 * high);
        let mark = match (self.standing(), self.named) {
            (Standing::Broken, true) => "n",
            (Standing::Broken, false) => "!",
            (Standing::Open, _) => "?",
            (Standing::Kept, _) => " ",
        };
        let bound = match self.bound {
            None => String::new(),
            Some(Bound::AtMost(most)) => format!("<={:.1}", 100.0 * most),
            Some(Bound::AtLeast(least)) => format!(">={:.0}", 100.0 * least),
        };
        let Line { name, size, what, beside, .. } = self;
        write!(out, "{name:<38}{size:>7} {what:<24}{found:>18} {bound:>6}{mark}{beside}")
    }
}

/// Makes the studies of a cell in order, on all processors. Each has its own seed, so that the
/// result does not depend on which processor makes it.
pub(super) fn each<T: Send>(
    studies: usize,
    seed: u64,
    cell: usize,
    make: impl Fn(u64) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let servers = std::thread::available_parallelism().map_or(1, usize::from);
    let share = studies.div_ceil(servers).max(1);
    let made = |server: usize| {
        let own = (server * share).min(studies)..studies.min((server + 1) * share);
        let one = |study: usize| make(Generator::of_part(seed, (cell as u64) << 32 | study as u64).bits());
        own.map(one).collect::<anyhow::Result<Vec<T>>>()
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let made = &made;
        let servers: Vec<_> = (0..servers).map(|server| scope.spawn(move || made(server))).collect();
        servers.into_iter().map(|server| server.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let mut all = Vec::with_capacity(studies);
    for part in parts {
        all.extend(part?);
    }
    Ok(all)
}
