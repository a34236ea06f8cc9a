//! Snapshots of reports of fixed studies, and properties that no snapshot shows.

use super::fixture::{parallel_sort, troubled, unborn};
use super::why::{Part, Parts};
use super::{document, junit, sections, summary as screen};
use crate::section_text;
use crate::tests::{browser, page_rules};
use plumb_proof::verdict::{Aim, More, Standing, Verdict};
use plumb_report::html::render_section;
use plumb_report::{Document, Headline, html, summary, text};
use plumb_study::analysis::result::{
    ANALYSIS_SCHEMA_VERSION, Analysis, ClaimOutcome, EndsNanos, StudyState, WhyPart,
};
use plumb_study::analysis::tally::OpenClaims;
use plumb_study::compare::COMPARE_SCHEMA_VERSION;
use plumb_study::vocabulary::{Figure, Measure};

/// A study with markup in its texts.
fn hostile() -> Analysis {
    let mut study = parallel_sort();
    let name = "/u02/<b>&\"it's\"</script><script>fail()</script>";
    study.study.title = name.to_string();
    study.arms[2].name = name.to_string();
    study.claims[0].name = name.to_string();
    study.claims[0].why.as_mut().unwrap().parts[0].name = name.to_string();
    study.claims[0].profiles.as_mut().unwrap().treatment.arm = name.to_string();
    study
}

#[test]
fn text_sections_read_from_the_answer_downwards() {
    let study = parallel_sort();
    for section in sections(&study) {
        let shown = section_text(&section, &document(&study));
        insta::assert_snapshot!(format!("study_text_{}", section.id), shown);
    }
}

#[test]
fn an_interval_at_its_own_level_is_named() {
    let mut study = parallel_sort();
    study.claims[1].effect.as_mut().unwrap().confidence = 0.975;
    for section in
        sections(&study).iter().filter(|section| ["verdicts", "effects"].contains(&section.id.as_ref()))
    {
        let lines = text::render_section(section, &document(&study)).join(" ");
        let words = lines.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("hold together in 95% of studies, but that of claim 2 is at 97.5%"),
            "{words}"
        );
    }
}

#[test]
fn published_figures_other_than_times_are_unchanged() {
    let mut study = parallel_sort();
    study.study.measure = Measure::gain("physical reads/s", Figure::Rate("physical reads".to_string()));
    let section = super::published::table(&study).unwrap();
    let lines = text::render_section(&section, &document(&study)).join("\n");
    assert!(!lines.contains("m:ss") && lines.contains("862"), "14:22 are 862: {lines}");
}

#[test]
fn html_sections_show_the_same() {
    let study = parallel_sort();
    let chosen = ["verdicts", "why", "profiles", "effects", "published"];
    for section in sections(&study).iter().filter(|section| chosen.contains(&section.id.as_ref())) {
        insta::assert_snapshot!(format!("study_html_{}", section.id), render_section(section));
    }
    let (head, _) = html::body(&document(&study))
        .split_once("<section")
        .map(|(head, rest)| (head.to_string(), rest.len()))
        .unwrap();
    insta::assert_snapshot!("study_html_contents_and_masthead", head);
}

#[test]
fn whole_reports_of_studies_that_went_wrong() {
    let head = |study: &Analysis| {
        text::render(&document(study)).split("What Lies Under").next().unwrap_or_default().to_string()
    };
    insta::assert_snapshot!("study_text_of_a_troubled_study", head(&troubled()));
    insta::assert_snapshot!("study_text_of_an_unborn_study", text::render(&document(&unborn())));
}

#[test]
fn the_summary_fits_a_screen() {
    let mut many = parallel_sort();
    many.claims = many.claims.iter().cycle().take(30).cloned().collect();
    for study in [parallel_sort(), troubled(), unborn(), hostile(), many.clone()] {
        let shown = summary::render(&document(&study));
        // Reasons are never cut: long ones take more lines.
        let reasons = study.design.blocks_marked.iter().map(|block| block.reason.len() / 60).sum::<usize>();
        assert!(shown.lines().count() <= screen::LINES + reasons, "{}\n{shown}", shown.lines().count());
        assert!(study.design.blocks_used > 0 || !shown.contains(".."), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= summary::LINE_MAX), "{shown}");
    }
    insta::assert_snapshot!("study_summary", summary::render(&document(&parallel_sort())));
    insta::assert_snapshot!("study_summary_of_a_troubled_study", summary::render(&document(&troubled())));
    insta::assert_snapshot!("study_summary_of_many_claims", summary::render(&document(&many)));
}

#[test]
fn text_stays_within_its_columns() {
    let studies = [parallel_sort(), troubled(), unborn(), hostile()];
    studies.iter().for_each(|study| page_rules::keeps_within_its_columns(&document(study)));
}

#[test]
fn a_narrow_terminal_is_kept_within() {
    let studies = [parallel_sort(), troubled(), unborn(), hostile()];
    studies.iter().for_each(|study| page_rules::keeps_within_a_terminal(&document(study)));
}

#[test]
fn an_open_claim_fails_whatever_is_proved() {
    let mut study = parallel_sort();
    study.claims.retain(|claim| matches!(claim.verdict, Verdict::Faster(_)));
    study.claims.truncate(2);
    study.claims.iter_mut().for_each(|claim| claim.outcome = ClaimOutcome::Holds);
    assert_eq!((study.headline().as_str(), study.exit_code()), ("PROVED faster", 0));
    study.claims[1].outcome = ClaimOutcome::Open;
    assert_eq!((study.headline().as_str(), study.exit_code()), ("first claim PROVED faster", 3));
    study.claims.remove(0);
    assert_eq!((study.headline().as_str(), study.exit_code()), ("NOT HELD", 3));
    for open in [OpenClaims::Fail, OpenClaims::Allowed] {
        let xml = junit(&study, open);
        let failed = xml.contains("failures=\"1\"") && xml.contains("message=\"NOT HELD: proved faster by");
        assert!(failed && study.standing_with(open) == Some(Standing::NotProved), "{xml}");
    }
    study.claims[0].verdict = Verdict::NotProved { floor: 3.0, more: More::Blocks(4, Aim::Find(2.0)) };
    let xml = junit(&study, OpenClaims::Allowed);
    assert!(
        xml.contains("failures=\"0\"") && xml.contains("<skipped message=\"NOT PROVED: floor 3.0%"),
        "{xml}"
    );
    assert_eq!(study.standing_with(OpenClaims::Allowed), Some(Standing::Proved));
    assert!(junit(&study, OpenClaims::Fail).contains("failures=\"1\""));
    study.state = StudyState::Interrupted;
    assert_eq!(study.standing_with(OpenClaims::Allowed), Some(Standing::NotProved));
}

#[test]
fn the_worst_verdict_is_the_studys() {
    for (study, headline, code) in
        [(parallel_sort(), "REFUTED", 7), (troubled(), "IMPOSSIBLE", 6), (unborn(), "UNFINISHED", 3)]
    {
        assert_eq!((study.headline().as_str(), study.exit_code()), (headline, code));
    }
    let head: Vec<String> = text::render(&document(&troubled())).lines().take(7).map(String::from).collect();
    assert!(head.iter().any(|line| line.contains("*** IMPOSSIBLE ***")), "{head:?}");
}

#[test]
fn a_difference_that_is_nothing_has_no_shares() {
    let shown = |low_ns: i64| {
        let mut analysis = parallel_sort();
        let why = analysis.claims[0].why.as_mut().unwrap();
        why.ends = Some(EndsNanos { low_ns, high_ns: 90_000_000 });
        let section = sections(&analysis).into_iter().find(|section| section.id == "why").unwrap();
        let lines = text::render_section(&section, &document(&analysis));
        let row = lines.into_iter().find(|line| line.starts_with("DB CPU")).expect("a row");
        // The first column of the drawing may be blank, too.
        row.split_whitespace().filter(|word| word.parse::<f64>().is_ok()).count()
    };
    let (told, nothing) = (shown(1), shown(-90_000_000));
    assert_eq!(told, nothing + 1);
}

#[test]
fn the_parts_of_a_difference_sum_to_it() {
    // The parts may even exceed the whole: the rest balances them.
    let mut why = parallel_sort().claims[0].why.clone().unwrap();
    for seed in 0..200u64 {
        let random = |index: u64| {
            (seed * 6_364_136_223_846_793 + index * 1_442_695_040_888).wrapping_mul(2_862_933_555) >> 20
        };
        why.reference_elapsed_ns = random(1) % 5_000_000_000;
        why.treatment_elapsed_ns = random(2) % 5_000_000_000;
        why.parts = (0..seed % 9)
            .map(|index| WhyPart {
                name: format!("event {index}"),
                wait_class: "Other".to_string(),
                reference_ns: random(10 + index) % 2_000_000_000,
                treatment_ns: random(30 + index) % 2_000_000_000,
                ends: None,
            })
            .collect();
        let parts = Parts::of(&why);
        let sum = |of: fn(&Part) -> i64| parts.rows.iter().map(of).sum::<i64>();
        assert_eq!(sum(|part| part.reference_ns), why.reference_elapsed_ns as i64, "seed {seed}");
        assert_eq!(sum(|part| part.treatment_ns), why.treatment_elapsed_ns as i64, "seed {seed}");
        let whole = why.treatment_elapsed_ns as i64 - why.reference_elapsed_ns as i64;
        assert_eq!(parts.difference_ns(), whole, "seed {seed}");
        assert_eq!(parts.rows.last().map(|part| part.name.as_str()), Some("unaccounted"));
    }
}

#[test]
fn markup_in_names_stays_text_and_the_page_loads_nothing() {
    page_rules::loads_nothing(&html::render(&document(&hostile())));
}

#[test]
fn only_tables_of_the_page_scroll_sideways() {
    for (name, study) in [("study-narrow.html", parallel_sort()), ("study-long-names.html", hostile())] {
        page_rules::scrolls_only_tables(name, &html::render(&document(&study)));
    }
}

#[test]
fn the_context_is_documented() {
    // Fields shared with a run or a bundle are documented there.
    let documented = concat!(
        include_str!("../../../../docs/study.md"),
        include_str!("../../../../docs/record.md"),
        include_str!("../../../../docs/bundle.md")
    );
    let fields = page_rules::undocumented(&serde_json::to_value(troubled()).unwrap(), documented);
    assert!(fields.is_empty(), "docs/study.md does not describe {fields:?}");
    for version in [
        format!("`schema_version` is **{ANALYSIS_SCHEMA_VERSION}**"),
        format!("| `schema_version` | {ANALYSIS_SCHEMA_VERSION} |"),
        format!("prints `schema_version` ({COMPARE_SCHEMA_VERSION})"),
    ] {
        assert!(documented.contains(&version), "docs/study.md does not say {version}");
    }
}

#[test]
fn a_browser_draws_both_profiles_and_no_script_fails() {
    let Some(browser) = browser::browser() else { return };
    for (name, study) in [("study.html", parallel_sort()), ("study-hostile.html", hostile())] {
        let dom = browser::dom(&browser, name, &html::render(&document(&study)));
        let moving = 4;
        assert_eq!(dom.matches("data-plot=\"drawn\"").count(), moving, "a panel a stream that moved");
        assert_eq!(dom.matches("<canvas").count(), moving);
        assert!(!dom.contains("data-errors="), "a script failed: {}", &dom[..400]);
    }
    let dom = browser::dom(&browser, "study-unborn.html", &html::render(&document(&unborn())));
    assert!(!dom.contains("<canvas") && !dom.contains("data-errors="), "{}", &dom[..400]);
}

/// Counts the parts of the headline whose text is wider than they are.
const COUNT_OVERFLOWS: &str = "<script>document.documentElement.dataset.over = \
     [...document.querySelectorAll('.headline div, .headline dd')]\
     .filter(it => it.scrollWidth > it.clientWidth).length\
     </script></body>";

#[test]
fn no_figure_of_the_headline_runs_over_its_tile() {
    let Some(browser) = browser::browser() else { return };
    let study = parallel_sort();
    let over_in = |html: String| {
        let html = html.replace("</body>", COUNT_OVERFLOWS);
        let dom = browser::dom(&browser, "study-headline.html", &html);
        let found = dom.split("data-over=\"").nth(1).and_then(|rest| rest.split('"').next());
        found.expect("the script ran").to_string()
    };
    let over = |page: &Document| over_in(html::render(page));
    let mut page = document(&study);
    let tile = |name: &str, value: &str, aside: &str| Headline {
        name: name.to_string(),
        value: value.to_string(),
        aside: aside.to_string(),
    };
    page.headline.push(tile("Smallest effects", "8.06% to 131.4%", "found with 80% power by claim"));
    page.headline.push(tile(
        "Gain to expect",
        "-32.1%",
        "filesystemio_options=setall sort_direct_writes=true",
    ));
    page.headline.push(tile("One word", &"w".repeat(300), ""));
    assert_eq!(over(&page), "0");
    // The script detects a real overflow.
    let wraps = ".headline dd { overflow-wrap: anywhere;";
    let unwrapped = html::render(&page).replace(wraps, ".headline dd {");
    assert_ne!(over_in(unwrapped), "0");
}

#[test]
fn a_study_of_one_warm_up_has_no_empty_words() {
    let mut study = unborn();
    study.study.measure =
        Measure { name: "n".to_string(), figure: Figure::Count("n".to_string()), ..Measure::elapsed() };
    study.design.warm_up_runs = 1;
    study.claims.clear();
    let shown = text::render(&document(&study));
    assert!(!shown.contains("()") && !shown.contains("1 runs"), "{shown}");
    assert!(shown.lines().all(|line| line.trim() != "->"), "{shown}");
}
