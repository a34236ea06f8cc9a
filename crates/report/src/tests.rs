//! One document with a block of every kind, in all renderings.

use crate::Headline;
use crate::ReportAnswer;
use crate::document::{Block, Document, Drawing, Part, Parts, Section, State, Summary};
use crate::order::{OrderBand, OrderPanel, OrderPlot, OrderPoint, SlotLabel};
use crate::plot::{Bar, Bars};
use crate::profile::{Band, Chart, Limit, PairChart, Side, Stream};
use crate::strip::{Strip, StripLine};
use crate::table::{Cell, Column, Facts, RowKind, Table, Tone};
use crate::{html, summary, text};

fn chart() -> Chart {
    let stream = |name: &str, colour, bytes: [u64; 4]| Stream {
        name: name.to_string(),
        colour,
        bytes: bytes.map(|megabytes| megabytes << 20).to_vec(),
    };
    Chart {
        x_max_s: 4.0,
        y_max_mb_per_s: 100.0,
        bucket_s: 1.0,
        streams: vec![stream("table reads", 0, [90, 80, 0, 0]), stream("temp writes", 2, [0, 40, 120, 10])],
        bands: vec![Band { name: "scan".to_string(), start_s: 0.0, end_s: 2.0 }],
        limit: Some(Limit { name: "device sequential read".to_string(), mb_per_s: 95.0 }),
        strips: vec![Strip {
            title: "vda".to_string(),
            unit: "ms".to_string(),
            top: 8.0,
            ends_s: vec![0.0, 1.0, 2.0, 4.0],
            lines: vec![StripLine {
                name: "read wait".to_string(),
                colour: 0,
                values: vec![Some(0.5), None, Some(8.0)],
            }],
        }],
    }
}

fn order() -> OrderPlot {
    let label = |name: &str, arm, is_copy| SlotLabel { name: name.to_string(), arm, is_copy };
    let point = |x, slot, is_counted| OrderPoint { x, slot, is_counted, hint: "a run".to_string() };
    OrderPlot {
        panels: vec![OrderPanel {
            measure: "elapsed time (s)".to_string(),
            axis: crate::axis::LogAxis::around([1.0, 2.0]).effects(),
            heights: vec![Some(0.1), Some(0.9), None],
            joins_reference: true,
        }],
        slots: vec![label("direct=FALSE", 0, false), label("direct=FALSE, again", 0, true)],
        points: vec![point(0.2, 0, false), point(0.5, 1, true), point(0.8, 0, true)],
        bands: vec![OrderBand { name: "1".to_string(), from: 0.0, to: 1.0, is_counted: true }],
    }
}

/// Every kind of block, with `name` for each name.
pub(crate) fn every(name: &str) -> Document {
    let mut table = Table::new(vec![Column::text("Event"), Column::number("Time (s)")]).with_caption(name);
    table.row(vec![Cell::from(name), Cell::from("1.20").with_share(Some(0.4)).with_tone(Tone::Bad)]);
    table.push(RowKind::Total, vec![Cell::from("Total"), Cell::from("1.20")]);
    let mut facts = Facts::default();
    facts.add("Path", name);
    facts.add("Unknown", "");
    let part =
        |name: &str, shown: &str, share| Part { name: name.to_string(), shown: shown.to_string(), share };
    let parts = vec![part("DB CPU", "1.00 s, 62.5%", 0.625), part(name, "0.60 s, 37.5%", 0.375)];
    let side = |end_s| Side { name: name.to_string(), end_s, chart: chart() };
    let pair = PairChart { title: name.to_string(), sides: [side(3.0), side(4.0)] };
    let bar = Bar { name: name.to_string(), value: 2.0, range: (1.5, 2.5), shown: "2".to_string() };
    let bars = Bars { title: name.to_string(), colour: 1, bars: vec![bar] };
    let headline = |name: &str, value: &str, aside: &str| Headline {
        name: name.to_string(),
        value: value.to_string(),
        aside: aside.to_string(),
    };
    Document {
        title: format!("PLUMB REPORT  {name}"),
        answer: ReportAnswer {
            asked: "Does it read well?".to_string(),
            found: format!("{name} takes 1.60 s"),
            sure: "INVALID, 2 of 3 checks passed".to_string(),
            advice: "run it again".to_string(),
            lines: vec![headline("Elapsed", "1.60 s", "on 2 CPUs"), headline(name, "goes on", "")],
        },
        question: "Does it read well?".to_string(),
        running_head: format!("Run: {name}"),
        width: text::WIDTH,
        state: State { of: "Run".to_string(), word: "INVALID".to_string(), tone: Tone::Bad },
        basis: "2 of 3 checks passed".to_string(),
        reasons: vec![format!("verification failed: {name}")],
        headline: vec![headline("Elapsed", "1.60 s", "on 2 CPUs"), headline("DB Time", "1.60 s", "")],
        sections: vec![
            Section::front("time", "Where the Time Went").block(Block::Parts(Parts(parts))),
            Section::front("profile", "I/O Profile").note("MB/s").block(Block::Profile(chart())),
            Section::front("pair", "Two of Them").block(Block::Pair(pair)),
            Section::front("order", "Order").block(Block::Order(order())),
            Section::detail("table", "Events").note("by time").table(table).facts(facts),
            Section::front("drawings", "Drawings").drawings(vec![Drawing::Bars(bars)]),
            Section::front("nothing", "Nothing"),
        ],
        summary: Summary {
            subject: "large-sort on vm".to_string(),
            lines: vec![
                (String::new(), "  1 a line as it is".to_string()),
                ("  2 a claim  ".to_string(), "and what is said of it".to_string()),
            ],
            facts: vec![("Path".to_string(), name.to_string()), (String::new(), "goes on".to_string())],
        },
        footer: "plumb 0.1.0".to_string(),
        data: serde_json::json!({ "name": name }).to_string(),
    }
}

const HOSTILE: &str = "/u02/<b>&\"it's\"</script><script>fail()</script>";

#[test]
fn every_block_is_set_in_text_html_and_summary() {
    let document = every("/u01/oradata");
    insta::assert_snapshot!("text", text::render(&document));
    insta::assert_snapshot!("html", html::body(&document));
    insta::assert_snapshot!("summary", summary::render(&document));
    assert!(html::render(&document).contains(&html::body(&document)));
}

#[test]
fn text_stays_within_its_columns() {
    for document in [every("/u01"), every(HOSTILE), Document { width: 110, ..every(HOSTILE) }] {
        for line in text::render(&document).lines() {
            assert!(line.chars().count() <= document.width, "too long: {line}");
            assert_eq!(line.trim_end(), line, "trailing blanks");
        }
    }
}

#[test]
fn a_narrow_terminal_is_kept_within() {
    let mut wide = every("/u01/oradata/a/rather/long/path/to/a/file.dbf");
    let mut table = Table::default().text(["Name"]).wrapped("Evidence", 70).text(["File"]);
    table = table.numbers(["Reads", "Read MB/s", "Writes", "Write MB/s", "Requests", "Average"]);
    let words = "a sentence that is long enough to go on over some lines of a narrow column";
    let row = [
        "a name",
        words,
        "/u01/oradata/users01.dbf",
        "1,234,567",
        "1,234.5",
        "7",
        "8.9",
        "123,456,789",
        "1.20ms",
    ];
    table.row(row.map(Cell::from).to_vec());
    wide.sections.push(Section::front("wide", "A Wide Table").table(table));
    for width in [60, 72, 80, 100] {
        for line in text::render_in(&wide, width).lines().chain(summary::render_in(&wide, width).lines()) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
    insta::assert_snapshot!(
        "narrow_table",
        text::render_section(wide.sections.last().expect("it"), &Document { width: 60, ..wide.clone() })
            .join("\n")
    );
    assert_eq!(text::render_in(&wide, 500), text::render(&wide));
}

#[test]
fn markup_in_names_stays_text_and_nothing_is_loaded() {
    let page = html::render(&every(HOSTILE));
    for breach in ["<script>fail", "<b>&", "src=", "href=\"http", "@import", "url("] {
        assert!(!page.contains(breach), "{breach}");
    }
    assert!(page.contains("/u02/&lt;b&gt;&amp;&quot;it&#39;s&quot;&lt;/script&gt;"));
}

#[test]
fn only_bytes_over_time_bring_a_script_with_them() {
    let mut document = every("/u01");
    assert!(html::render(&document).contains("uPlot"));
    document.sections.retain(|section| section.id == "table");
    assert!(!html::render(&document).contains("uPlot"));
}
