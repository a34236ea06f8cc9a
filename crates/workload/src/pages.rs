//! PAGE_VIEWS: requests for pages of web sites, a table with long text keys.
//!
//! One row for each request: day, page, status and bytes sent. An index is built on the page, which
//! has 5 to 60 characters: an address (`https://www.velora.com/docs/api/page-117.html`) or a path
//! of a file (`/srv/data/velora/log/2031.gz`). Such keys are hard to sort: the first bytes differ
//! little, neighbours in order share most of theirs, and popular pages repeat.
//!
//! Generation: a site, a directory of it and a page in the directory are drawn in turn, with
//! frequencies near those of Zipf's law ([`rank`]). A site's name, its scheme and its directories
//! follow from its number, so all its rows agree. Seven rows of eight have an address, one a path.
//! A page longer than 60 characters is cut at its directory.
//!
//! Rows are made in chunks of 8,192, as those of the sales are, and are the same for any number
//! of threads. All draws are of integers, so no library and no processor changes the table; a
//! test pins the first chunk.
//!
//! Limits: this is no crawl. Real addresses have longer tails and odder characters; the lengths
//! here are bounded by those of the compared workload.

use crate::chunks::{Chunks, mix};
use plumb_types::{Column, ColumnType, DateTime, RowBatch, RowSource, Schema, SourceError};
use rand::Rng;
use rand::rngs::Xoshiro256PlusPlus;
use std::fmt::Write;

/// Longest page, in characters and in bytes.
pub const PAGE_BYTES_MAX: usize = 60;

/// Sites, directories of a site and pages of a directory, as powers of two.
const SITES_LOG2: u32 = 12;
const DIRECTORIES_LOG2: u32 = 7;
const PAGES_LOG2: u32 = 16;
/// Number of days of the views, in the order of the rows.
const DAYS: u64 = 30;

const SYLLABLES: [&str; 16] =
    ["ve", "lo", "ra", "mi", "tan", "ko", "ser", "di", "pan", "el", "no", "gri", "sta", "bu", "fi", "mer"];
const DOMAINS: [&str; 8] = ["com", "org", "net", "com", "de", "co.uk", "io", "com"];
const SECTIONS: [&str; 8] = ["docs", "blog", "shop", "news", "wiki", "api", "media", "forum"];
const TOPICS: [&str; 16] = [
    "reference",
    "archive",
    "products",
    "guide",
    "images",
    "2024",
    "2025",
    "users",
    "tags",
    "release",
    "tutorial",
    "topics",
    "en",
    "category",
    "static",
    "search",
];
const PLACES: [&str; 4] = ["/srv/data", "/var/log", "/usr/share/doc", "/home"];

/// Specification of page views; equal values give equal rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagesSpec {
    /// Number of rows of the table.
    pub rows: u64,
    /// Seed of the draws; any number is valid.
    pub seed: u64,
}

/// The page views as a source of rows.
#[derive(Debug)]
pub struct PagesTable {
    spec: PagesSpec,
    schema: Schema,
    days: Vec<DateTime>,
    chunks: Chunks,
}

impl PagesTable {
    /// Creates the table of a specification. Rows are made on demand.
    pub fn new(spec: PagesSpec) -> Self {
        let day = |day| DateTime::date(2025, 6, day).expect("June has 30 days");
        PagesTable {
            spec,
            schema: schema(),
            days: (1..=DAYS as u8).map(day).collect(),
            chunks: Chunks::new(spec.rows, spec.seed),
        }
    }

    /// Fills the empty `batch` with the rows of a chunk; none after the last.
    fn fill_chunk(&self, chunk: u64, batch: &mut RowBatch) {
        batch.clear();
        let mut random = self.chunks.generator(chunk);
        let mut page = String::with_capacity(2 * PAGE_BYTES_MAX);
        for row in self.chunks.rows(chunk) {
            let day = u128::from(row) * u128::from(DAYS) / u128::from(self.spec.rows);
            push_page(&mut random, &mut page);
            let bits = random.next_u64();
            let status = if bits & 31 == 0 { 404 } else { 200 };
            batch.begin_row(4);
            batch.push_date(&self.days[day as usize]);
            batch.push_text(&page);
            batch.push_number(status, 0);
            batch.push_number(i128::from(1 + (bits >> 44)), 0);
            batch.end_row();
        }
    }
}

impl RowSource for PagesTable {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        Some(self.spec.rows)
    }

    /// Returns no error, because it reads nothing.
    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        self.fill_chunk(self.chunks.take(), batch);
        Ok(!batch.is_empty())
    }
}

fn schema() -> Schema {
    let columns = [
        ("VIEW_DATE", ColumnType::Date),
        ("PAGE", ColumnType::Text { max_bytes: PAGE_BYTES_MAX as u32 }),
        ("STATUS", ColumnType::NUMBER),
        ("BYTES", ColumnType::NUMBER),
    ];
    Schema {
        columns: columns.into_iter().map(|(name, column_type)| Column::required(name, column_type)).collect(),
    }
}

/// Replaces `page` by the next one drawn.
fn push_page(random: &mut Xoshiro256PlusPlus, page: &mut String) {
    page.clear();
    let site = rank(random.next_u64(), SITES_LOG2);
    let directory = rank(random.next_u64(), DIRECTORIES_LOG2);
    let bits = random.next_u64();
    if bits & 7 == 0 {
        push_place(site, page);
    } else {
        push_host(site, page);
    }
    push_directory(site, directory, page);
    let directory_end = page.len();
    let number = rank(random.next_u64(), PAGES_LOG2);
    // Writing to memory cannot fail.
    let _ = match mix(site << 16 | directory) & 3 {
        0 => write!(page, "/page-{number}.html"),
        1 => write!(page, "/item?id={}", 100_000 + number),
        2 => write!(page, "/{:x}", mix(number) >> 32),
        _ => write!(page, "/{number}"),
    };
    if page.len() > PAGE_BYTES_MAX {
        page.truncate(directory_end.min(PAGE_BYTES_MAX));
    }
}

/// Appends a scheme and a host, the same for all rows of a site.
fn push_host(site: u64, page: &mut String) {
    let traits = mix(site);
    page.push_str(if traits & 7 == 0 { "http://" } else { "https://" });
    if traits & 8 != 0 {
        page.push_str("www.");
    }
    push_name(site, page);
    page.push('.');
    page.push_str(DOMAINS[(traits >> 8) as usize % DOMAINS.len()]);
}

/// Appends a directory of a file system.
fn push_place(site: u64, page: &mut String) {
    let traits = mix(site ^ 0x5A5A);
    // One site in sixteen has its files at the root, for the shortest keys.
    if traits & 15 != 0 {
        page.push_str(PLACES[(traits >> 8) as usize % PLACES.len()]);
    }
    page.push('/');
    push_name(site, page);
}

fn push_name(site: u64, page: &mut String) {
    let traits = mix(site ^ 0xA5A5);
    for syllable in 0..2 + (traits & 3) {
        page.push_str(SYLLABLES[(traits >> (8 + 4 * syllable)) as usize % SYLLABLES.len()]);
    }
}

/// Appends no, one or two levels; popular directories have fewer.
fn push_directory(site: u64, directory: u64, page: &mut String) {
    if directory == 0 {
        return;
    }
    let traits = mix(site << 8 | directory);
    page.push('/');
    page.push_str(SECTIONS[traits as usize % SECTIONS.len()]);
    if directory > 7 {
        page.push('/');
        page.push_str(TOPICS[(traits >> 8) as usize % TOPICS.len()]);
    }
}

/// Draws a rank from 0 to below 2^`log2` by Zipf's law in steps: the frequency of rank r is within
/// a factor of two of 1 / (r + 1).
///
/// It draws the highest bit of rank + 1, then the bits below it, both uniformly. Rejected:
/// logarithms, because libraries round them differently.
#[inline]
fn rank(random: u64, log2: u32) -> u64 {
    let power = ((random >> 32) * u64::from(log2)) >> 32;
    (1 << power) - 1 + ((random & 0xFFFF_FFFF) << power >> 32)
}

#[cfg(test)]
mod tests;
