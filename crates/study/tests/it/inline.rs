//! Studies given on the command line.

use plumb_run::embedded::Engine;
use plumb_study::definition::{Given, Inline, Varied, inline, parse};

fn stated(option: &str, name: &str, value: &str) -> Given {
    Given { origin: option.to_string(), name: name.to_string(), value: value.to_string() }
}

fn varied(setting: &str, values: &[&str]) -> Varied {
    Varied {
        origin: format!("--factor {setting}"),
        setting: setting.to_string(),
        values: values.iter().map(ToString::to_string).collect(),
        expect: "differs".to_string(),
    }
}

fn of(workload: &str, factors: &[Varied]) -> Inline {
    Inline {
        workload: workload.to_string(),
        parameters: Vec::new(),
        settings: Vec::new(),
        factors: factors.to_vec(),
        measure: None,
        expects_same: false,
    }
}

#[test]
fn values_become_the_study_that_reads_back_from_its_text() {
    let io = varied("filesystemio_options", &["none", "setall"]);
    let asked = Inline {
        settings: vec![stated("--set", "db_cache_size", "16M")],
        parameters: vec![stated("--sessions", "sessions", "8")],
        ..of("slob", &[io, varied("path", &["/u 01/a", "/u02"])])
    };
    let study = inline(&asked, &Engine).expect("it can be run");
    assert_eq!(study.name, "slob-filesystemio_options-path");
    assert_eq!(study.measure.name, "execute count/s");
    assert_eq!(study.arm_name(&[1, 0]), "filesystemio_options=setall path=/u 01/a");
    assert_eq!(study.claims[1].name, "path-_u02");
    assert_eq!(study.work.as_ref().and_then(|work| work.value("sessions")), Some(8));
    assert_eq!(parse("kept", &study.to_toml(), &[&Engine]), Ok(study));
}

#[test]
fn what_is_compared_follows_from_how_a_workload_ends() {
    let measure = |workload, parameters| {
        let asked =
            Inline { parameters, ..of(workload, &[varied("filesystemio_options", &["none", "setall"])]) };
        inline(&asked, &Engine).expect("it can be run").measure.name
    };
    assert_eq!(measure("redo", Vec::new()), "elapsed");
    assert_eq!(measure("slob", vec![stated("--work-loop", "work-loop", "100")]), "elapsed");
    assert_eq!(measure("slob", vec![stated("--rate", "rate", "100")]), "db time per execute count");
}

#[test]
fn a_refusal_names_the_option() {
    let refused = |asked: &Inline| inline(asked, &Engine).expect_err("refused").to_string();
    let io = || varied("filesystemio_options", &["none", "setall"]);
    assert_eq!(
        refused(&of("redo", &[varied("filesystemio_options", &["none", "all"])])).split(':').next(),
        Some("--factor filesystemio_options")
    );
    assert_eq!(
        refused(&of("redo", &[varied("rows", &["1K", "2K"])])),
        "--factor rows: rows decides the data, which all runs of a study share; give it one value, and compare two studies"
    );
    assert_eq!(
        refused(&of("large", &[io()])),
        "plumb study large: there is no workload \"large\"; it takes large-sort, record-sort, redo, ctas, slob, scan, producer (did you mean large-sort?)"
    );
    let twice = Inline {
        settings: vec![stated("--set filesystemio_options=none", "filesystemio_options", "none")],
        ..of("redo", &[io()])
    };
    assert_eq!(
        refused(&twice),
        "--factor filesystemio_options: filesystemio_options is fixed for all arms and varied by the factor \
         filesystemio_options; leave one of them out"
    );
    let unknown = Inline { parameters: vec![stated("--size 1M", "size", "1M")], ..of("redo", &[io()]) };
    assert_eq!(
        refused(&unknown),
        "--size 1M: size: redo has no such parameter; it has rows, buffer, sessions, seed"
    );
}
