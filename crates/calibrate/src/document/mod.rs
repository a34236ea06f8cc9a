//! The report of a calibration.

mod summary;
