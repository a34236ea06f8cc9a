//! I/O profiles of two runs: one panel for each stream, both runs in each, all on the same axes.
//!
//! A script draws the panels with uPlot; without scripts the profiles are drawn in characters.

use super::{data, escape};
use crate::profile::PairChart;
use crate::text;

/// Renders the figure for the script to fill.
pub(super) fn figure(pair: &PairChart) -> String {
    let [reference, treatment] = &pair.sides;
    let characters = escape(&text::pair_lines(pair, text::WIDTH)[1..].join("\n"));
    format!(
        "<figure class=\"pair\">\n<h3>{}</h3>\n\
         <ul class=\"legend\"><li><i class=\"side-0\"></i>{}</li><li><i class=\"side-1\"></i>{}</li></ul>\n\
         <div class=\"panels\"></div>{}\n<noscript><pre>{characters}</pre></noscript></figure>\n",
        escape(&pair.title),
        escape(&reference.name),
        escape(&treatment.name),
        data(pair)
    )
}
