//! The settings in effect during the run.

use super::Evidence;
use crate::settings;
use plumb_engine::Setting;
use plumb_record as record;

pub(super) fn settings(seen: &Evidence) -> Vec<record::SettingRow> {
    let (set, log) = (&seen.inside.settings, seen.measured.outcome.log.as_ref());
    let row = |setting: Setting| record::SettingRow {
        name: setting.row().name.to_string(),
        value: settings::shown(set, setting),
        taken: log.and_then(|log| settings::of_log(set, setting, log)),
        is_default: !set.is_explicit(setting),
        source: set.origin(setting).unwrap_or_default().to_string(),
        description: setting.row().help.to_string(),
    };
    set.recorded().map(row).collect()
}
