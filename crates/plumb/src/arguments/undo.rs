//! Arguments of `plumb undo`.

use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct UndoOf {
    /// The journal that the study named: ~/.local/state/plumb/undo-SERVER.json; without one, all
    /// that killed studies left there
    pub journal: Option<PathBuf>,
    /// The server, if its address is not that of the journal any more
    #[arg(long, value_name = "URL")]
    pub target: Option<String>,
    /// Do not ask before the values are put back
    #[arg(long)]
    pub yes: bool,
}
