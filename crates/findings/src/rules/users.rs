//! Users that read through the buffer cache while an index is built.

use super::{OWN, count, percent};
use crate::rule::{FindingRule, Observed, Rank};
use crate::signals::{Signals, UsersFacts};
use plumb_units::Nanos;

/// Share of the blocks looked up that users read from disk, from which on they are displaced.
const MISSES_MIN: f64 = 0.005;
/// Rate during the build, of the rate before, below which users have lost something.
const RATE_KEPT: f64 = 0.8;
/// Growth of the response time that is a loss, too: with arrivals at a rate the rate stays.
const SLOWER: f64 = 2.0;
/// Study that compares the ways of a sort's blocks with users in the same cache.
const STUDY: &str = "plumb study sorters-beside-users";

pub(super) const RULES: &[FindingRule] = &[
    FindingRule {
        id: "U1",
        rank: Rank::Saving,
        signal: "blocks that users read from disk during the build, of those looked up",
        threshold: "over 0.5%, and twice the share before",
        origin: "Tuning Large Sorts, 1996, future tests; the number is own",
        caveat: "a hit ratio is no diagnosis: look at the users' response times",
        advice: "a larger db_cache_size holds the blocks of both",
        judge: displaced,
    },
    FindingRule {
        id: "U2",
        rank: Rank::Remark,
        signal: "operations of users during the build, of those before; and their p99",
        threshold: "below 80%, or twice as long, with blocks in the cache",
        origin: OWN,
        caveat: "the device and the processors are shared, too",
        advice: "the build takes processors from users: a lower parallel_degree leaves them more",
        judge: outrun,
    },
];

fn users(signals: &Signals) -> Option<&UsersFacts> {
    signals.run.as_ref()?.users.as_ref()
}

fn is_displaced(users: &UsersFacts) -> bool {
    let [before, during] = users.misses;
    during > MISSES_MIN && during > 2.0 * before
}

fn displaced(signals: &Signals) -> Option<Observed> {
    let users = users(signals).filter(|users| is_displaced(users))?;
    let [before, during] = users.misses;
    let evidence = format!(
        "{} of the blocks that users looked up came from disk, {} before the build; {} blocks lost their buffer; \
         reads took {} of the users' time",
        percent(during),
        percent(before),
        count(users.evicted),
        Nanos(users.read_ns)
    );
    let seen = Observed::new("The build displaces blocks that users need", evidence)
        .saves(users.read_ns)
        .proved_by(STUDY);
    let sort = signals.run.as_ref().and_then(|run| run.sort.as_ref());
    Some(match sort {
        Some(sort) if !sort.direct_writes => seen.advise("sort_direct_writes=true takes runs past the cache"),
        _ if users.scans_through_cache => {
            seen.advise("serial_direct_read=true takes the scan past the cache")
        }
        _ => seen,
    })
}

fn outrun(signals: &Signals) -> Option<Observed> {
    let users = users(signals).filter(|users| !is_displaced(users))?;
    let [before, during] = users.operations_per_s;
    let [p99_before, p99_during] = users.p99_ns;
    let slower = p99_before > 0 && p99_during as f64 > SLOWER * p99_before as f64;
    (before > 0.0 && (during < RATE_KEPT * before || slower)).then(|| {
        let evidence = format!(
            "{} operations a second, {} of the {} before; p99 {} after {} before; {} of the blocks came \
             from disk",
            count(during.round() as u64),
            percent(during / before),
            count(before.round() as u64),
            Nanos(p99_during),
            Nanos(p99_before),
            percent(users.misses[1])
        );
        Observed::new("Users keep their blocks and are slower: the build takes their processors", evidence)
    })
}
