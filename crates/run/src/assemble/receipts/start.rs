//! Receipts of the state at the start of a run with a log, which no setting requests.

use super::super::Evidence;
use super::{Ruling, pages_untold};
use crate::evidence::{FileRole, LogStart};
use plumb_engine::storage::tablespace::Purpose;
use plumb_host::readings::Residency;
use plumb_record::Receipt;
use plumb_units::{Bytes, RowCount};

/// Bytes that a log file may hold at the start of a run. They are a checkpoint's record and the
/// ends of transactions it waited for, each at most two log blocks of 4K.
const LOG_BEGUN_MAX: u64 = 64 * Bytes::K;
/// Share of pages that may stay cached, because others may read the files, too.
const CACHED_SHARE_MAX: f64 = 0.01;

/// Returns a receipt for each part of the state; empty if none was required.
pub(super) fn receipts(seen: &Evidence) -> Vec<Receipt> {
    let Some(start) = seen.measured.outcome.log.as_ref().and_then(|log| log.start.as_ref()) else {
        return Vec::new();
    };
    let of = |role: FileRole| seen.measured.files.iter().filter(move |file| file.role == role);
    let data_untold = Purpose::ALL.iter().find_map(|purpose| pages_untold(of(FileRole::Data(*purpose))));
    let log_untold = pages_untold(of(FileRole::Log));
    vec![
        switched(start).inside("start: log switch", "a new log file"),
        at_rest(start).inside("start: checkpoint", "DBWR at rest"),
        cold(start.cached.as_ref(), log_untold).receipt("start: log files", "not cached"),
        cold(start.data_cached.as_ref(), data_untold).receipt("start: data files", "not cached"),
    ]
}

fn switched(start: &LogStart) -> Ruling {
    let evidence = format!("log file {} had {} when the work began", start.file, Bytes(start.offset));
    Ruling::that(start.offset <= LOG_BEGUN_MAX, evidence)
}

fn at_rest(start: &LogStart) -> Ruling {
    let blocks = if start.blocks_written { "no block" } else { "some blocks" };
    let evidence =
        format!("{blocks} changed and not written; a recovery would have read {} of log", start.to_recover);
    Ruling::that(start.blocks_written && start.to_recover.0 <= LOG_BEGUN_MAX, evidence)
}

fn cold(cached: Option<&Residency>, untold: Option<String>) -> Ruling {
    if let Some(why) = untold {
        return Ruling::unknown(why);
    }
    let Some(cached) = cached else {
        return Ruling::unknown("the kernel does not tell which pages of the files it has");
    };
    let (resident, total) = (cached.resident_pages, cached.total_pages);
    let evidence = format!("{} of {} pages in the page cache", RowCount(resident), RowCount(total));
    Ruling::that(resident as f64 <= total as f64 * CACHED_SHARE_MAX, evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_record::Held;

    fn start() -> LogStart {
        LogStart {
            file: 2,
            offset: 1024,
            to_recover: Bytes(1024),
            blocks_written: true,
            cached: None,
            data_cached: None,
        }
    }

    #[test]
    fn each_part_of_the_state_holds_or_is_contradicted() {
        assert_eq!(switched(&start()).held, Held::Held);
        assert_eq!(switched(&LogStart { offset: 1 << 20, ..start() }).held, Held::Contradicted);
        assert_eq!(at_rest(&start()).held, Held::Held);
        assert_eq!(at_rest(&LogStart { blocks_written: false, ..start() }).held, Held::Contradicted);
        let file = tempfile::tempfile().expect("a file");
        file.set_len(1 << 20).expect("a length");
        let residency = plumb_host::readings::drop_cache(std::os::fd::AsFd::as_fd(&file)).expect("told");
        let with = |pages| Residency { resident_pages: pages, total_pages: 256, ..residency };
        assert_eq!(cold(Some(&with(2)), None).held, Held::Held);
        assert_eq!(cold(Some(&with(3)), None).held, Held::Contradicted);
        assert_eq!(cold(Some(&with(3)), Some("tmpfs".to_string())).held, Held::NotChecked);
        assert_eq!(cold(None, None).held, Held::NotChecked);
    }
}
