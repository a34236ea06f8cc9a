//! Plans of sorts, held against what runs did.

use crate::program::{fine, plumb};
use serde_json::Value;
use std::path::Path;

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Runs a large sort with this area; returns its plan with what the run did.
fn planned_and_done(here: &Path, area: &str) -> Value {
    let bundle = format!("kept-{area}");
    let setting = format!("sort_area_size={area}");
    let sort = ["run", "large-sort", "--rows", "200K", "--set", "parallel_degree=2", "--set", &setting];
    // A measured read cost decides otherwise on a busy device.
    let same_for_both = ["--set", "sort_direct_writes=true", "--set", "sort_read_fac=5", "--bundle", &bundle];
    fine(here, sort.into_iter().chain(same_for_both));
    json(&fine(here, ["plan-sort", "--against", &bundle, "--key-bytes", "4", "--json"]))
}

#[test]
fn runs_do_what_was_planned() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for area in ["64K", "128K", "512K", "2M"] {
        let plan = planned_and_done(directory.path(), area);
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{area}: {plan:#}"));
        let (each, did) = (&plan["each_server"], &plan["did"]);
        assert_eq!(number(&each["passes"]), number(&did["passes"]), "{area}: {plan:#}");
        // Ranges of keys are not equal, so one server has a run more or fewer.
        let (planned, done) = (number(&each["runs"]) * number(&plan["servers"]), number(&did["runs"]));
        assert!(planned.abs_diff(done) <= 2 + done / 10, "{area}: {plan:#}");
        if number(&did["passes"]) == 1 {
            assert!(
                number(&each["fan_in"]).abs_diff(number(&did["fan_in"])) <= 1 + done / 10,
                "{area}: {plan:#}"
            );
        }
    }
}

#[test]
fn a_plan_divides_memory_and_names_the_areas_that_matter() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let asked = ["plan-sort", "--rows", "100M", "--key-bytes", "8", "--memory", "64M"];
    let settings = ["--set", "parallel_degree=4", "--set", "sort_direct_writes=true"];
    insta::assert_snapshot!("plan_sort", fine(here, asked.into_iter().chain(settings)));
    let plan = json(&fine(here, asked.into_iter().chain(settings).chain(["--json"])));
    // Areas and write buffers of all servers are the memory that was given.
    let bytes = |key: &str| plan[key].as_u64().expect("a number");
    assert_eq!(4 * (bytes("sort_area_bytes") + bytes("write_buffer_bytes")), 64 << 20);
    // With the area that it names, a plan has one pass, and with less than that it has more.
    let passes = |area: u64| {
        let area = format!("sort_area_size={area}");
        let asked = ["plan-sort", "--rows", "100M", "--key-bytes", "8", "--set", &area, "--json"];
        json(&fine(here, asked.into_iter().chain(settings)))["each_server"]["passes"].as_u64()
    };
    assert_eq!(passes(bytes("one_pass_sort_area_bytes")), Some(1));
    assert!(passes(bytes("one_pass_sort_area_bytes") / 2) > Some(1));
    assert!(bytes("full_rate_sort_area_bytes") > bytes("one_pass_sort_area_bytes"));
    assert_eq!(passes(bytes("in_memory_sort_area_bytes")), Some(0));
}

#[test]
fn what_cannot_be_planned_is_refused_in_one_line() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let refused = |arguments: &[&str]| {
        let ended = plumb(here, arguments);
        assert_ne!(ended.code, Some(0), "{arguments:?}");
        ended.stderr
    };
    let asked = ["plan-sort", "--rows", "1M", "--key-bytes", "8"];
    let small = refused(&[&asked[..], &["--memory", "100K", "--set", "parallel_degree=16"]].concat());
    assert_eq!(
        small.trim_end(),
        "plumb: --memory 100K: 16 servers need 64K each besides write buffers; give 1M or more, or fewer servers \
         by --set parallel_degree=N"
    );
    let twice = refused(&[&asked[..], &["--memory", "64M", "--set", "sort_area_size=4M"]].concat());
    assert!(twice.contains("--set sort_area_size=4M decides the same"), "{twice}");
    let none = refused(&["plan-sort", "--against", "no-bundle", "--key-bytes", "8"]);
    assert!(none.contains("no-bundle") && none.lines().count() == 1, "{none}");
    fine(here, ["run", "redo", "--rows", "1K", "--bundle", "redo"]);
    let sorts_nothing = refused(&["plan-sort", "--against", "redo", "--key-bytes", "8"]);
    assert!(sorts_nothing.contains("sorts nothing"), "{sorts_nothing}");
}
