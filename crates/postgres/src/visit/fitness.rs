//! Fitness of a server for a study: what it says of itself, and what its sessions show.
//!
//! Behind a pooler a session's settings, temporary files and processes are those of other sessions,
//! too. It is seen by two sessions, one after the other: a server starts a process for each, so the
//! second one's process is younger than the first session's end. A pooler gives it a used one.
//!
//! Rejected: `SHOW POOL_MODE`, which a pooler answers in its own database only.
//!
//! Limits: a pooler that opens a connection for each session, and never shares one, is not seen and
//! does no harm.

use super::local::Whereabouts;
use crate::PostgresError;
use crate::address::ServerAddress;
use crate::session::ServerSession;
use tokio_postgres::Row;

const OLDEST: i32 = 140_000;
const FACTS: &str = "select pg_catalog.current_setting('server_version'), \
                     pg_catalog.current_setting('server_version_num')::int, \
                     pg_catalog.pg_is_in_recovery(), \
                     pg_catalog.current_setting('default_transaction_read_only') = 'on', \
                     (select rolcreatedb or rolsuper from pg_catalog.pg_roles where rolname = current_user), \
                     current_user::text, \
                     pg_catalog.current_setting('is_superuser') = 'on'";
/// Process of a session with its start, and the time, in seconds.
const MEETING: &str = "select pg_catalog.pg_backend_pid(), (select extract(epoch from backend_start)::float8 \
                       from pg_catalog.pg_stat_activity where pid = pg_catalog.pg_backend_pid()), \
                       extract(epoch from pg_catalog.clock_timestamp())::float8, \
                       exists(select from pg_catalog.pg_stat_activity where pid = pg_catalog.pg_backend_pid())";
const DURING: &str = "the server is looked at";

/// A server's word about itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Facts {
    pub version: String,
    pub number: i32,
    in_recovery: bool,
    read_only: bool,
    may_create: bool,
    user: String,
    pub is_superuser: bool,
}

/// The process that serves a session, at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Meeting {
    pub pid: i32,
    /// True if pg_stat_activity has the process.
    listed: bool,
    /// Start of the process, in seconds since 1970; `None` if the role may not see it.
    pub started: Option<f64>,
    now: f64,
}

/// A server that is fit, with its place.
pub(super) struct Fit {
    pub facts: Facts,
    pub place: Whereabouts,
}

/// Reads a server; nothing is changed.
///
/// # Errors
/// If it does not answer or is unfit.
pub(super) fn require(address: &ServerAddress) -> Result<Fit, PostgresError> {
    let refused = |why: String| PostgresError::Unfit(format!("{address}: {why}"));
    let mut session = ServerSession::connect(address, "plumb visit")?;
    let before = meet(&mut session)?;
    drop(session);
    let mut session = ServerSession::connect(address, "plumb visit")?;
    let meetings = [before, meet(&mut session)?, meet(&mut session)?];
    if let Some(seen) = pooled(meetings) {
        return Err(refused(format!(
            "a pooler answers ({seen}), so that sessions are not the study's own; name the server's own address"
        )));
    }
    let rows = session.rows(DURING, FACTS, &[])?;
    let facts = rows.first().map(facts).ok_or_else(|| refused("no facts".to_string()))?;
    match refusal(&facts) {
        Some(why) => Err(refused(why)),
        // The session's process is looked for while it lives.
        None => Ok(Fit { facts, place: Whereabouts::of(meetings[2].pid, meetings[2].started) }),
    }
}

fn meet(session: &mut ServerSession<'_>) -> Result<Meeting, PostgresError> {
    let rows = session.rows(DURING, MEETING, &[])?;
    let met = rows.first().map(|row| Meeting {
        pid: row.try_get(0).unwrap_or_default(),
        started: row.try_get(1).unwrap_or_default(),
        now: row.try_get(2).unwrap_or_default(),
        listed: row.try_get(3).unwrap_or_default(),
    });
    met.ok_or_else(|| PostgresError::Unfit("the server has no process for the session".to_string()))
}

fn facts(row: &Row) -> Facts {
    let text = |column: usize| row.try_get::<_, String>(column).unwrap_or_default();
    let is = |column: usize| row.try_get::<_, bool>(column).unwrap_or_default();
    Facts {
        version: text(0),
        number: row.try_get(1).unwrap_or_default(),
        in_recovery: is(2),
        read_only: is(3),
        may_create: is(4),
        user: text(5),
        is_superuser: is(6),
    }
}

/// Returns how a pooler shows itself in two sessions: one meeting of the first, two of the second.
fn pooled([first, second, again]: [Meeting; 3]) -> Option<String> {
    if !second.listed {
        return Some(format!("pg_stat_activity has no process {} of the session", second.pid));
    }
    if second.pid != again.pid {
        return Some(format!(
            "two transactions of a session had the processes {} and {}",
            second.pid, again.pid
        ));
    }
    let is_older = second.started.is_some_and(|started| started <= first.now);
    is_older.then(|| format!("the process {} is older than its session", second.pid))
}

/// Returns why a study cannot use the server.
fn refusal(facts: &Facts) -> Option<String> {
    let Facts { version, number, in_recovery, read_only, may_create, user, is_superuser: _ } = facts;
    match () {
        () if *number < OLDEST => Some(format!("it is PostgreSQL {version}, expected 14 or later")),
        () if *in_recovery => {
            Some("it is in recovery, and a study makes a database; name its primary".to_string())
        }
        () if *read_only => Some(
            "default_transaction_read_only is on, and a study makes a database; name a user that may write"
                .to_string(),
        ),
        () if !*may_create => Some(format!(
            "{user} may not make a database; `alter role {user} createdb`, or name another user"
        )),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(pid: i32, started: f64, now: f64) -> Meeting {
        Meeting { pid, listed: true, started: Some(started), now }
    }

    #[test]
    fn a_pooler_is_known_by_processes_that_sessions_share() {
        // Answers of a server: each session has a process that began after the session before.
        let direct = [met(811, 100.0, 100.2), met(812, 100.3, 100.4), met(812, 100.3, 100.5)];
        assert_eq!(pooled(direct), None);
        // The same number again, for a process that is new.
        assert_eq!(pooled([direct[0], met(811, 100.3, 100.4), met(811, 100.3, 100.5)]), None);
        // pgbouncer, pool_mode = session and transaction: the process of the first session.
        let used = pooled([direct[0], met(811, 100.0, 100.4), met(811, 100.0, 100.5)]);
        assert_eq!(used.as_deref(), Some("the process 811 is older than its session"));
        let changed = pooled([direct[0], met(812, 100.3, 100.4), met(811, 100.0, 100.5)]);
        assert_eq!(changed.as_deref(), Some("two transactions of a session had the processes 812 and 811"));
        let unlisted = Meeting { listed: false, ..direct[1] };
        // A role other than the session's may not see the start, which says nothing.
        let hidden = Meeting { started: None, ..direct[1] };
        assert_eq!(pooled([direct[0], hidden, hidden]), None);
        assert!(pooled([direct[0], unlisted, unlisted]).is_some_and(|seen| seen.contains("no process 812")));
    }

    #[test]
    fn each_unfit_server_is_refused_with_its_cure() {
        let fit = Facts {
            version: "15.4".to_string(),
            number: 150_004,
            may_create: true,
            user: "me".to_string(),
            ..Facts::default()
        };
        assert_eq!(refusal(&fit), None);
        let why = |facts: Facts| refusal(&facts).expect("unfit");
        assert!(why(Facts { number: 130_009, ..fit.clone() }).contains("expected 14 or later"));
        assert!(why(Facts { in_recovery: true, ..fit.clone() }).contains("name its primary"));
        assert!(why(Facts { read_only: true, ..fit.clone() }).contains("name a user that may write"));
        assert!(why(Facts { may_create: false, ..fit }).contains("`alter role me createdb`"));
    }
}
