//! Makes one directory to copy to a server: the program as one static file, its manual page,
//! completions and checksums.
//!
//! The C library is glibc, linked in (`crt-static`), so no other target has to be installed. The
//! program is position independent, so its addresses are random. It looks up no names of users
//! or hosts, which a static glibc cannot do. Symbols and debug tables are stripped, because they
//! are four fifths of a release build.
//!
//! ```text
//! target/dist-package/plumb-VERSION-ARCH/
//!     plumb  plumb.1  completions/{plumb.bash,_plumb,plumb.fish}  LICENSE-*  README.md  SHA256SUMS
//! ```
//!
//! `--chroot` runs the first command of the README in a root with nothing but the program,
//! /proc, /sys and /dev. It needs root.

use anyhow::{Context, ensure};
use clap::Args;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bound that shows growth: all code is compiled for speed, which took 26.7 MB when this was set.
const PROGRAM_BYTES_MAX: u64 = 28 << 20;
/// `PT_INTERP`: type of the ELF segment that names the dynamic linker.
const INTERPRETER: u32 = 3;

#[derive(Debug, Args)]
pub struct Options {
    /// Run the README's first command in a root that has nothing else in it; needs to be root.
    #[arg(long)]
    chroot: bool,
}

/// Makes the package. Fails if the program is too large or not static.
pub fn run(workspace: &Path, options: &Options) -> anyhow::Result<()> {
    build(workspace)?;
    let program = workspace.join("target").join(target()).join("dist/plumb");
    let bytes = fs::metadata(&program).context("the build made no program")?.len();
    ensure!(bytes <= PROGRAM_BYTES_MAX, "the program has {bytes} bytes, {PROGRAM_BYTES_MAX} are allowed");
    ensure!(is_static(&fs::read(&program)?)?, "{} asks for a dynamic linker", program.display());
    let package = workspace.join("target/dist-package").join(format!(
        "plumb-{}-{}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH
    ));
    let _ = fs::remove_dir_all(&package);
    fs::create_dir_all(package.join("completions"))?;
    fs::copy(&program, package.join("plumb"))?;
    for (command, name) in [
        (&["man"][..], "plumb.1"),
        (&["completions", "bash"], "completions/plumb.bash"),
        (&["completions", "zsh"], "completions/_plumb"),
        (&["completions", "fish"], "completions/plumb.fish"),
    ] {
        let printed = Command::new(&program).args(command).output()?;
        ensure!(printed.status.success(), "plumb {} failed", command.join(" "));
        fs::write(package.join(name), printed.stdout)?;
    }
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        fs::copy(workspace.join(name), package.join(name))?;
    }
    let sums = checksums(&package)?;
    fs::write(package.join("SHA256SUMS"), &sums)?;
    print!("{}\n{bytes} bytes, static\n{sums}", package.display());
    if options.chroot { in_a_bare_root(&package.join("plumb")) } else { Ok(()) }
}

/// Returns the target triple of this machine. It is given by name, so that `RUSTFLAGS` do
/// not apply to build scripts.
fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

fn build(workspace: &Path) -> anyhow::Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .current_dir(workspace)
        .args(["build", "--package", "plumb", "--profile", "dist", "--target"])
        .arg(target())
        // A profile strips no symbols of packages that it compiles at a level of their own.
        .env("RUSTFLAGS", "-C target-feature=+crt-static -C strip=symbols")
        .status()?;
    ensure!(built.success(), "the build failed");
    Ok(())
}

/// True if an ELF program names no interpreter.
fn is_static(elf: &[u8]) -> anyhow::Result<bool> {
    let short = "the program is no 64-bit ELF file";
    let bytes = |at: usize, count: usize| elf.get(at..at + count).context(short);
    ensure!(bytes(0, 5)? == b"\x7FELF\x02", short);
    let table = u64::from_le_bytes(bytes(32, 8)?.try_into()?) as usize;
    let [size, count] =
        [bytes(54, 2)?, bytes(56, 2)?].map(|half| usize::from(u16::from_le_bytes([half[0], half[1]])));
    for segment in 0..count {
        if u32::from_le_bytes(bytes(table + segment * size, 4)?.try_into()?) == INTERPRETER {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns a line for each file, in the form that `sha256sum -c` reads.
fn checksums(package: &Path) -> anyhow::Result<String> {
    let mut files = Vec::new();
    for directory in [package.to_path_buf(), package.join("completions")] {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut sums = String::new();
    for file in files {
        let hash: String =
            Sha256::digest(fs::read(&file)?).iter().map(|byte| format!("{byte:02x}")).collect();
        sums.push_str(&format!("{hash}  {}\n", file.strip_prefix(package)?.display()));
    }
    Ok(sums)
}

/// A root directory with the program in it; dropping it unmounts and removes it.
struct BareRoot {
    root: PathBuf,
    mounted: Vec<PathBuf>,
}

impl Drop for BareRoot {
    fn drop(&mut self) {
        let gone = self.mounted.iter().rev().all(|place| run_tool("umount", [place.as_os_str()]).is_ok());
        // Otherwise the removal would go through a mount into /sys or /dev.
        if gone {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// Runs the README's first command with nothing but the program and the kernel's file systems.
fn in_a_bare_root(program: &Path) -> anyhow::Result<()> {
    let room = std::env::temp_dir().join(format!("plumb-bare-root-{}", std::process::id()));
    let mut bare = BareRoot { root: room.clone(), mounted: Vec::new() };
    for (kind, name) in [("proc", "proc"), ("sysfs", "sys"), ("devtmpfs", "dev")] {
        let place = room.join(name);
        fs::create_dir_all(&place)?;
        run_tool("mount", ["-t".as_ref(), kind.as_ref(), kind.as_ref(), place.as_os_str()])?;
        bare.mounted.push(place);
    }
    fs::create_dir_all(room.join("data"))?;
    fs::copy(program, room.join("plumb"))?;
    // The options name /data because the working directory is the root itself.
    let arguments = ["/plumb", "study", "large-sort", "--path", "/data", "--bundle", "/data/bundle"];
    let mut command = Command::new("chroot");
    // PATH is for finding chroot(8); the program does not use it.
    command.arg(&room).args(arguments).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let ended = command.status().context("chroot cannot be started")?;
    let code = ended.code().context("a signal ended it")?;
    println!("{} in a bare root: exit code {code}", arguments.join(" "));
    // Any verdict passes; an error, wrong usage and INVALID do not.
    ensure!(![1, 2, 5].contains(&code), "it failed");
    Ok(())
}

fn run_tool<'a>(tool: &str, arguments: impl IntoIterator<Item = &'a OsStr>) -> anyhow::Result<()> {
    let ended =
        Command::new(tool).args(arguments).status().with_context(|| format!("{tool} cannot be started"))?;
    ensure!(ended.success(), "{tool} failed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_static;

    #[test]
    fn a_program_that_asks_for_a_linker_is_told_from_one_that_does_not() {
        let this = std::fs::read(std::env::current_exe().expect("its path")).expect("read");
        assert!(!is_static(&this).expect("an ELF file"), "tests are linked dynamically");
        assert!(is_static(b"#!/bin/sh").is_err());
    }
}
