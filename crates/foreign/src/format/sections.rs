//! Sections of reports as tables of data, read once: `awr/sections.toml` of AWR and Statspack, and
//! `sections.toml` of all other programs.
//!
//! Narrow columns cut off suffixes. Waits of a histogram have five letters, so 616.4K prints as
//! 616.4. `Data per sec` has seven letters and loses its M, so its figures are in MB/s.

use crate::figure::sheet::{Known, Printed, Section, Sheet};
use plumb_figures::FigureUnit;
use serde::Deserialize;
use std::sync::LazyLock;

/// The sections of AWR; one comes after those whose heading begins with its own.
static AWR: LazyLock<Vec<Section>> = LazyLock::new(|| sections(include_str!("awr/sections.toml")));
/// The sections of other programs.
static OTHERS: LazyLock<Vec<Section>> = LazyLock::new(|| sections(include_str!("sections.toml")));

fn sections(text: &str) -> Vec<Section> {
    let table: SectionTable = toml::from_str(text).expect("the table is tested");
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
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionTable {
    #[serde(default)]
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

/// Returns the section of a table of AWR by its heading, or without one by its first columns.
#[must_use]
pub fn section_of(heading: &str, names: &[String]) -> Option<&'static Section> {
    match heading {
        "" => AWR.iter().find(|section| section.begins(names)),
        heading => AWR.iter().find(|section| section.is_headed(heading)),
    }
}

/// Returns the section of another program with this heading.
#[must_use]
pub fn headed(heading: &str) -> Option<&'static Section> {
    OTHERS.iter().find(|section| section.headings[0] == heading)
}

/// Returns the section with a key.
#[must_use]
pub fn keyed(key: &str) -> &'static Section {
    let found = OTHERS.iter().chain(AWR.iter()).find(|section| section.key == key);
    found.expect("the keys of the code are those of the tables")
}

/// Returns an empty table of a section with all of its columns.
#[must_use]
pub fn table(key: &str, line: u32) -> Sheet {
    with_columns(key, line, keyed(key).columns.iter().map(|column| column.headings[0]))
}

/// Returns an empty table of a section with columns of these headings.
pub fn with_columns<N: Into<String>>(key: &str, line: u32, names: impl IntoIterator<Item = N>) -> Sheet {
    let section = keyed(key);
    let heading = Printed { raw: section.headings[0].to_string(), line };
    Sheet::new(Some(section), heading, names.into_iter().map(Into::into).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_the_table_has_a_known_unit() {
        for text in [include_str!("awr/sections.toml"), include_str!("sections.toml")] {
            let table: SectionTable = toml::from_str(text).expect("a table");
            let lists = table.shared.into_iter().map(|list| list.columns);
            for row in lists.chain(table.section.into_iter().map(|section| section.columns)).flatten() {
                assert!(column(row.clone()).is_some(), "{row:?}");
            }
        }
        // Of AWR two releases may have tables of one section.
        for (at, section) in OTHERS.iter().enumerate() {
            let mut others = OTHERS[..at].iter().chain(AWR.iter());
            assert!(others.all(|other| other.key != section.key), "{}", section.key);
        }
    }
    use crate::figure::sheet::plain;

    #[test]
    fn every_section_is_reached_by_each_of_its_headings() {
        for section in AWR.iter() {
            for heading in section.headings {
                let found = section_of(heading, &[]).map(|found| found.key);
                assert_eq!(found, Some(section.key), "{heading}");
            }
        }
    }

    #[test]
    fn keys_and_headings_of_columns_are_unique_where_they_must_be() {
        for section in AWR.iter() {
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
