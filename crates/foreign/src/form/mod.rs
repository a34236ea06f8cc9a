//! Forms in which reports print tables: text under rulers, pages, JSON.

pub mod html;
pub mod json;
pub mod ruled;
