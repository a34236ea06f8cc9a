//! Parts of a whole: one bar of coloured lengths, and a legend with their figures.

use super::drawing::percent;
use super::escape;
use crate::document::{Part, Parts};

/// Number of colours in the palette.
const COLOURS: usize = 8;

pub(super) fn figure(parts: &Parts) -> String {
    let each = |print: fn(&Part, usize) -> String| {
        let parts = parts.0.iter().enumerate();
        parts.map(|(index, part)| print(part, index % COLOURS)).collect::<String>()
    };
    let bar = each(|part, colour| {
        let (name, shown) = (escape(&part.name), escape(&part.shown));
        let width = percent(part.share);
        format!("<i class=\"arm-{colour}\" style=\"width:{width}\" title=\"{name} {shown}\"></i>")
    });
    let legend = each(|part, colour| {
        let (name, shown) = (escape(&part.name), escape(&part.shown));
        format!("<li><b class=\"arm-{colour}\"></b>{name} <span>{shown}</span></li>")
    });
    format!("<figure class=\"parts\"><div>{bar}</div>\n<ul class=\"legend\">{legend}</ul></figure>\n")
}
