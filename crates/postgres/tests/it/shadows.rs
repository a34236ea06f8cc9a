//! A database whose owner has shadowed names of the catalog: none of them runs for plumb.

use crate::server::place;
use crate::targets::{levels, opening, study_on};
use crate::visits::{Host, packet};
use plumb_events::Cancel;
use plumb_postgres::address::ServerAddress;
use plumb_postgres::explain::{QueryRights, explain};
use plumb_postgres::session::Served;
use plumb_postgres::visit::{LeftJournal, ReloadRight, Visit, VisitTerms, VisitedTarget, left_behind};
use plumb_study::targets::{Preparation, Target};
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};

/// Makes a schema with a twin of each function, operator and view of the catalog that a session
/// could mean, and puts it first in the search_path of the database. Each twin notes that it ran.
const SHADOWS: &str = r#"
create table shadow_log(what text);
create schema evil;
create function evil.note(what text) returns void language plpgsql as
  $$ begin insert into public.shadow_log values (what); exception when others then null; end $$;
do $$ declare f record; body text; begin
  for f in select p.oid, p.proname, pg_get_function_identity_arguments(p.oid) as args, p.proretset,
      pg_get_function_result(p.oid) as result, p.pronargs
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = 'pg_catalog' and p.prokind = 'f' and p.proname in
      ('current_setting', 'set_config', 'pg_backend_pid', 'pg_is_in_recovery',
        'has_function_privilege', 'lower',
       'has_table_privilege', 'has_parameter_privilege', 'pg_reload_conf', 'pg_conf_load_time',
        'clock_timestamp',
       'pg_control_system', 'format', 'pg_stat_file', 'shobj_description', 'pg_cancel_backend',
        'starts_with',
       'current_database', 'make_interval', 'pg_table_size', 'version', 'unnest', 'to_jsonb',
        'pg_relation_size')
  loop
    begin
      if f.proretset or f.result like 'TABLE%' or f.args like '%OUT %' or f.args like
        '%VARIADIC%' then
        continue;
      end if;
      body := format('begin perform evil.note(%L); return pg_catalog.%I(%s); end', f.proname,
        f.proname,
        (select string_agg('$' || i, ', ') from generate_series(1, f.pronargs) i));
      execute format('create function evil.%I(%s) returns %s language plpgsql as %L', f.proname,
        f.args, f.result, body);
    exception when others then null;
    end;
  end loop;
  for f in select o.oprname, o.oprleft::regtype as l, o.oprright::regtype as r, p.proname as proc,
      o.oid, o.oprresult::regtype as result
    from pg_operator o join pg_proc p on p.oid = o.oprcode
    where o.oprname in ('=', '<>', '~~', '||', '>', '>=', '<', '-', '+', '*') and o.oprkind = 'b'
      and o.oprleft in ('text'::regtype, 'name'::regtype, 'int4'::regtype, 'int8'::regtype,
        'oid'::regtype,
        'timestamptz'::regtype, 'bool'::regtype)
      and o.oprright in ('text'::regtype, 'name'::regtype, 'int4'::regtype, 'int8'::regtype,
        'oid'::regtype,
        'timestamptz'::regtype, 'bool'::regtype)
  loop
    begin
      execute format('create function evil.op_%s(%s, %s) returns %s language plpgsql as %L',
        f.oid, f.l, f.r, f.result,
        format('begin perform evil.note(%L); return $1 operator(pg_catalog.%s) $2; end',
        f.oprname, f.oprname));
      execute format('create operator evil.%s (leftarg = %s, rightarg = %s,
        procedure = evil.op_%s)', f.oprname, f.l, f.r, f.oid);
    exception when others then null;
    end;
  end loop;
  for f in select c.relname from pg_class c where c.relnamespace = 'pg_catalog'::regnamespace
      and c.relname in ('pg_settings', 'pg_database', 'pg_roles', 'pg_stat_activity',
        'pg_file_settings', 'pg_proc',
        'pg_stat_database', 'pg_index', 'pg_extension', 'pg_available_extensions', 'pg_type',
        'pg_range', 'pg_namespace')
  loop
    execute format('create view evil.%I as select pg_catalog.version() as nothing', f.relname);
  end loop;
end $$;
alter database postgres set search_path = evil, pg_catalog, public;
"#;

#[test]
fn no_shadow_runs_for_a_check_a_study_a_plan_or_an_undo() {
    let Some(host) = Host::start() else { return };
    host.run(SHADOWS);
    let address = host.address("");
    // A session with the database's path shows that the shadows do run.
    host.shown("select current_setting('port') where current_database() = 'postgres'::text");
    let ran = seen(&address);
    assert!(ran.contains("current_setting") && ran.contains('='), "{ran}");
    let none_ran = |during: &str| assert_eq!(seen(&address), "", "{during}");

    let state = tempfile::tempdir().expect("a directory");
    let terms = || VisitTerms { reload: ReloadRight::Allowed, journals: Some(state.path().to_path_buf()) };
    let study = study_on("", "2K", &levels("max_wal_size", "2GB", "3GB"));
    let visit = Visit::of(&address, terms()).unwrap_or_else(|error| panic!("{error}"));
    visit.intentions(&study).unwrap_or_else(|error| panic!("{error}"));
    none_ran("--check");
    let refused = study_on("", "1K", &levels("shared_buffers", "16MB", "32MB"));
    visit.intentions(&refused).expect_err("it needs a restart");
    none_ran("a refused study");

    let (place, cancel) = (place(), Cancel::default());
    let mut target = VisitedTarget::open(&study, visit, opening(place.path(), &cancel)).expect("a target");
    let arms: Vec<_> = (0..2).map(|level| study.arm_settings(&[level])).collect();
    let preparation = Preparation { arms: &arms, expects_same: false, name: "plumb-study-it" };
    target.prepare(&preparation).unwrap_or_else(|error| panic!("{error}"));
    let journal = std::fs::read_dir(state.path()).expect("a directory").flatten().map(|entry| entry.path());
    let journal =
        journal.into_iter().find(|path| path.to_string_lossy().contains("undo-")).expect("a journal");
    let kept = place.path().join("kept");
    std::fs::copy(&journal, &kept).expect("a copy");
    target.run(&arms[0], &cancel).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(target.end(), Vec::<String>::new());
    drop(target);
    none_ran("a study");

    std::fs::copy(&kept, &journal).expect("a copy");
    assert!(left_behind(&address, state.path()).is_some());
    none_ran("plans, the look at what is left");
    let undo = LeftJournal::take(&journal).and_then(|left| left.at(&address));
    undo.and_then(|undo| undo.carry_out()).unwrap_or_else(|error| panic!("{error}"));
    none_ran("undo");
    explain(&address, "select 1", &[vec![("work_mem".into(), "1MB".into())]], QueryRights::Write)
        .expect("a plan");
    none_ran("plans");
}

/// Returns the shadows that ran since the last time, by a session of plumb's own.
fn seen(address: &ServerAddress) -> String {
    let mut client = address.open("test", Box::new(|_| {})).expect("a session");
    let ran = "select coalesce(string_agg(distinct what, ' '), '') from public.shadow_log";
    let ran = client.query_one(ran, &[]).expect("a row").get(0);
    client.batch_execute("truncate public.shadow_log").expect("it is emptied");
    ran
}

#[test]
fn the_path_of_a_role_or_a_url_is_not_that_of_plumbs_sessions() {
    let Some(host) = Host::start() else { return };
    host.run("alter role all set search_path = public");
    let address = host.address("-c search_path=public -c work_mem=5MB");
    let mut client = address.open("test", Box::new(|_| {})).expect("a session");
    let mut shown = |what: &str| -> String {
        client.batch_execute("reset search_path").expect("a reset");
        client.query_one(&format!("select pg_catalog.current_setting('{what}')"), &[]).expect("a row").get(0)
    };
    assert_eq!(shown("search_path"), "pg_catalog");
    assert_eq!(shown("work_mem"), "5MB", "the other options of the URL hold");
}

/// A pooler that drops the options of a start, as pgbouncer does with `ignore_startup_parameters`.
#[test]
fn a_pooler_that_drops_the_path_is_named() {
    let Some(host) = Host::start() else { return };
    let place = place();
    let pooler = UnixListener::bind(place.path().join(".s.PGSQL.6432")).expect("a socket");
    let server = host.cluster.data().join(".s.PGSQL.5432");
    std::thread::spawn(move || {
        for client in pooler.incoming() {
            let (mut client, mut server) =
                (client.expect("a client"), UnixStream::connect(&server).expect("a server"));
            let hello = packet(&mut client, 0).expect("a start");
            let text = String::from_utf8(hello[8..].to_vec()).expect("text");
            let words: Vec<&str> = text.split('\0').collect();
            let kept = words.chunks(2).filter(|pair| pair[0] != "options" && !pair[0].is_empty());
            let kept: String = kept.map(|pair| format!("{}\0{}\0", pair[0], pair[1])).collect();
            let length = u32::try_from(kept.len() + 9).expect("short").to_be_bytes();
            let start = [&length, &hello[4..8], kept.as_bytes(), b"\0"].concat();
            server.write_all(&start).expect("a server");
            let (mut up, mut from) =
                (server.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
            std::thread::spawn(move || std::io::copy(&mut from, &mut up));
            std::thread::spawn(move || std::io::copy(&mut server, &mut client));
        }
    });
    let user = host.shown("select current_user::text");
    let url = format!("postgres://{user}@/postgres?host={}&port=6432", place.path().display());
    let address = ServerAddress::parse(&url, &|_| None).expect("an address");
    let error = Visit::of(&address, VisitTerms::default()).err().expect("refused").to_string();
    assert!(
        error.contains("a pooler drops it: name the server's own address") && !error.contains('\n'),
        "{error}"
    );
    // The session of a user's query asks for no path.
    explain(&address, "select 1", &[Vec::new()], QueryRights::Read).expect("a plan");
}
