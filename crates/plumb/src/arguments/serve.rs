//! Arguments of `plumb serve`.

use clap::Args;
use std::path::PathBuf;

pub const ABOUT: &str = "\
In a browser, / lists bundles; health, series and comparisons are pages. For scripts:
  GET /bundles  /bundles/ID/record  /bundles/ID/analysis  /bundles/ID/report
      /compare?a=ID&b=ID  /series?figure=NAME&workload=NAME  /settings  /events
      /health  /metrics  /openapi.json
A body is what the command prints with --json. ID is the name of a bundle's directory; an arm of a
study is ID:ARM. Nothing is changed. Ctrl-C ends the server.";

#[derive(Debug, Args)]
pub struct ServeOf {
    /// Directories in which plumb-reports lies
    #[arg(value_name = "DIR", default_value = ".")]
    pub directories: Vec<PathBuf>,
    /// Address of this machine's loopback, and the port; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: String,
}
