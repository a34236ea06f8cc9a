//! The claims that come with the program, each with its reasons and with one figure changed; files
//! that are refused.

use super::*;
use crate::audit::ReasonKind::{Contradiction, Flaw, Holds, Slip};
use plumb_proof::verdict::Standing;
use proptest::prelude::*;

fn read(name: &str) -> PublishedClaim {
    catalog::find(name).expect("a claim").unwrap_or_else(|error| panic!("{error}"))
}

fn audited(claim: &PublishedClaim) -> Audit {
    audit(claim, &Backing::None)
}

fn lines(audit: &Audit) -> String {
    let line = |reason: &Reason| format!("  {} ({}): {}\n", reason.kind.word(), reason.rule, reason.text);
    format!("{}: {}\n{}", audit.name, audit.verdict, audit.reasons.iter().map(line).collect::<String>())
}

#[test]
fn every_claim_of_the_program_stands_as_its_reasons_say() {
    let claims = catalog::all().unwrap_or_else(|error| panic!("{error}"));
    let text: String = claims.iter().map(|claim| lines(&audited(claim)) + "\n").collect();
    insta::assert_snapshot!(text);
}

/// Errors of the sources by their own figures: claim, kind and words of the reason.
#[test]
fn what_the_sources_get_wrong_is_found() {
    let found = [
        ("sort-gains-composed", Contradiction, "13.24 to 14.24%, and stated is 8.74 percent"),
        ("sort-one-third", Contradiction, "65.47 to 65.62% (time saved), and stated is one third"),
        ("sort-one-third", Contradiction, "65 to 65.16% (time saved), and stated is almost one third"),
        ("sort-two-thirds", Contradiction, "59.42 to 65.62%"),
        ("sort-two-thirds", Contradiction, "-2.241 to 7.78%"),
        ("sort-always", Contradiction, "42:24 to 43:20: the change is 2.162 to 2.241% (1 of 3 cases)"),
        ("sort-parallel-ten-times", Contradiction, "3.119 to 8.945 times, and stated is ten times"),
        ("sort-parallel-three-times", Holds, "3.119 to 8.945 times, as stated: at least three times"),
        ("sort-write-buffers", Contradiction, "-0.367 to 0.3656%"),
        ("log-direct-io", Holds, "25.14 to 25.16% (time saved); 33.59 to 33.61% (speed gained)"),
        (
            "log-direct-io",
            Holds,
            "162.9 to 163.1% (speed gained), as stated: 163%; not 61.96 to 62% (time saved)",
        ),
        ("log-rates", Flaw, "180.9 s, and stated is 1:48.09"),
        ("log-rates", Flaw, "171 s, and stated is 2:24.41"),
        ("log-rates", Flaw, "125.6 s, and stated is 44.74"),
        ("ssd-alike", Flaw, "the difference is 11.2%"),
        ("ssd-alike", Holds, "22,069 reads/s"),
        ("ssd-alike", Holds, "of 4 readings of the units only this one adds up"),
        ("ext4-xfs", Flaw, "13.6 ms before and 1.7 ms after"),
        ("ext4-xfs", Flaw, "one run of several is shown"),
        ("block-size", Slip, "4,962 blocks x 8 is 39,696 blocks, and the critic computed 39,688"),
        ("block-size", Slip, "0.0513 to 0.0515 seconds, which is above 0.04 seconds"),
        ("block-size", Slip, "0.0578 to 0.058 seconds, which is above 0.04 seconds"),
        ("block-size", Flaw, "9,561 to 9,693 rows/s, which is below 500,000 rows/s"),
        ("block-size", Flaw, "87.77 to 89.57%: a fixed cost"),
        ("array-link", Contradiction, "3.2 GB/s (GB = 10^9)"),
        ("array-link", Holds, "as the critic computed: 93%"),
        ("asm-file-system", Holds, "small = 2 MiB"),
        ("temp-io-size", Flaw, "the whole hardly changed"),
        ("temp-io-size", Holds, "3.46 to 3.461 times"),
        ("temp-latency", Contradiction, "more than the path was ever seen to carry"),
        ("slow-reads", Contradiction, "119.4 GB (GB = 10^9); 111.2 GB (GB = 2^30), and stated is 116 GB"),
        ("reads-seven-times", Holds, "6.606 to 6.613 times"),
        ("reads-seven-times", Flaw, "different machines"),
        ("terabyte-scan", Contradiction, "17.29 to 17.38 GB/s, and stated is almost 18 GB/s"),
        ("terabyte-scan", Contradiction, "57.53 to 57.84 seconds"),
        ("terabyte-scan", Holds, "22.33 MB"),
        ("terabyte-scan", Holds, "1.694 to 1.774 times"),
        ("producer-table", Contradiction, "and stated is 6.4 GB"),
        ("producer-table", Holds, "1.837 to 1.882 times"),
        ("producer-rows", Contradiction, "85,500,000 to 86,500,000 rows"),
        ("tencent-sort", Contradiction, "483.3 to 488 times"),
    ];
    for (name, kind, words) in found {
        let audit = audited(&read(name));
        assert!(audit.of(kind).any(|reason| reason.text.contains(words)), "{words}\n{}", lines(&audit));
    }
}

/// The critic's reasons, each a flaw of the benchmark; nothing of it is called false.
#[test]
fn the_benchmark_of_block_sizes_is_not_proved_for_the_reasons_of_its_critic() {
    let audit = audited(&read("block-size"));
    assert_eq!(audit.standing, Standing::NotProved);
    let flaws: Vec<&str> = audit.of(Flaw).map(|reason| reason.rule.as_str()).collect();
    for rule in [
        "reach",
        "fixed-cost",
        "volume",
        "configuration",
        "timed",
        "waits",
        "order",
        "data",
        "runs",
        "spread",
    ] {
        assert!(flaws.contains(&rule), "{rule}: {flaws:?}");
    }
    let open: Vec<&str> = audit.of(ReasonKind::NotStated).map(|reason| reason.rule.as_str()).collect();
    assert!(open.contains(&"logging"), "{open:?}");
    assert_eq!(audit.of(Slip).count(), 3);
}

/// The claim with another text for one figure.
fn changed(name: &str, figure: &str, text: &str) -> Audit {
    let (file, source) =
        catalog::FILES.iter().find(|(file, _)| catalog::name_of(file) == name).expect("a claim");
    let begin =
        source.find(&format!("\n{figure} = {{ text = \"")).unwrap_or_else(|| panic!("{name}: {figure}"));
    let begin = begin + format!("\n{figure} = {{ text = \"").len();
    let end = begin + source[begin..].find('"').expect("a text ends");
    let old = &source[begin..end];
    let rest = source[end..].to_string();
    // The words of a page change with the figure.
    let line = rest.find('\n').unwrap_or(rest.len());
    let rest = rest[..line].replace(old, text) + &rest[line..];
    let claim = parse(file, name, &format!("{}{text}{rest}", &source[..begin]));
    audited(&claim.unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn one_changed_figure_changes_the_verdict() {
    let (open, impossible) = (Standing::NotProved, Standing::Impossible);
    let changes = [
        ("array-link", "theory", "3.2 GB/s", open),
        ("asm-file-system", "fs-small", "109700 MB/s", impossible),
        ("block-size", "large-16k", "6.31 secs", impossible),
        ("cloud-sort", "gain", "50%", impossible),
        ("ext4-xfs", "first-wait", "3.1", impossible),
        ("innodb-index-threads", "buffer-said", "2 GB", impossible),
        ("log-direct-io", "large-gain", "100%", impossible),
        ("log-rates", "direct-writes-rate", "97.03 writes/s", impossible),
        ("plumb-commits", "plumb", "17,774", impossible),
        ("plumb-index-build", "postgres", "6.477", impossible),
        ("plumb-slob", "postgres", "95,625", impossible),
        ("producer-rows", "rows-in-plan", "89M", open),
        ("producer-table", "target", "11.9 GB", open),
        ("reads-seven-times", "times", "almost 9", impossible),
        ("slow-reads", "total", "119 GB", open),
        ("sort-always", "s4", "44:24", open),
        ("sort-gains-composed", "overall", "13.74 percent", open),
        ("sort-one-third", "neither", "7:20", open),
        ("sort-parallel-ten-times", "times", "more than three times", open),
        ("sort-parallel-three-times", "times", "at least four times", impossible),
        ("sort-two-thirds", "gain", "up to two thirds", open),
        ("sort-write-buffers", "four", "4:16", open),
        ("ssd-alike", "ext4-time", "108784", impossible),
        ("temp-io-size", "share-before", "44%", impossible),
        ("temp-latency", "time", "73", open),
        ("tencent-sort", "times", "about 500", open),
        ("terabyte-scan", "both", "12.4 seconds", open),
    ];
    for (name, figure, text, after) in changes {
        let (before, audit) = (audited(&read(name)).standing, changed(name, figure, text));
        assert_ne!(before, after, "{name}");
        assert_eq!(audit.standing, after, "{figure} = {text}\n{}", lines(&audit));
    }
    let without = catalog::FILES.iter().map(|(file, _)| catalog::name_of(file));
    let without: Vec<&str> =
        without.filter(|name| changes.iter().all(|(changed, ..)| changed != name)).collect();
    assert_eq!(without, ["commits-write-blocks"], "it has no figure: a bundle decides it");
}

/// The audit of a claim of these figures and relations.
fn judged(figures: &str, relations: &str) -> Audit {
    let text = format!(
        "statement = \"x\"\n[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\nplace = \"p\"\n\
         [figures]\n{figures}\n{relations}"
    );
    audited(&parse("c.toml", "c", &text).unwrap_or_else(|error| panic!("{error}")))
}

/// Of a rate more is faster, of a time less; a count may be either.
#[test]
fn faster_and_always_follow_the_kind_of_the_figures() {
    let stands = |unit: &str, from: &str, to: &str, percent: &str| {
        let figures = format!(
            "a = {{ text = \"{from}\", unit = \"{unit}\" }}\nb = {{ text = \"{to}\", unit = \"{unit}\" }}\n\
             c = {{ text = \"{percent}\" }}\n"
        );
        let relation = "[[relation]]\nrule = \"faster\"\nfrom = \"a\"\nto = \"b\"\npercent = \"c\"\n";
        judged(&figures, relation).standing
    };
    let (open, impossible) = (Standing::NotProved, Standing::Impossible);
    for (unit, from, to, percent, expected) in [
        ("requests/s", "50000.12", "53750.40", "7.5%", open),
        ("tps", "50000.12", "53750.40", "7.5%", open),
        ("MB/s", "800", "1000", "25%", open),
        ("NOPM", "800", "1000", "25%", open),
        ("IOPS", "800", "1000", "20%", open),
        ("requests/s", "53750.40", "50000.12", "7.5%", impossible),
        ("MB/s", "1000", "800", "25%", impossible),
        ("s", "1000", "800", "25%", open),
        ("s", "1000", "800", "20%", open),
        ("s", "800", "1000", "25%", impossible),
        ("transactions", "800", "1000", "25%", open),
        ("transactions", "1000", "800", "25%", open),
        ("transactions", "1000", "800", "30%", impossible),
    ] {
        assert_eq!(stands(unit, from, to, percent), expected, "{from} to {to} {unit}: {percent}");
    }
    let always = |unit: &str| {
        let figures = format!(
            "a = {{ text = \"800\", unit = \"{unit}\" }}\nb = {{ text = \"1000\", unit = \"{unit}\" }}\n"
        );
        judged(&figures, "[[relation]]\nrule = \"always\"\nworse = \"a\"\nbetter = \"b\"\n").standing
    };
    assert_eq!([always("s"), always("MB/s")], [impossible, open]);
}

/// The page about claim files has every unit by its first spelling.
#[test]
fn the_page_has_every_unit() {
    let page = include_str!("../../../docs/audit.md");
    let named = plumb_figures::unit::NAMED.iter().flat_map(|(.., names)| *names).copied();
    for unit in named.chain(plumb_figures::unit::COUNTED) {
        let is_there = [" ", "`"].iter().any(|before| page.contains(&format!("{before}{unit}")));
        assert!(is_there, "docs/audit.md has no {unit}");
    }
}

/// The page about claim files has every rule with its roles, and every item with its words.
#[test]
fn the_page_has_every_rule_and_every_item() {
    let page = include_str!("../../../docs/audit.md");
    for rule in crate::rule::RULES {
        let given = rule.roles.iter().filter(|role| !matches!(role.takes, crate::rule::Takes::Threshold(_)));
        let roles: Vec<&str> = given.map(|role| role.name).collect();
        let row = format!("| `{}` | {} |", rule.name, roles.join(", "));
        assert!(page.contains(&row), "docs/audit.md has no {row}");
    }
    for item in crate::checklist::ITEMS {
        let row = format!("| `{}` | ", item.name);
        let line = page.lines().find(|line| line.starts_with(&row)).unwrap_or_else(|| panic!("{row}"));
        if let crate::checklist::Takes::Word(words) = item.takes {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            assert!(line.contains(&words.join(", ")), "{line}: {words:?}");
        }
    }
}

/// A speed that this program claims for itself is on the page that it names.
#[test]
fn the_figures_of_our_own_claims_are_those_of_the_pages() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let spaced = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut count = 0;
    for claim in catalog::all().unwrap_or_else(|error| panic!("{error}")) {
        for figure in &claim.figures {
            let Some((page, words)) = &figure.page else { continue };
            let text = std::fs::read_to_string(format!("{root}/{page}")).expect("a page");
            assert!(
                spaced(&text).contains(&spaced(words)),
                "{page} has no {words:?} of {}, {}",
                claim.name,
                figure.name
            );
            count += 1;
        }
    }
    assert!(count >= 10, "{count} figures of pages");
}

fn sound(standing: Standing, change: Option<[f64; 2]>) -> Backing {
    Backing::Sound {
        bundle: "b".to_string(),
        hash: "0f".to_string(),
        standing,
        verdict: standing.word().to_string(),
        change,
    }
}

#[test]
fn a_sound_bundle_decides_and_a_broken_one_is_invalid() {
    let claim = |what: &str| {
        let text = format!(
            "statement = \"x\"\n[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\nplace = \"p\"\n\
             [figures]\ngain = {{ text = \"~30%\" }}\n[experiment]\nstudy = \"s\"\n{what}\n"
        );
        parse("c.toml", "c", &text).unwrap_or_else(|error| panic!("{error}"))
    };
    let agrees = claim("claim = \"a\"\nfigure = \"gain\"");
    let stands = |claim: &PublishedClaim, backing: &Backing| audit(claim, backing).standing;
    assert_eq!(stands(&agrees, &Backing::None), Standing::NotProved);
    let proved = sound(Standing::Proved, Some([28.0, 33.0]));
    assert_eq!(stands(&agrees, &proved), Standing::Proved);
    assert!(audit(&agrees, &proved).reasons.iter().all(|reason| reason.kind == ReasonKind::Evidence));
    assert_eq!(stands(&agrees, &sound(Standing::Proved, Some([40.0, 50.0]))), Standing::Refuted);
    assert_eq!(stands(&agrees, &sound(Standing::NotProved, None)), Standing::NotProved);
    assert_eq!(stands(&agrees, &Backing::Broken { why: "changed".to_string() }), Standing::Invalid);
    let contrary = claim("contrary = \"a\"");
    assert_eq!(stands(&contrary, &proved), Standing::Refuted);
    // A bundle does not mend figures that contradict each other.
    let slow = read("slow-reads");
    assert_eq!(stands(&slow, &proved), Standing::Impossible);
}

#[test]
fn a_file_that_is_no_claim_is_refused_in_one_line() {
    let good = "statement = \"x\"\n[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\nplace = \"p\"\n";
    let bad = [
        "",
        "WORKLOAD REPOSITORY report for\n\nDB Name   DB Id\n",
        "statement = 5\n",
        "statement = \"x\"\n",
        "statement = \"x\"\n[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\n",
        "[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\nplace = \"p\"\n",
        "[figures]\na = { unit = \"s\" }\n",
        "[figures]\na = { text = \"5\", unit = \"bogomips\" }\n",
        "[figures]\na = { text = \"fast\" }\n",
        "[figures]\na = { text = \"5 parsec\" }\n",
        "[figures]\na = { txt = \"5\" }\n",
        "[figures]\na = { text = \"5 s\", page = \"README.md\", words = \"6 s\" }\n",
        "[figures]\na = { text = \"5 s\", or = \"6 MB\" }\n",
        "[[relation]]\nrule = \"rat\"\n",
        "[[relation]]\nrule = \"rate\"\ncount = \"a\"\n",
        "[figures]\na = { text = \"5 s\" }\n[[relation]]\nrule = \"rate\"\ncount = \"a\"\ntime = \"a\"\nrate = \"a\"\n",
        "[figures]\na = { text = \"5 s\" }\n[[relation]]\nrule = \"sum\"\nparts = []\nwhole = \"a\"\n",
        "[figures]\na = { text = \"5 s\" }\n[[relation]]\nrule = \"same\"\none = [\"a\", \"a\"]\nother = [\"a\", \"a\", \"a\"]\n",
        "[figures]\na = { text = \"5\" }\n[[relation]]\nrule = \"link\"\nlanes = \"a\"\nlink = \"5GFC\"\nrate = \"a\"\n",
        "[[relation]]\nrule = \"rate\"\nby = \"me\"\n",
        "[[relation]]\nrule = \"rate\"\nrates = \"a\"\n",
        "[stated]\nordre = \"fixed\"\n",
        "[stated]\nruns = \"many\"\n",
        "[experiment]\nstudy = \"s\"\n",
        "[experiment]\nstudy = \"s\"\nclaim = \"c\"\nfigure = \"a\"\n",
    ];
    let mut said = String::new();
    for (number, text) in bad.iter().enumerate() {
        let text = if number < 6 { (*text).to_string() } else { format!("{good}{text}") };
        let error = parse("c.toml", "c", &text).expect_err(&text).to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        said.push_str(&format!("{error}\n"));
    }
    insta::assert_snapshot!(said);
}

/// A number with this number of decimals.
fn printed(value: f64, decimals: usize) -> String {
    format!("{value:.decimals$}")
}

proptest! {
    /// Figures that were printed from one measurement never contradict each other.
    #[test]
    fn honest_rounding_is_never_called_a_contradiction(
        count in 1u32..10_000_000, seconds in 0.01f64..10_000.0, decimals in 0usize..4, of_rate in 0usize..4
    ) {
        let time = printed(seconds, decimals);
        prop_assume!(time.parse::<f64>().is_ok_and(|time| time > 0.0));
        let rate = printed(f64::from(count) / seconds, of_rate);
        let text = format!(
            "statement = \"x\"\n[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\nplace = \"p\"\n[figures]\n\
             rows = {{ text = \"{count}\", unit = \"rows\" }}\ntime = {{ text = \"{time} s\" }}\n\
             rate = {{ text = \"{rate} rows/s\" }}\n\
             [[relation]]\nrule = \"rate\"\ncount = \"rows\"\ntime = \"time\"\nrate = \"rate\"\n"
        );
        let claim = parse("c.toml", "c", &text);
        prop_assert!(claim.is_ok(), "{claim:?}");
        let audit = audited(&claim.expect("seen"));
        prop_assert_eq!(audit.standing, Standing::NotProved, "{}", lines(&audit));
        prop_assert_eq!(audit.of(Contradiction).count(), 0);
    }

    /// A file of any text is read or refused.
    #[test]
    fn no_text_stops_the_reader(figure in "\\PC{0,12}", unit in "[a-zA-Z/% ]{0,6}", text in "\\PC{0,200}") {
        let file = format!(
            "statement = \"x\"\n[source]\ntitle = \"t\"\nauthor = \"a\"\ndate = \"2026\"\nplace = \"p\"\n[figures]\n\
             a = {{ text = {figure:?}, unit = {unit:?} }}\n"
        );
        let _ = parse("c.toml", "c", &file);
        let _ = parse("c.toml", "c", &text);
    }
}
