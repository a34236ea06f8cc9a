//! A browser and rules of every page, for the tests of all pages.

pub(crate) mod browser;
pub(crate) mod page_rules;
