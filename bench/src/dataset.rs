//! The tables whose index builds are measured, with the key of the index.

use clap::ValueEnum;
use plumb_engine::index::build::IndexSpec;
use plumb_engine::instance::InitialSizes;
use plumb_engine::table::load::load;
use plumb_engine::{Instance, Layout, Settings};
use plumb_events::Cancel;
use plumb_types::RowSource;
use plumb_units::{Bytes, RowCount};
use plumb_workload::{PagesSpec, PagesTable, SalesSpec, SalesTable};
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Keys {
    /// Two numbers of 8 bytes together at most: the sales by store and product.
    Numbers,
    /// Views of web pages: text of 5 to 60 characters with long shared prefixes.
    Text,
}

impl Keys {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Keys::Numbers => "numbers",
            Keys::Text => "text",
        }
    }

    pub(crate) fn table(self) -> &'static str {
        match self {
            Keys::Numbers => "sales",
            Keys::Text => "page_views",
        }
    }

    fn index(self) -> &'static str {
        match self {
            Keys::Numbers => "sales_store_prod",
            Keys::Text => "page_views_page",
        }
    }

    /// Returns the columns of the key, in order.
    pub(crate) fn key(self) -> &'static [&'static str] {
        match self {
            Keys::Numbers => &["store_id", "prod_id"],
            Keys::Text => &["page"],
        }
    }

    /// Bytes that a row takes in a table, in runs and in an index of plumb, at most.
    fn row_bytes(self) -> (u64, u64, u64) {
        match self {
            Keys::Numbers => (48, 20, 22),
            Keys::Text => (80, 60, 60),
        }
    }

    fn source(self, rows: RowCount) -> Box<dyn RowSource> {
        match self {
            Keys::Numbers => Box::new(SalesTable::new(SalesSpec { rows: rows.0, seed: 1 })),
            Keys::Text => Box::new(PagesTable::new(PagesSpec { rows: rows.0, seed: 1 })),
        }
    }

    /// Returns the index on the key.
    pub(crate) fn index_spec(self) -> IndexSpec {
        IndexSpec {
            name: self.index().to_uppercase(),
            table: self.table().to_uppercase(),
            columns: self.key().iter().map(|name| (name.to_uppercase(), false)).collect(),
        }
    }

    /// Makes a database with the table loaded. It has room for the index and `run_copies` times
    /// the runs of a build.
    pub(crate) fn database(
        self,
        home: PathBuf,
        settings: Settings,
        rows: RowCount,
    ) -> anyhow::Result<Instance> {
        let (users, temp, indx) = self.row_bytes();
        let sized = |row_bytes: u64| Bytes(rows.0 * row_bytes + 64 * Bytes::M);
        let sizes = InitialSizes { users: sized(users), temp: sized(2 * temp), indx: sized(indx) };
        let instance = Instance::create(&Layout::in_one(home), settings, sizes, Cancel::default())?;
        load(&instance, &self.table().to_uppercase(), self.source(rows).as_ref())?;
        Ok(instance)
    }
}
