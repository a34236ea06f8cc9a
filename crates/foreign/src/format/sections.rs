//! Sections of AWR and Statspack reports: the table `sections.toml`, read once.
//!
//! Narrow columns cut off suffixes. Waits of a histogram have five letters, so 616.4K prints as
//! 616.4. `Data per sec` has seven letters and loses its M, so its figures are in MB/s.

use crate::figure::sheet::{Known, Section};
use plumb_figures::FigureUnit;
use serde::Deserialize;
use std::sync::LazyLock;

/// The sections; one comes after those whose heading begins with its own.
pub static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let table: SectionTable = toml::from_str(include_str!("sections.toml")).expect("the table is tested");
    let of = |section: SectionRow| {
        let shared = table.shared.iter().find(|list| list.name == section.like);
        let columns = shared.map_or(section.columns, |list| list.columns.clone());
        Section {
            key: section.key.leak(),
            headings: kept(section.headings),
            first: kept(section.first),
            columns: columns.into_iter().filter_map(column).collect::<Vec<Known>>().leak(),
        }
    };
    table.section.into_iter().map(of).collect()
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionTable {
    shared: Vec<ColumnList>,
    section: Vec<SectionRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnList {
    name: String,
    columns: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionRow {
    key: String,
    #[serde(default)]
    headings: Vec<String>,
    #[serde(default)]
    first: Vec<String>,
    /// A shared list of columns.
    #[serde(default)]
    like: String,
    #[serde(default)]
    columns: Vec<Vec<String>>,
}

fn kept(texts: Vec<String>) -> &'static [&'static str] {
    texts.into_iter().map(|text| &*text.leak()).collect::<Vec<&str>>().leak()
}

/// Reads a column: its key, its unit, then its headings.
fn column(row: Vec<String>) -> Option<Known> {
    let mut texts = row.into_iter();
    let (key, unit) = (texts.next()?, texts.next()?);
    let unit = FigureUnit::named(&unit)?;
    Some(Known { key: key.leak(), unit, headings: kept(texts.collect()) })
}

/// Returns the section of a table by its heading, or without one by its first columns.
#[must_use]
pub fn section_of(heading: &str, names: &[String]) -> Option<&'static Section> {
    match heading {
        "" => SECTIONS.iter().find(|section| section.begins(names)),
        heading => SECTIONS.iter().find(|section| section.is_headed(heading)),
    }
}

/// Returns the section with a key.
#[must_use]
pub fn keyed(key: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_the_table_has_a_known_unit() {
        let table: SectionTable = toml::from_str(include_str!("sections.toml")).expect("a table");
        let lists = table.shared.into_iter().map(|list| list.columns);
        for row in lists.chain(table.section.into_iter().map(|section| section.columns)).flatten() {
            assert!(column(row.clone()).is_some(), "{row:?}");
        }
    }
    use crate::figure::sheet::plain;

    #[test]
    fn every_section_is_reached_by_each_of_its_headings() {
        for section in SECTIONS.iter() {
            for heading in section.headings {
                let found = section_of(heading, &[]).map(|found| found.key);
                assert_eq!(found, Some(section.key), "{heading}");
            }
        }
    }

    #[test]
    fn keys_and_headings_of_columns_are_unique_where_they_must_be() {
        for section in SECTIONS.iter() {
            let keys: Vec<&str> = section.columns.iter().map(|column| column.key).collect();
            for (at, key) in keys.iter().enumerate() {
                assert!(!keys[..at].contains(key), "{}: {key}", section.key);
            }
            for column in section.columns {
                let headings: Vec<String> = column.headings.iter().map(|heading| plain(heading)).collect();
                for (at, heading) in headings.iter().enumerate() {
                    assert!(!headings[..at].contains(heading), "{}: {heading}", section.key);
                }
            }
        }
    }
}
