//! Rules over made-up signals: each fires on its own signal, and none on a healthy period.

mod rules;
