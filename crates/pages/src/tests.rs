//! What the tests of all pages share: a browser, and rules of every page.

pub(crate) mod browser;
pub(crate) mod page_rules;
