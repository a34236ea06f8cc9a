//! The file systems that a study asks for by `"@ext4"` or `"@xfs"`: made for it below its path, and gone with it.

use crate::arguments::Study;
use crate::failure::Failure;
use plumb_lab::LabError;
use plumb_lab::loops::{self, FILE_SYSTEMS, FileSystem, LoopMount};
use plumb_lab::study::catalog;
use plumb_units::Bytes;
use std::path::{Path, PathBuf};

/// Bytes of each.
const SIZE: Bytes = Bytes(Bytes::G);

/// The kinds that the text of a study asks for.
pub fn asked(text: &str) -> Vec<FileSystem> {
    FILE_SYSTEMS.into_iter().filter(|kind| text.contains(&format!("\"@{}\"", kind.name))).collect()
}

/// Those of a study, not made yet.
#[derive(Debug)]
pub struct Required {
    path: PathBuf,
    kinds: Vec<FileSystem>,
}

/// The file systems of the study that is asked for; refuses where they cannot be made.
///
/// # Errors
/// When the user is not root or a tool is missing, or such a study is to be resumed.
pub fn require(arguments: &Study) -> Result<Required, Failure> {
    let name = arguments.study.as_deref().unwrap_or_default();
    let text = match catalog::text(name) {
        Some((_, text)) => text.to_string(),
        None => std::fs::read_to_string(name).unwrap_or_default(),
    };
    let path = arguments.conduct.path.first().map_or(Path::new("."), PathBuf::as_path).to_path_buf();
    let kinds = asked(&text);
    if kinds.is_empty() {
        return Ok(Required { path, kinds });
    }
    if arguments.resume.is_some() {
        return Err(Failure::usage(format!(
            "--resume: the file systems of {name} went with its first part, and others are another experiment; begin anew"
        )));
    }
    loops::require(&path, &kinds)?;
    let path = plumb_lab::place::require_directory("--path", &path)?;
    Ok(Required { path, kinds })
}

impl Required {
    /// Makes and mounts them; they go with what is given.
    ///
    /// # Errors
    /// When one cannot be made; then none remains.
    pub fn make(&self) -> Result<Vec<LoopMount>, LabError> {
        self.kinds.iter().map(|kind| LoopMount::make(&self.path, *kind, SIZE)).collect()
    }
}
