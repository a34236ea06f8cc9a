//! The file systems that a study requests by `"@ext4"` or `"@xfs"`: made below its
//! path, and removed with it.

use crate::arguments::Study;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use plumb_record::outside;
use plumb_run::loops::{self, FILE_SYSTEMS, FileSystem, LoopMount};
use plumb_study::StudyError;
use plumb_study::bundle::STUDY;
use plumb_study::definition::{Draft, catalog};
use plumb_units::Bytes;
use std::path::{Path, PathBuf};

const SIZE: Bytes = Bytes(Bytes::G);

/// Returns the kinds that a study asks for.
pub fn asked(draft: &Draft<'_>) -> Vec<FileSystem> {
    FILE_SYSTEMS.into_iter().filter(|kind| draft.has(&format!("@{}", kind.name))).collect()
}

/// File systems of a study, not made yet.
#[derive(Debug)]
pub struct Required {
    path: PathBuf,
    kinds: Vec<FileSystem>,
}

/// Finds the file systems of the requested study, and fails if they cannot be made. `resumed`
/// is the bundle to continue. Fails if the user is not root or a tool is missing, or such a
/// study is to be resumed.
pub fn require(arguments: &Study, resumed: Option<&Path>) -> Result<Required, Failure> {
    if let Some(bundle) = resumed.filter(|bundle| had_own(bundle)) {
        return Err(Failure::usage(format!(
            "--resume: the file systems of {0} went with its first part, and others are another experiment; begin anew, or \
             have its verdicts by `plumb report {0} --end`",
            bundle.display()
        )));
    }
    let name = arguments.study.as_deref().unwrap_or_default();
    let text = match catalog::text(name) {
        // The name then is that of a workload.
        _ if !arguments.factor.is_empty() => String::new(),
        Some((_, text)) => text.to_string(),
        None => outside::text(Path::new(name)).unwrap_or_default(),
    };
    let path = arguments.conduct.path.first().map_or(Path::new("."), PathBuf::as_path).to_path_buf();
    // A text that is no TOML is refused where the study is read.
    let kinds = Draft::of_text(name, &text).map_or_else(|_| Vec::new(), |draft| asked(&draft));
    if kinds.is_empty() {
        return Ok(Required { path, kinds });
    }
    loops::require(&path, &kinds)?;
    let path = plumb_io::named_directory::require("--path", &path)?;
    Ok(Required { path, kinds })
}

/// True if the study of a bundle had file systems of its own: the bundle has their mount points.
fn had_own(bundle: &Path) -> bool {
    outside::text(&bundle.join(STUDY)).is_ok_and(|text| text.contains(&format!("/{}", loops::PREFIX)))
}

impl Required {
    /// Makes and mounts them; dropping the result removes them. Fails if one cannot be made, or an
    /// interruption is requested. Then none remains.
    pub fn make(&self, interrupt: &Interrupt) -> Result<Vec<LoopMount>, Failure> {
        if self.kinds.is_empty() {
            return Ok(Vec::new());
        }
        interrupt.say("interrupted: the file systems that were made for it are removed".to_string());
        let cancel = interrupt.cancel();
        let made = self.kinds.iter().map(|kind| {
            interrupt.takes_apart(loops::directory(&self.path, *kind));
            LoopMount::make(&self.path, *kind, SIZE, &cancel)
        });
        let made = made.collect::<Result<Vec<_>, _>>();
        match cancel.check() {
            Err(_) => Err(interrupt.failure()),
            Ok(()) => Ok(made?),
        }
    }

    /// Removes the advice to continue from an error if the study cannot continue.
    pub fn without_resume(&self, mut error: StudyError) -> StudyError {
        if let StudyError::BudgetSpent { resumable, .. } = &mut error {
            *resumable = !self.are_made();
        }
        error
    }

    /// True if there are file systems, without which an interrupted study cannot continue.
    pub fn are_made(&self) -> bool {
        !self.kinds.is_empty()
    }

    /// Returns the message of an interrupted study of this bundle: without its
    /// file systems it cannot continue.
    pub fn interrupted(&self, bundle: &str) -> String {
        match self.are_made() {
            false => format!("interrupted; `plumb study --resume {bundle}` goes on"),
            true => format!(
                "interrupted; its file systems are removed, so it cannot go on; `plumb report {bundle} --end` gives its verdicts"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_units::{Nanos, RowCount};

    #[test]
    fn a_study_with_file_systems_of_its_own_is_not_advised_to_go_on() {
        let asked = |text| asked(&Draft::of_text("x.toml", text).expect("TOML"));
        let of = |text| Required { path: PathBuf::from("."), kinds: asked(text) };
        let plain = of("").interrupted("b");
        assert_eq!(plain, "interrupted; `plumb study --resume b` goes on");
        let own = of("levels = [\"@ext4\", \"@xfs\"]").interrupted("b");
        assert!(!own.contains("--resume") && own.contains("`plumb report b --end`"), "{own}");
        let spent = || {
            let seconds = |seconds: u64| Nanos(seconds * 1_000_000_000);
            let (budget, spent, needed) = (seconds(180), seconds(16), seconds(306));
            let (rows, resumable) = (RowCount(0), true);
            StudyError::BudgetSpent { budget, made: 1, runs: 18, rows, spent, needed, resumable }
        };
        let plain = of("").without_resume(spent()).to_string();
        assert!(plain.contains("go on with --resume and a --budget of 306 s"), "{plain}");
        let own = of("kind = \"@xfs\"").without_resume(spent()).to_string();
        assert!(!own.contains("--resume") && own.contains("study again with a --budget of 306 s"), "{own}");
    }
}
