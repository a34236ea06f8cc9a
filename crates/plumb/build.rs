//! Passes the revision of the sources to the program, if git knows it, and the profile.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rustc-env=PLUMB_PROFILE={}", profile());
    // A source archive has no repository; then the report shows the revision as unknown.
    let log = Path::new("../../.git/logs/HEAD");
    let watched = if log.exists() { "../../.git/logs/HEAD" } else { "build.rs" };
    println!("cargo::rerun-if-changed={watched}");
    let answer = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    if let Ok(answer) = answer
        && answer.status.success()
    {
        println!("cargo::rustc-env=PLUMB_REVISION={}", String::from_utf8_lossy(&answer.stdout).trim());
    }
}

/// Returns the profile that cargo compiles: the directory below `target` that has the output.
/// PROFILE only says on which of two profiles it is based.
fn profile() -> String {
    let out = std::env::var("OUT_DIR").unwrap_or_default();
    let mut directories = Path::new(&out).iter().rev().skip_while(|name| *name != "build").skip(1);
    directories.next().map_or(String::new(), |name| name.to_string_lossy().into_owned())
}
