//! Kills every command that makes things which outlive a kill, at many moments, and shows what
//! `plumb clean` leaves: it must leave nothing.
//!
//! The commands and the checks are those of a test ([`plumb_crash::leftovers`]), at more moments.
//! A server of PostgreSQL is made for the study of a server of others.

use anyhow::Context;
use clap::Args;
use plumb_crash::leftovers::{KillPlace, KilledMaker, MAKERS, lacks};
use plumb_events::Cancel;
use plumb_postgres::cluster::{Cluster, Creation, RunningServer};
use plumb_postgres::installation::Installation;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Moments at which each command is killed.
    #[arg(long, default_value_t = 20)]
    moments: u64,
    /// Only commands with this word in their name.
    #[arg(long, default_value = "")]
    only: String,
    /// Directory that the user of a server can reach.
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    path: PathBuf,
}

/// A server of others. The fields are dropped in this order.
struct OthersServer {
    _server: RunningServer,
    cluster: Cluster,
}

impl OthersServer {
    fn start(place: &Path, installation: &Installation) -> anyhow::Result<OthersServer> {
        let cluster = Cluster::create(
            place,
            "others",
            installation,
            &Creation { checksums: None, segment_megabytes: None },
        )?;
        let server = cluster.borrowed().start(&[], &Cancel::default())?;
        Ok(OthersServer { _server: server, cluster })
    }

    fn url(&self) -> String {
        format!("postgres:///postgres?host={}", self.cluster.data().display())
    }
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let program = std::env::current_exe()?.with_file_name("plumb");
    anyhow::ensure!(program.is_file(), "{}: build it first: cargo build --release", program.display());
    let room = tempfile::Builder::new().prefix("plumb-leftovers-").tempdir_in(&options.path)?;
    let directory = room.path();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))?;
    let installed = Installation::find(None);
    let server = installed.as_ref().ok().map(|found| OthersServer::start(directory, found)).transpose()?;
    let url = server.as_ref().map(OthersServer::url);
    let installed = installed.map(drop).map_err(|error| error.to_string());
    let place = KillPlace { program: &program, directory, server: url.as_deref() };
    println!("| command | kills | ended before | left |");
    println!("|---|---|---|---|");
    let (mut killed, mut left) = (0, Vec::new());
    for maker in MAKERS.iter().filter(|maker| maker.name.contains(&options.only)) {
        let KilledMaker { name, .. } = maker;
        if let Some(why) = lacks(maker, &place, installed.clone()) {
            println!("| {name} | skipped: {why} | | |");
            continue;
        }
        let kills = maker.kill(&place, options.moments).with_context(|| (*name).to_string())?;
        println!("| {name} | {} | {} | {} |", kills.killed, kills.ended, kills.left.len());
        killed += kills.killed;
        left.extend(kills.left);
    }
    left.iter().for_each(|line| println!("{line}"));
    println!("{killed} kills, {} things left", left.len());
    anyhow::ensure!(left.is_empty(), "plumb clean leaves {} things", left.len());
    Ok(())
}
