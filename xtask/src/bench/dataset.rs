//! The tables that benches sort: columns, rows and the key of the index.
//!
//! Each table is described once, here. Peers receive the description and translate the kinds of
//! columns into their own types.
//!
//! A result is checked by the number of rows and the sum of a weight of their keys, which every
//! peer can compute. The weight of two numbers is `store * KEY_FACTOR + product`. The weight of a
//! text depends on its length, its last character and the fifth from the end.

use clap::ValueEnum;
use plumb_engine::index::build::IndexSpec;
use plumb_engine::instance::InitialSizes;
use plumb_engine::table::load::load;
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::Cancel;
use plumb_types::{RowError, RowSource, column_at, decode_number};
use plumb_units::{Bytes, RowCount};
use plumb_workload::{PAGE_BYTES_MAX, PagesSpec, PagesTable, SalesSpec, SalesTable};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Factor of the store in the weight of two numbers.
pub(in crate::bench) const KEY_FACTOR: u64 = 1_000_000;
/// Factors of a text's last character and of the fifth from its end, in its weight.
pub(in crate::bench) const LAST_FACTOR: u64 = 1_000;
pub(in crate::bench) const FIFTH_FACTOR: u64 = 1_000_000;

/// The key of the sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::bench) enum Keys {
    /// Sales by store and product: two numbers of at most 8 bytes together.
    Numbers,
    /// Views of web pages: text of 5 to 60 characters with long shared prefixes.
    Text,
}

/// The kind of a column; each peer has a type for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Date,
    Integer,
    Amount,
    Text,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Date => "date",
            Kind::Integer => "integer",
            Kind::Amount => "amount",
            Kind::Text => "text",
        }
    }
}

impl Keys {
    /// Returns the word of the command line.
    pub(in crate::bench) fn name(self) -> &'static str {
        match self {
            Keys::Numbers => "numbers",
            Keys::Text => "text",
        }
    }

    /// Returns the heading of its part of the document.
    pub(in crate::bench) fn title(self) -> &'static str {
        match self {
            Keys::Numbers => "Keys of two numbers",
            Keys::Text => "Text keys",
        }
    }

    /// Returns a phrase that names the table and its key.
    pub(in crate::bench) fn describe(self) -> String {
        match self {
            Keys::Numbers => "the sales table, an index on (store_id, prod_id)".to_string(),
            Keys::Text => format!(
                "page views, an index on page: addresses and paths of up to {PAGE_BYTES_MAX} characters, \
                 compared by their bytes (the C collation)"
            ),
        }
    }

    pub(in crate::bench) fn table(self) -> &'static str {
        match self {
            Keys::Numbers => "sales",
            Keys::Text => "page_views",
        }
    }

    pub(in crate::bench) fn index(self) -> &'static str {
        match self {
            Keys::Numbers => "sales_store_prod",
            Keys::Text => "page_views_page",
        }
    }

    /// Returns the columns of the key, in order.
    pub(in crate::bench) fn key(self) -> &'static [&'static str] {
        match self {
            Keys::Numbers => &["store_id", "prod_id"],
            Keys::Text => &["page"],
        }
    }

    fn columns(self) -> &'static [(&'static str, Kind)] {
        match self {
            Keys::Numbers => &[
                ("sales_date", Kind::Date),
                ("store_id", Kind::Integer),
                ("prod_id", Kind::Integer),
                ("regular_qty", Kind::Integer),
                ("regular_amt", Kind::Amount),
                ("discount_qty", Kind::Integer),
                ("discount_amt", Kind::Amount),
                ("promo_qty", Kind::Integer),
                ("promo_amt", Kind::Amount),
            ],
            Keys::Text => &[
                ("view_date", Kind::Date),
                ("page", Kind::Text),
                ("status", Kind::Integer),
                ("bytes", Kind::Integer),
            ],
        }
    }

    /// Returns the most bytes of a row in a table, in runs and in an index of plumb.
    fn row_bytes(self) -> (u64, u64, u64) {
        match self {
            Keys::Numbers => (48, 20, 22),
            Keys::Text => (80, 60, 60),
        }
    }

    pub(in crate::bench) fn source(self, rows: RowCount, seed: u64) -> Box<dyn RowSource> {
        match self {
            Keys::Numbers => Box::new(SalesTable::new(SalesSpec { rows: rows.0, seed })),
            Keys::Text => Box::new(PagesTable::new(PagesSpec { rows: rows.0, seed })),
        }
    }

    /// Returns the index on the key.
    pub(in crate::bench) fn index_spec(self) -> IndexSpec {
        IndexSpec {
            name: self.index().to_uppercase(),
            table: self.table().to_uppercase(),
            columns: self.key().iter().map(|name| (name.to_uppercase(), false)).collect(),
        }
    }

    /// Makes a database with the table loaded. It has room for the index and `run_copies` times
    /// the runs of a build.
    pub(in crate::bench) fn database(
        self,
        home: PathBuf,
        settings: Settings,
        (rows, seed): (RowCount, u64),
        run_copies: u64,
        cancel: Cancel,
    ) -> anyhow::Result<Instance> {
        let (users, temp, indx) = self.row_bytes();
        let sized = |row_bytes: u64| Bytes(rows.0 * row_bytes + 64 * Bytes::M);
        let sizes = InitialSizes { users: sized(users), temp: sized(run_copies * temp), indx: sized(indx) };
        let instance = Instance::create(&Layout::in_one(home), settings, sizes, cancel)?;
        load(&instance, &self.table().to_uppercase(), self.source(rows, seed).as_ref())?;
        Ok(instance)
    }

    pub(in crate::bench) fn job(self) -> Value {
        let columns: Vec<(&str, &str)> =
            self.columns().iter().map(|(name, kind)| (*name, kind.name())).collect();
        json!({
            "keys": self.name(), "table": self.table(), "index": self.index(), "key": self.key(),
            "columns": columns, "key_factor": KEY_FACTOR, "last_factor": LAST_FACTOR,
            "fifth_factor": FIFTH_FACTOR,
        })
    }

    /// Returns the weight of a row's key.
    pub(in crate::bench) fn weight(self, row: &[u8]) -> Result<u64, RowError> {
        Ok(match self {
            Keys::Numbers => {
                let number = |column| -> Result<u64, RowError> {
                    let stored = column_at(row, column)?.unwrap_or(&[]);
                    Ok(decode_number(stored).map_or(0, |(unscaled, _)| unscaled as u64))
                };
                number_weight(number(1)?, number(2)?)
            }
            Keys::Text => text_weight(column_at(row, 1)?.unwrap_or(&[])),
        })
    }
}

pub(in crate::bench) fn number_weight(store: u64, product: u64) -> u64 {
    store * KEY_FACTOR + product
}

/// Returns the weight of a text of single-byte characters.
pub(in crate::bench) fn text_weight(text: &[u8]) -> u64 {
    let from_end = |count: usize| text.len().checked_sub(count).map_or(0, |at| u64::from(text[at]));
    text.len() as u64 + from_end(1) * LAST_FACTOR + from_end(5) * FIFTH_FACTOR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_weighs_its_length_its_last_and_its_fifth_character_from_the_end() {
        assert_eq!(text_weight(b"/abcde"), 6 + 1_000 * 101 + 1_000_000 * 97);
        assert_eq!(text_weight(b"ab"), 2 + 1_000 * 98);
    }

    #[test]
    fn the_description_is_that_of_the_table() {
        for keys in [Keys::Numbers, Keys::Text] {
            let source = keys.source(RowCount(1), 1);
            let described: Vec<String> = keys.columns().iter().map(|(name, _)| name.to_uppercase()).collect();
            let named: Vec<&str> =
                source.schema().columns.iter().map(|column| column.name.as_str()).collect();
            assert_eq!(described, named);
            assert!(
                keys.key().iter().all(|column| source.schema().position(&column.to_uppercase()).is_some())
            );
        }
    }
}
