//! A running server by its address: plans of a query, and a study in a database of its own.

use crate::server::{PLAIN, installed, place};
use crate::strangers::relay;
use crate::targets::{levels, opening, study_on};
use plumb_events::Cancel;
use plumb_postgres::address::ServerAddress;
use plumb_postgres::cluster::{Cluster, RunningServer};
use plumb_postgres::explain::{QueryRights, explain};
use plumb_postgres::visit::{Visit, VisitTerms, VisitedTarget};
use plumb_record::{Fact, Held, Record, Seen};
use plumb_study::definition::Study;
use plumb_study::targets::{NoRecord, Preparation, Target};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use tempfile::TempDir;

/// A server that plays that of others. The fields are dropped in this order.
pub struct Host {
    pub server: RunningServer,
    pub cluster: Cluster,
    _place: TempDir,
}

impl Host {
    pub fn start() -> Option<Host> {
        Host::with(&[], |_| {})
    }

    /// Starts a server with options, after a change of its data directory.
    pub fn with(options: &[(&str, &str)], change: fn(&Path)) -> Option<Host> {
        let installation = installed()?;
        let place = place();
        let cluster = Cluster::create(place.path(), "v", &installation, &PLAIN).expect("a cluster");
        change(&cluster.data());
        let server = cluster.borrowed().start(&pairs(options), &Cancel::default()).expect("it starts");
        Some(Host { server, cluster, _place: place })
    }

    /// Returns its address with further options of sessions.
    pub fn address(&self, options: &str) -> ServerAddress {
        let options = options.replace(' ', "%20").replace('=', "%3D");
        let url = format!("postgres:///postgres?host={}&options={options}", self.cluster.data().display());
        ServerAddress::parse(&url, &|_| None).unwrap_or_else(|error| panic!("{error}"))
    }

    pub fn run(&self, statements: &str) {
        let mut client = self.server.connect("test", |_| {}).expect("a session");
        client.batch_execute(statements).expect("it is done");
    }

    pub fn shown(&self, statement: &str) -> String {
        let mut client = self.server.connect("test", |_| {}).expect("a session");
        client.query_one(statement, &[]).expect("a row").get(0)
    }

    /// Returns the text of the file that ALTER SYSTEM writes.
    pub fn altered(&self) -> String {
        let text = std::fs::read_to_string(self.cluster.data().join("postgresql.auto.conf")).expect("a file");
        text.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
    }

    /// True if a superuser can give the right to ALTER SYSTEM.
    pub fn server_has_grants(&self) -> bool {
        self.shown("show server_version_num").as_str() >= "150000"
    }

    pub fn databases(&self) -> i64 {
        let mut client = self.server.connect("test", |_| {}).expect("a session");
        client.query_one("select count(*) from pg_database", &[]).expect("a row").get(0)
    }
}

fn visit(host: &Host, options: &str) -> Visit {
    let visit = Visit::of(&host.address(options), VisitTerms::default());
    visit.unwrap_or_else(|error| panic!("{error}"))
}

fn statistic(record: &Record, name: &str) -> u64 {
    let found = record.statistics.iter().filter(|row| row.name == name).map(|row| row.total);
    let found: Vec<u64> = found.collect();
    assert_eq!(found.len(), 1, "{name}: {:?}", record.statistics);
    found[0]
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
    let visit = visit(&host, "");
    let intentions = visit.intentions(&study).expect("a study of sessions").join("\n");
    assert!(intentions.contains("make a database plumb_"), "{intentions}");
    assert!(
        intentions
            .contains("set in its own sessions: max_parallel_maintenance_workers, maintenance_work_mem")
    );
    let (place, cancel) = (place(), Cancel::default());
    let mut target = VisitedTarget::open(&study, visit, opening(place.path(), &cancel)).expect("a target");
    let environment = target.environment().expect("an environment");
    assert!(
        environment.target.ends_with(", on this machine, receipts: outside and inside"),
        "{environment:?}"
    );
    let between = environment.between_runs.expect("what a visit does");
    assert!(between.contains("the server ran on"), "{between}");
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
        let outside =
            |receipt: &plumb_record::Receipt| receipt.held == Held::Held && receipt.seen == Seen::Outside;
        assert!(record.receipts.iter().all(outside), "{:?}", record.receipts);
        assert!(record.header.db_cpu_ns.is_some_and(|cpu| cpu > 0), "its processes are seen");
        assert!(record.background_events.iter().any(|event| event.event == "CheckpointerMain"), "{record:?}");
        temporary.push(statistic(&record, "temporary file bytes"));
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
        let error =
            Visit::of(&host.address(options), VisitTerms::default()).err().expect("refused").to_string();
        assert!(error.starts_with("postgres://") && !error.contains('\n'), "{error}");
        error
    };
    assert!(refused("-c default_transaction_read_only=on").contains("default_transaction_read_only is on"));
    assert!(refused("-c role=weak").contains("weak may not make a database; `alter role weak createdb`"));
    let visit = visit(&host, "");
    let of = |setting: &str, [one, other]: [&str; 2]| study_on("", "1K", &levels(setting, one, other));
    let refused = |study: &Study| {
        let error = visit.intentions(study).expect_err("no session sets it").to_string();
        assert!(error.starts_with("postgres://") && !error.contains('\n'), "{error}");
        error
    };
    assert!(refused(&of("shared_buffers", ["16MB", "32MB"])).contains("plumb restarts no server of others"));
    assert!(refused(&of("max_wal_size", ["1GB", "2GB"])).contains("--allow-reload allows that"));
    assert!(refused(&of("server", ["/a", "/b"])).contains("leave --target out"));
    let large = study_on("", "10G", &levels("maintenance_work_mem", "64MB", "128MB"));
    let error = refused(&large);
    assert!(error.contains("are needed for table, index, sort and log, and"), "{error}");
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

#[test]
fn a_server_whose_processes_are_not_seen_is_told_by_its_own_word() {
    let Some(host) = Host::start() else { return };
    // Numbers that no process of this machine has, as those of another machine.
    let port = relay(host.cluster.data().join(".s.PGSQL.5432"), |_| {
        let mut own = Vec::new();
        Box::new(move |bytes| {
            // The server's process is part of its greeting.
            let key = bytes.windows(5).position(|head| head == b"K\0\0\0\x0C");
            if let Some(at) = key.filter(|_| own.is_empty()) {
                own = [&[0, 0, 0, 4], &bytes[at + 5..at + 9]].concat();
            }
            let found: Vec<usize> =
                bytes.windows(8).enumerate().filter(|(_, field)| *field == own).map(|(at, _)| at).collect();
            found.into_iter().for_each(|at| bytes[at + 4] += 6);
        })
    });
    let user = host.shown("select current_user::text");
    let url = format!("postgres://{user}@127.0.0.1:{port}/postgres");
    let address = ServerAddress::parse(&url, &|_| None).expect("an address");
    let study = study_on("", "50K", &levels("maintenance_work_mem", "1MB", "16MB"));
    let visit = Visit::of(&address, VisitTerms::default()).unwrap_or_else(|error| panic!("{error}"));
    let intentions = visit.intentions(&study).expect("a study of sessions").join("\n");
    assert!(intentions.contains("of its disk, whose free room is not seen from here"), "{intentions}");
    let (place, cancel) = (place(), Cancel::default());
    let mut target = VisitedTarget::open(&study, visit, opening(place.path(), &cancel)).expect("a target");
    let described = target.environment().expect("an environment").target;
    assert!(
        described.ends_with(", receipts: inside only (no process of this machine is its session's)"),
        "{described}"
    );
    let arms: Vec<_> = (0..2).map(|level| study.arm_settings(&[level])).collect();
    let preparation = Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" };
    target.prepare(&preparation).unwrap_or_else(|error| panic!("{error}"));
    // Another database is at work meanwhile. Sessions publish their time when they end.
    let done = AtomicBool::new(false);
    let record = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Relaxed) {
                host.run("select pg_sleep(0.02)");
            }
        });
        let record = target.run(&arms[0], &cancel);
        done.store(true, Relaxed);
        record.unwrap_or_else(|error| panic!("{error:?}"))
    });
    let circumstances: Vec<_> = record.doubtful().map(|found| (found.fact, found.evidence.clone())).collect();
    assert!(
        circumstances.len() == 1
            && circumstances[0].0 == Fact::Clients
            && circumstances[0].1.contains("other databases"),
        "{circumstances:?}"
    );
    let inside = |receipt: &plumb_record::Receipt| receipt.held == Held::Held && receipt.seen == Seen::Inside;
    assert!(record.receipts.iter().all(inside), "{:?}", record.receipts);
    assert_eq!(record.header.db_time_ns, None, "processes are not seen");
    assert!(statistic(&record, "temporary file bytes") > 0);
}

#[test]
fn a_server_in_recovery_is_refused() {
    let standby = |data: &Path| std::fs::write(data.join("standby.signal"), "").expect("a file");
    let Some(host) = Host::with(&[], standby) else { return };
    let error = Visit::of(&host.address(""), VisitTerms::default()).err().expect("refused").to_string();
    assert!(error.ends_with("it is in recovery, and a study makes a database; name its primary"), "{error}");
}

#[test]
fn a_pooler_is_refused() {
    let Some(host) = Host::start() else { return };
    let place = place();
    let socket = place.path().join(".s.PGSQL.6432");
    let pooler = UnixListener::bind(&socket).expect("a socket");
    let server = host.cluster.data().join(".s.PGSQL.5432");
    std::thread::spawn(move || pool(&pooler, &server));
    let url = format!("postgres:///postgres?host={}&port=6432", place.path().display());
    let address = ServerAddress::parse(&url, &|_| None).expect("an address");
    let error = Visit::of(&address, VisitTerms::default()).err().expect("refused").to_string();
    assert!(
        error.contains("a pooler answers (the process ") && error.contains("is older than its session"),
        "{error}"
    );
    assert!(!error.contains('\n'), "{error}");
}

/// A pooler that has one session of a server for one client after the other.
fn pool(pooler: &UnixListener, server: &Path) {
    let mut server = UnixStream::connect(server).expect("a server");
    let mut greeting = Vec::new();
    for client in pooler.incoming() {
        let mut client = client.expect("a client");
        let hello = packet(&mut client, 0).expect("a start");
        if greeting.is_empty() {
            server.write_all(&hello).expect("a server");
            greeting = until_ready(&mut server);
        }
        client.write_all(&greeting).expect("a client");
        while let Ok(message) = packet(&mut client, 1) {
            if message[0] == b'X' {
                break;
            }
            server.write_all(&message).expect("a server");
            if matches!(message[0], b'Q' | b'S') {
                client.write_all(&until_ready(&mut server)).expect("a client");
            }
        }
    }
}

/// Reads a message: its kind, if it has one, and a length that includes itself.
pub fn packet(from: &mut UnixStream, kind: usize) -> std::io::Result<Vec<u8>> {
    let mut message = vec![0; kind + 4];
    from.read_exact(&mut message)?;
    let length = u32::from_be_bytes(message[kind..].try_into().expect("four bytes"));
    message.resize(kind + length as usize, 0);
    from.read_exact(&mut message[kind + 4..])?;
    Ok(message)
}

/// Reads all messages up to the one that the server is ready.
fn until_ready(server: &mut UnixStream) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let message = packet(server, 1).expect("an answer");
        all.extend_from_slice(&message);
        if message[0] == b'Z' {
            return all;
        }
    }
}
