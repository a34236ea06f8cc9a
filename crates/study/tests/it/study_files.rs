//! Invalid study files: each error is one line, with file and line.

use plumb_run::embedded::Engine;
use plumb_study::definition::parse;

/// A valid study, which each case changes.
const WHOLE: &str = r#"name = "whole"
title = "A whole study"
question = "Is it read?"
workload = "large-sort"
rows = "10K"
blocks = 8

[settings]
parallel_degree = 2

[[factor]]
name = "direct"
setting = "sort_direct_writes"
levels = ["FALSE", "TRUE"]

[[factor]]
name = "area"
setting = "sort_area_size"
levels = ["1M", "2M"]

[[claim]]
name = "direct"
text = "Direct writes make it faster."
factor = "direct"
from = "FALSE"
to = "TRUE"
at = { area = "1M" }
expect = "faster"
"#;

#[test]
fn a_whole_study_is_read() {
    let study = parse("whole.toml", WHOLE, &[&Engine]).expect("well formed");
    assert_eq!((study.rows(), study.blocks, study.factors.len(), study.claims.len()), (10_000, 8, 2, 1));
    assert_eq!(study.claims[0].comparison(&study), "direct=TRUE against direct=FALSE, at area=1M");
}

#[test]
fn what_cannot_be_run_is_refused_with_file_and_line() {
    let cases: &[(&str, &str)] = &[
        // Missing, misspelt or mistyped values.
        ("blocks = 8\n", ""),
        ("blocks = 8", "blocks = 0"),
        ("blocks = 8", "blocks = \"eight\""),
        ("blocks = 8", "blocks = 8\nblokcs = 9"),
        ("rows = \"10K\"", "rows = 0"),
        ("rows = \"10K\"", "rows = \"many\""),
        ("name = \"whole\"", "name = \"a/b\""),
        ("workload = \"large-sort\"", "workload = \"rollup\""),
        ("[[claim]]", "[[claim]"),
        // Settings.
        ("parallel_degree = 2", "parallel_degre = 2"),
        ("parallel_degree = 2", "parallel_degree = 0"),
        ("parallel_degree = 2", "parallel_degree = 2\nparallel_degree = 1"),
        ("parallel_degree = 2", "sort_area_size = \"1M\""),
        ("parallel_degree = 2", "io_method = \"null\""),
        ("parallel_degree = 2", "io_method = \"threads\"\nfilesystemio_options = \"directio\""),
        // Factors and levels.
        ("levels = [\"1M\", \"2M\"]", "levels = [\"1M\", \"1K\"]"),
        ("levels = [\"1M\", \"2M\"]", "levels = [\"1M\"]"),
        ("levels = [\"1M\", \"2M\"]", "levels = [\"1M\", \"1M\"]"),
        ("levels = [\"1M\", \"2M\"]", "levels = [\"1M\", \"1024K\"]"),
        ("setting = \"sort_area_size\"", "setting = \"sort_direct_writes\""),
        ("setting = \"sort_area_size\"\n", ""),
        ("name = \"area\"", "name = \"direct\""),
        (
            "levels = [\"1M\", \"2M\"]",
            "levels = [\"1M\", { label = \"2M\", set = { sort_area_size = \"2M\" } }]",
        ),
        // Claims.
        ("factor = \"direct\"", "factor = \"asynch\""),
        ("to = \"TRUE\"", "to = \"auto\""),
        ("to = \"TRUE\"", "to = \"FALSE\""),
        ("at = { area = \"1M\" }", "at = { area = \"4M\" }"),
        ("at = { area = \"1M\" }", "at = { size = \"1M\" }"),
        ("at = { area = \"1M\" }", "at = { direct = \"TRUE\" }"),
        ("expect = \"faster\"", "expect = \"better\""),
        ("expect = \"faster\"", "expect = \"equal\""),
        ("at = { area = \"1M\" }\nexpect = \"faster\"", "expect = \"faster in p95\""),
        (
            "at = { area = \"1M\" }\nexpect = \"faster\"",
            "expect = \"faster in p95\"\nwith = { factor = \"area\", from = \"1M\", to = \"2M\" }",
        ),
        ("expect = \"faster\"", "expect = \"faster\"\nstatistic = \"speed\""),
        (
            "expect = \"faster\"",
            "expect = \"faster\"\nwith = { factor = \"direct\", from = \"FALSE\", to = \"TRUE\" }",
        ),
    ];
    let mut said = String::new();
    for (from, to) in cases {
        let text = WHOLE.replacen(from, to, 1);
        assert_ne!(text, WHOLE, "{from}");
        let refused = parse("study.toml", &text, &[&Engine]).expect_err(to).to_string();
        assert_eq!(refused.lines().count(), 1, "{refused}");
        assert!(refused.starts_with("study.toml:"), "{refused}");
        let [from, to] = [from, to].map(|text| text.replace('\n', "\\n"));
        said.push_str(&format!("{from} -> {to}\n    {refused}\n"));
    }
    let claimless = WHOLE.split("[[claim]]").next().expect("a first part");
    said.push_str(&format!(
        "no claim\n    {}\n",
        parse("study.toml", claimless, &[&Engine]).expect_err("no claim")
    ));
    insta::assert_snapshot!(said);
}
