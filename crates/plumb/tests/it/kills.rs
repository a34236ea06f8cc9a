//! Every maker of things that outlive a kill, killed at two moments: `plumb clean` leaves
//! nothing. `cargo xtask bench leftovers` does the same at more moments.

use crate::visits::Host;
use plumb_crash::leftovers::{KillPlace, KilledMaker, MAKERS, Needs, lacks};
use plumb_postgres::installation::Installation;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const MOMENTS: u64 = 2;

fn killed(which: impl Fn(&KilledMaker) -> bool) {
    // A directory that the user of a server can reach.
    let directory = tempfile::Builder::new().prefix("plumb-it-").tempdir_in("/var/tmp").expect("a directory");
    let passage = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path(), passage).expect("a mode");
    let installed = Installation::find(None).map(drop).map_err(|error| error.to_string());
    assert!(std::env::var_os("PLUMB_REQUIRE_POSTGRES").is_none() || installed.is_ok(), "{installed:?}");
    let makers: Vec<&KilledMaker> = MAKERS.iter().filter(|maker| which(maker)).collect();
    let host = makers.iter().any(|maker| maker.needs == Needs::Server).then(Host::start).flatten();
    let url = host.as_ref().map(Host::url);
    let program = Path::new(env!("CARGO_BIN_EXE_plumb"));
    let place = KillPlace { program, directory: directory.path(), server: url.as_deref() };
    for maker in makers {
        if let Some(why) = lacks(maker, &place, installed.clone()) {
            println!("skipped: {}: {why}", maker.name);
            continue;
        }
        let kills = maker.kill(&place, MOMENTS).expect("the command works");
        assert_eq!(kills.left, Vec::<String>::new(), "{}", maker.name);
        assert!(kills.killed > 0, "{}: each run ended before its kill", maker.name);
    }
}

#[test]
fn killed_runs_leave_nothing() {
    killed(|maker| maker.needs == Needs::Nothing && maker.name.starts_with("run "));
}

#[test]
fn killed_commands_and_studies_leave_nothing() {
    killed(|maker| maker.needs == Needs::Nothing && !maker.name.starts_with("run "));
}

#[test]
fn killed_makers_of_devices_and_traces_leave_nothing() {
    killed(|maker| maker.needs == Needs::Root);
}

#[test]
fn killed_studies_of_servers_leave_nothing() {
    killed(|maker| matches!(maker.needs, Needs::Postgres | Needs::Server));
}
