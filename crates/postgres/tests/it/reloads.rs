//! Settings of a server of others that need a reload: changed, put back, and left by a kill.

use crate::server::place;
use crate::targets::{levels, opening, study_on};
use crate::visits::Host;
use plumb_events::Cancel;
use plumb_postgres::address::ServerAddress;
use plumb_postgres::visit::{LeftJournal, ReloadRight, Undo, Visit, VisitTerms, VisitedTarget};
use plumb_record::Held;
use plumb_study::definition::Study;
use plumb_study::targets::{NoRecord, Preparation, Target};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A server, and the directory of journals. The fields are dropped in this order.
struct Changed {
    host: Host,
    state: TempDir,
    place: TempDir,
    cancel: Cancel,
}

impl Changed {
    fn start(options: &[(&str, &str)]) -> Option<Changed> {
        let host = Host::with(options, |_| {})?;
        let state = tempfile::tempdir().expect("a directory");
        Some(Changed { host, state, place: place(), cancel: Cancel::default() })
    }

    fn visit(&self, options: &str) -> Result<Visit, String> {
        let journals = Some(self.state.path().to_path_buf());
        let terms = VisitTerms { reload: ReloadRight::Allowed, journals };
        Visit::of(&self.host.address(options), terms).map_err(|error| error.to_string())
    }

    fn target(&self, study: &Study) -> VisitedTarget<'_> {
        let visit = self.visit("").unwrap_or_else(|error| panic!("{error}"));
        VisitedTarget::open(study, visit, opening(self.place.path(), &self.cancel))
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state.path()).expect("a directory");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        let is_journal = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"undo-"))
        };
        paths.filter(is_journal).collect()
    }

    fn size(&self) -> String {
        self.host.shown("show max_wal_size")
    }

    fn undo(&self, path: &Path) -> Result<Undo, String> {
        let left = LeftJournal::take(path).map_err(|error| error.to_string())?;
        let address = ServerAddress::parse(left.address(), &|_| None).expect("an address");
        left.at(&address).map_err(|error| error.to_string())
    }
}

fn sizes() -> Study {
    study_on("", "5K", &levels("max_wal_size", "2GB", "3GB"))
}

fn arms(study: &Study) -> Vec<Vec<plumb_study::vocabulary::Assignment>> {
    (0..2).map(|level| study.arm_settings(&[level])).collect()
}

fn prepare(target: &mut VisitedTarget<'_>, study: &Study) -> Result<(), String> {
    let preparation = Preparation { arms: &arms(study), expects_same: false, name: "plumb-study-it" };
    target.prepare(&preparation).map_err(|error| error.to_string())
}

#[test]
fn values_are_noted_set_checked_and_put_back() {
    let Some(changed) = Changed::start(&[]) else { return };
    changed.host.run("alter system set max_wal_size = '1536MB'");
    changed.host.run("select pg_reload_conf()");
    let (study, before) = (sizes(), changed.host.altered());
    let arms = arms(&study);
    let intentions =
        changed.visit("").and_then(|visit| visit.intentions(&study).map_err(|error| error.to_string()));
    let intentions = intentions.expect("a study").join("\n");
    assert!(
        intentions.contains(
            "ALTER SYSTEM SET max_wal_size = 2GB, 3GB in turn, with a reload; 1536MB again at the end"
        ),
        "{intentions}"
    );
    let mut target = changed.target(&study);
    assert!(changed.journals().is_empty() && changed.size() == "1536MB", "nothing is changed yet");
    prepare(&mut target, &study).expect("prepared");
    let journals = changed.journals();
    let text = fs::read_to_string(&journals[0]).expect("a journal");
    assert!(text.contains("1536MB") && text.contains("\"2GB\",\"3GB\""), "{text}");
    for (arm, size) in arms.iter().zip(["2GB", "3GB"]) {
        let record = target.run(arm, &changed.cancel).unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(changed.size(), size);
        let receipt = record.receipts.iter().find(|receipt| receipt.setting == "max_wal_size");
        let receipt = receipt.expect("a receipt");
        assert!(
            receipt.held == Held::Held && receipt.evidence.contains("by configuration file"),
            "{receipt:?}"
        );
        let log = record.statistics.iter().find(|row| row.name == "redo size").expect("a statistic");
        assert!(log.total > 0, "an index build is logged: {log:?}");
    }
    // A change that another writes between two runs is not loaded.
    let conf = changed.host.cluster.data().join("postgresql.conf");
    let text = fs::read_to_string(&conf).expect("a file");
    fs::write(&conf, format!("{text}\nwork_mem = 5MB\n")).expect("a file");
    let NoRecord::Failed(failure) = target.run(&arms[0], &changed.cancel).expect_err("refused") else {
        panic!("a failure")
    };
    assert!(failure.why.contains("has work_mem = 5MB, and 4096kB is in force"), "{failure:?}");
    fs::write(&conf, format!("{text}\nno_such_setting = 1\n")).expect("a file");
    let NoRecord::Failed(failure) = target.run(&arms[0], &changed.cancel).expect_err("refused") else {
        panic!("a failure")
    };
    assert!(failure.why.contains("the server loads no file until that is mended"), "{failure:?}");
    fs::write(&conf, text).expect("a file");
    assert_eq!(target.end(), Vec::<String>::new());
    assert_eq!((changed.size().as_str(), changed.host.altered()), ("1536MB", before));
    assert!(changed.journals().is_empty());
    drop(target);
    assert_eq!(changed.host.databases(), 3);
}

#[test]
fn a_target_that_is_dropped_puts_back_what_no_one_had_set() {
    let Some(changed) = Changed::start(&[]) else { return };
    let (study, before) = (sizes(), changed.size());
    let mut target = changed.target(&study);
    prepare(&mut target, &study).expect("prepared");
    let second = changed.visit("").err().expect("one study at a time");
    assert!(second.contains("the study that made this journal is running"), "{second}");
    assert!(changed.host.altered().contains("max_wal_size"));
    drop(target);
    assert_eq!((changed.size(), changed.host.altered()), (before, String::new()));
    assert!(changed.journals().is_empty());
}

#[test]
fn what_a_killed_study_left_is_put_back_by_the_next_one_and_by_its_journal() {
    let Some(changed) = Changed::start(&[]) else { return };
    let (study, before) = (sizes(), changed.size());
    let mut target = changed.target(&study);
    prepare(&mut target, &study).expect("prepared");
    let path = changed.journals().remove(0);
    let kept = changed.place.path().join("kept");
    fs::copy(&path, &kept).expect("a copy");
    drop(target);
    // The state after SIGKILL: a value of the study, and a journal that no process holds.
    let kill = || {
        changed.host.run("alter system set max_wal_size = '3GB'");
        changed.host.run("select pg_reload_conf()");
        fs::copy(&kept, &path).expect("a copy");
    };
    kill();
    let undo = changed.undo(&path).expect("a journal");
    assert_eq!(undo.intentions().expect("two lines")[0], "ALTER SYSTEM RESET max_wal_size");
    assert_eq!(undo.carry_out().expect("it is done"), Vec::<String>::new());
    assert_eq!((changed.size(), changed.host.altered()), (before.clone(), String::new()));
    assert!(!path.exists());
    // Twice is harmless, and the same by another copy.
    let undo = changed.undo(&kept).expect("a journal");
    assert_eq!(undo.intentions().expect("two lines")[0], "leave max_wal_size as it is: not set");
    drop(undo);
    kill();
    let mut next = changed.target(&study);
    let visit = changed.visit("").err().expect("the journal is held by the visit");
    assert!(visit.contains("is running"), "{visit}");
    prepare(&mut next, &study).expect("prepared");
    assert_eq!(next.end(), Vec::<String>::new());
    drop(next);
    assert_eq!((changed.size(), changed.host.altered()), (before, String::new()));
    assert!(changed.journals().is_empty());
}

#[test]
fn one_process_changes_the_settings_of_a_server_whatever_its_journals() {
    let Some(changed) = Changed::start(&[]) else { return };
    let study = sizes();
    let mut target = changed.target(&study);
    // The session of a study of another user, or on another machine.
    let other =
        changed.host.server.connect("plumb reload by process 1, 01234567", |_| {}).expect("a session");
    let busy = |error: String| {
        assert!(
            error.contains("another study changes settings of this server, in the session plumb reload by"),
            "{error}"
        );
        assert!(!error.contains('\n'), "{error}");
    };
    busy(prepare(&mut target, &study).expect_err("two at once"));
    drop(target);
    let visit = changed.visit("").unwrap_or_else(|error| panic!("{error}"));
    busy(visit.intentions(&study).expect_err("two at once").to_string());
    assert!(changed.journals().is_empty() && changed.host.altered().is_empty());
    drop(other);
}

#[test]
fn a_value_that_another_sets_meanwhile_stays() {
    let Some(changed) = Changed::start(&[]) else { return };
    let study = sizes();
    let mut target = changed.target(&study);
    prepare(&mut target, &study).expect("prepared");
    changed.host.run("alter system set max_wal_size = '7GB'");
    let error = target.run(&arms(&study)[0], &changed.cancel).expect_err("it is no treatment");
    let NoRecord::Failed(failure) = error else { panic!("{error:?}") };
    assert!(failure.why.contains("max_wal_size was set to 7GB meanwhile, expected 3GB"), "{failure:?}");
    let said = target.end();
    assert_eq!(
        said,
        [
            "max_wal_size stays 7GB: it was set meanwhile by another, and is none of the study's values (2GB, 3GB)"
        ]
    );
    assert_eq!(changed.size(), "7GB");
    assert!(changed.journals().is_empty());
}

#[test]
fn a_journal_of_another_server_changes_nothing() {
    let (Some(changed), Some(other)) = (Changed::start(&[]), Changed::start(&[])) else { return };
    let study = sizes();
    let mut target = changed.target(&study);
    prepare(&mut target, &study).expect("prepared");
    let kept = changed.place.path().join("kept");
    fs::copy(&changed.journals()[0], &kept).expect("a copy");
    let left = LeftJournal::take(&kept).expect("a journal");
    let elsewhere = left.at(&other.host.address("")).expect_err("another").to_string();
    assert!(
        elsewhere.contains("it is of system ") && elsewhere.contains("name its server: --target"),
        "{elsewhere}"
    );
    assert!(!elsewhere.contains('\n'), "{elsewhere}");
    // A torn one.
    let text = fs::read_to_string(&kept).expect("a journal");
    fs::write(&kept, &text[..text.len() / 2]).expect("a file");
    let torn = changed.undo(&kept).expect_err("torn");
    assert!(torn.contains("it is no whole undo journal"), "{torn}");
}

/// Writes a journal with another value, and its right hash.
fn forge(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("a journal");
    let content = text.lines().next().expect("a line").replace(from, to);
    assert!(!text.starts_with(&content), "{text}");
    let hash = plumb_units::hex(&Sha256::digest(content.as_bytes()));
    fs::write(path, format!("{content}\n{hash}\n")).expect("a file");
}

#[test]
fn a_value_that_only_the_journal_says_is_not_blamed_on_another_file() {
    let Some(changed) = Changed::start(&[]) else { return };
    let study = sizes();
    let mut target = changed.target(&study);
    prepare(&mut target, &study).expect("prepared");
    let kept = changed.place.path().join("kept");
    fs::copy(&changed.journals()[0], &kept).expect("a copy");
    drop(target);
    forge(&kept, "\"before\":null", "\"before\":\"1536MB\"");
    changed.host.run("alter system set max_wal_size = '3GB'");
    changed.host.run("select pg_reload_conf()");
    let said = changed.undo(&kept).expect("a journal").carry_out().expect("it is done");
    assert_eq!(
        said,
        ["max_wal_size is 1536 now and was 1024 before: that is what the journal says of ALTER \
          SYSTEM, and not what it says was in force"]
    );
    assert_eq!(changed.size(), "1536MB");
}

#[test]
fn without_the_right_or_for_some_settings_nothing_is_changed() {
    let Some(changed) = Changed::start(&[("checkpoint_timeout", "1h")]) else { return };
    let refused = |options: &str, setting: &str, [one, other]: [&str; 2]| {
        let visit = changed.visit(options).unwrap_or_else(|error| panic!("{error}"));
        let error = visit
            .intentions(&study_on("", "1K", &levels(setting, one, other)))
            .expect_err("refused")
            .to_string();
        assert!(error.starts_with("postgres://") && !error.contains('\n'), "{error}");
        error
    };
    let sizes = ["2GB", "3GB"];
    assert!(refused("", "shared_buffers", ["16MB", "32MB"]).contains("plumb restarts no server of others"));
    assert!(refused("", "archive_command", ["true", "false"]).contains("it is a text"));
    assert!(refused("", "fsync", ["on", "off"]).contains("damage the data of others"));
    assert!(refused("", "checkpoint_timeout", ["1h", "2h"]).contains("it is set by the command line"));
    changed.host.run("create role guest createdb");
    let guest = "-c role=guest";
    let error = refused(guest, "max_wal_size", sizes);
    assert!(
        error.contains(
            "--allow-reload: guest may not; a superuser gives the right in the database postgres: `grant"
        ),
        "{error}"
    );
    if changed.host.server_has_grants() {
        let grants = error.split('`').nth(1).expect("statements");
        changed.host.run(grants);
        let visit = changed.visit(guest).unwrap_or_else(|error| panic!("{error}"));
        visit.intentions(&self::sizes()).expect("it has the rights that were named");
    }
    let conf = changed.host.cluster.data().join("postgresql.conf");
    let text = fs::read_to_string(&conf).expect("a file");
    fs::write(&conf, text + "work_mem = 5MB\n").expect("a file");
    // A user with the rights to reload, and no others, sees it, too.
    let users = if changed.host.server_has_grants() { ["", guest] } else { [""; 2] };
    for user in users {
        let error = refused(user, "max_wal_size", sizes);
        assert!(error.contains("a reload would load changes of others, too: "), "{error}");
        assert!(error.contains("has work_mem = 5MB, and 4096kB is in force; load them first"), "{error}");
    }
    assert!(changed.journals().is_empty() && changed.host.altered().is_empty());
}
