//! The build of the program that writes records: version, revision and optimisation.
//!
//! The program declares itself once, at its start, before any record is written. A library that is
//! used without the program has its version only. Rejected: `env!` where a record is written. Cargo
//! passes a revision only to the crate whose build script prints it, and each crate with such a
//! script is compiled again after every commit.

use std::sync::OnceLock;

/// Opt-level of the engine from which on times are those of a release.
const OPTIMISED: &str = "3";

static THIS: OnceLock<Build> = OnceLock::new();

/// The build of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    pub version: &'static str,
    /// Revision of the sources; `None` if they came without a repository.
    pub revision: Option<&'static str>,
    /// Cargo's profile, such as `release` or `dist`.
    pub profile: &'static str,
    /// Opt-level of the engine, as rustc takes it.
    pub engine_level: &'static str,
}

impl Build {
    /// Declares the build of this process; only the first call counts.
    pub fn declare(self) {
        let _ = THIS.set(self);
    }

    /// Returns the build of this process.
    pub fn this() -> Build {
        let library =
            Build { version: env!("CARGO_PKG_VERSION"), revision: None, profile: "", engine_level: "" };
        THIS.get().copied().unwrap_or(library)
    }

    /// Returns the profile for a record: `release`, or with the engine's opt-level if that is lower
    /// than a release's. `None` if no program has declared itself.
    pub fn profile(&self) -> Option<String> {
        match (self.profile, self.engine_level) {
            ("", _) => None,
            (profile, OPTIMISED) => Some(profile.to_string()),
            (profile, level) => Some(format!("{profile}, not optimised: engine at opt-level {level}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_whose_engine_is_not_optimised_says_so() {
        let build = |profile, engine_level| Build { version: "1", revision: None, profile, engine_level };
        assert_eq!(build("dist", "3").profile().as_deref(), Some("dist"));
        let unoptimised = "debug, not optimised: engine at opt-level 2";
        assert_eq!(build("debug", "2").profile().as_deref(), Some(unoptimised));
        assert_eq!(build("", "").profile(), None);
    }
}
