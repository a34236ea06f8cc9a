//! A running server by its address: plans of a query, and a study in a database of its own.

use crate::server::{PLAIN, installed, place};
use crate::targets::{levels, opening, study_on};
use plumb_events::Cancel;
use plumb_postgres::address::ServerAddress;
use plumb_postgres::cluster::{Cluster, RunningServer};
use plumb_postgres::explain::{QueryRights, explain};
use plumb_postgres::visit::{Visit, VisitedTarget};
use plumb_record::{Held, Seen};
use plumb_study::targets::{NoRecord, Preparation, Target};
use tempfile::TempDir;

/// A server that plays that of others. The fields are dropped in this order.
struct Host {
    server: RunningServer,
    cluster: Cluster,
    _place: TempDir,
}

impl Host {
    fn start() -> Option<Host> {
        let installation = installed()?;
        let place = place();
        let cluster = Cluster::create(place.path(), "v", &installation, &PLAIN).expect("a cluster");
        let server = cluster.borrowed().start(&[], &Cancel::default()).expect("it starts");
        Some(Host { server, cluster, _place: place })
    }

    /// Returns its address with further options of sessions.
    fn address(&self, options: &str) -> ServerAddress {
        let options = options.replace(' ', "%20").replace('=', "%3D");
        let url = format!("postgres:///postgres?host={}&options={options}", self.cluster.data().display());
        ServerAddress::parse(&url, &|_| None).unwrap_or_else(|error| panic!("{error}"))
    }

    fn run(&self, statements: &str) {
        let mut client = self.server.connect("test", |_| {}).expect("a session");
        client.batch_execute(statements).expect("it is done");
    }

    fn databases(&self) -> i64 {
        let mut client = self.server.connect("test", |_| {}).expect("a session");
        client.query_one("select count(*) from pg_database", &[]).expect("a row").get(0)
    }
}

fn pairs(given: &[(&str, &str)]) -> Vec<(String, String)> {
    given.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn a_query_is_explained_with_each_group_of_settings_and_changes_nothing() {
    let Some(host) = Host::start() else { return };
    host.run("create table t as select id, id % 10 as n from generate_series(1, 1000) as id; analyze t");
    let address = host.address("");
    let explained = |query: &str, arms: &[&[(&str, &str)]], rights| {
        let arms: Vec<_> = arms.iter().map(|arm| pairs(arm)).collect();
        explain(&address, query, &arms, rights).map_err(|error| error.to_string())
    };
    let join = "select * from t join t as u on u.id = t.id";
    let plans = explained(
        join,
        &[&[], &[("enable_hashjoin", "off"), ("enable_mergejoin", "off")]],
        QueryRights::Read,
    );
    let plans = plans.expect("two plans");
    assert!(plans[0].contains("\"Hash Join\"") && plans[0].contains("\"Shared Hit Blocks\""), "{}", plans[0]);
    assert!(plans[1].contains("\"Nested Loop\"") && plans[1].contains("enable_hashjoin"), "{}", plans[1]);

    let refused = |query: &str, arm: &[(&str, &str)]| {
        let error = explained(query, &[arm], QueryRights::Read).expect_err("refused");
        assert!(error.starts_with("postgres://") && !error.contains('\n'), "{error}");
        error
    };
    let error = refused("delete from t", &[]);
    assert!(error.contains("read-only transaction; --write lets a query write"), "{error}");
    assert!(refused("select 1; drop table t", &[]).contains("one statement"));
    assert!(refused("select nothing", &[]).contains("the query failed: column \"nothing\" does not exist"));
    assert!(refused("select 1", &[("no_such", "1")]).contains("SET no_such = 1 failed: "));
    assert!(refused("select pg_sleep(60)", &[("statement_timeout", "10ms")]).contains("statement_timeout"));
    explained("delete from t", &[&[]], QueryRights::Write).expect("it is rolled back");
    host.run("do $$ begin assert (select count(*) from t) = 1000; end $$");
}

#[test]
fn a_study_has_a_database_of_its_own_and_drops_it() {
    let Some(host) = Host::start() else { return };
    let before = host.databases();
    let levels = levels("maintenance_work_mem", "1MB", "16MB");
    let study = study_on("", "50K", &levels);
    let visit = Visit::of(&host.address("")).unwrap_or_else(|error| panic!("{error}"));
    let intentions = visit.intentions(&study).expect("a study of sessions").join("\n");
    assert!(intentions.contains("make a database plumb_"), "{intentions}");
    assert!(
        intentions
            .contains("set in its own sessions: max_parallel_maintenance_workers, maintenance_work_mem")
    );
    let (place, cancel) = (place(), Cancel::default());
    let mut target = VisitedTarget::open(&study, visit, opening(place.path(), &cancel)).expect("a target");
    let environment = target.environment().expect("an environment");
    assert!(environment.target.ends_with(", receipts: inside only"), "{}", environment.target);
    let arms: Vec<_> = (0..2).map(|level| study.arm_settings(&[level])).collect();
    let preparation = Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" };
    target.prepare(&preparation).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(host.databases(), before + 1);
    let mut temporary = Vec::new();
    for arm in &arms {
        target.ready(arm).expect("ready");
        // Another database is used meanwhile.
        host.run("select 1");
        let record = target.run(arm, &cancel).unwrap_or_else(|error| panic!("{error:?}"));
        assert!(
            record.checks.len() == 2 && record.checks.iter().all(|check| check.passed),
            "{:?}",
            record.checks
        );
        let inside =
            |receipt: &plumb_record::Receipt| receipt.held == Held::Held && receipt.seen == Seen::Inside;
        assert!(record.receipts.iter().all(inside), "{:?}", record.receipts);
        assert_eq!(record.header.db_time_ns, None, "processes are not seen");
        temporary.push(record.statistics[0].total);
    }
    assert!(temporary[0] > 0 && temporary[1] == 0, "{temporary:?}");
    let mut refused = arms[0].clone();
    refused[1].value = "1kB".to_string();
    let error = target.run(&refused, &cancel).expect_err("out of range");
    let NoRecord::Failed(failure) = error else { panic!("{error:?}") };
    assert!(failure.why.contains("maintenance_work_mem"), "{failure:?}");
    cancel.request();
    assert!(matches!(target.run(&arms[1], &cancel), Err(NoRecord::Interrupted)));
    drop(target);
    assert_eq!(host.databases(), before, "after an interrupt, too");
}

#[test]
fn a_server_or_a_study_that_does_not_fit_is_refused_before_anything_is_made() {
    let Some(host) = Host::start() else { return };
    host.run("create role weak");
    let before = host.databases();
    let refused = |options: &str| {
        let error = Visit::of(&host.address(options)).err().expect("refused").to_string();
        assert!(error.starts_with("postgres://") && !error.contains('\n'), "{error}");
        error
    };
    assert!(refused("-c default_transaction_read_only=on").contains("default_transaction_read_only is on"));
    assert!(refused("-c role=weak").contains("weak may not make a database; `alter role weak createdb`"));
    let visit = Visit::of(&host.address("")).expect("a server");
    let of = |setting: &str, [one, other]: [&str; 2]| study_on("", "1K", &levels(setting, one, other));
    for (setting, values) in [("shared_buffers", ["16MB", "32MB"]), ("max_wal_size", ["1GB", "2GB"])] {
        let error = visit.intentions(&of(setting, values)).expect_err("no session sets it").to_string();
        assert!(error.contains("takes settings of a session alone") && !error.contains('\n'), "{error}");
    }
    let same = of("maintenance_work_mem", ["64MB", "65536kB"]);
    let (place, cancel) = (place(), Cancel::default());
    let mut target = VisitedTarget::open(&same, visit, opening(place.path(), &cancel)).expect("a target");
    let arms: Vec<_> = (0..2).map(|level| same.arm_settings(&[level])).collect();
    let preparation = Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" };
    let error = target.prepare(&preparation).expect_err("one treatment").to_string();
    assert!(error.contains("have the same effect"), "{error}");
    drop(target);
    assert_eq!(host.databases(), before);
}
