//! The list of bundles as a page, with filters; two bundles are compared by two clicks.
//!
//! ```text
//! / ──"compare"──> /?a=ID: the list says what is chosen ──"with"──> /pages/compare?a=ID&b=ID
//! ```
//!
//! The page has no script. Each word of the search must be somewhere: in the path, the name, the
//! question, the machine, the date or the verdict.

use crate::answer::{HttpRefusal, Named, Site};
use crate::request::{Fields, encoded};
use plumb_pages::list::Field;
use plumb_report::html::{STYLE, escape};
use plumb_study::bundle::listing::{BundleHead, BundleProgress};
use std::collections::BTreeSet;

/// Rows of a page at most, the newest.
const ROWS_MOST: usize = 500;
const TITLES: [&str; 8] = ["Compare", "Bundle", "Kind", "Date", "Elapsed", "Machine", "RouteRequest", "Says"];
/// Fields of the page's query.
pub const TAKES: &[&str] = &["q", "kind", "verdict", "machine", "from", "to", "a"];
const FILTERS: [&str; 6] = ["q", "kind", "verdict", "machine", "from", "to"];
/// Words that are verdicts, each before those that it contains.
const VERDICTS: [&str; 12] = [
    "NOT PROVED",
    "PROVED EQUAL",
    "PROVED",
    "INVALID",
    "VALID",
    "UNVERIFIED",
    "UNSTABLE",
    "IMPOSSIBLE",
    "REFUTED",
    "MIXED",
    "IN DOUBT",
    "SETTLED",
];

/// Returns the style sheet: that of reports, and a few rules for the list.
pub fn style() -> String {
    format!("{STYLE}\n{}", include_str!("../assets/list.css"))
}

/// Renders the list of the bundles that the filters leave, the newest first.
pub fn bundles(served: &Site, fields: &Fields) -> Result<String, HttpRefusal> {
    let all = served.found()?;
    let kept: Vec<&Named> = all.iter().rev().filter(|named| keeps(fields, named)).collect();
    let mut html = "<header><h1>Bundles</h1>".to_string();
    html.push_str(&form(fields, &all));
    let chosen = fields.get("a");
    if !chosen.is_empty() {
        let stop = link(&format!("/?{}", query(fields, "")), "choose another");
        html.push_str(&format!(
            "<p class=\"state unverified\">Compare <strong>{}</strong> with one of these; {stop}</p>",
            escape(chosen)
        ));
    }
    html.push_str("</header>\n");
    let more = kept.len().saturating_sub(ROWS_MOST);
    let and_more = if more > 0 {
        format!("; the newest {ROWS_MOST} are shown, narrow the search")
    } else {
        String::new()
    };
    html.push_str(&format!("<p class=\"count\">{} of {} bundles{and_more}</p>\n", kept.len(), all.len()));
    let titles: String = TITLES.iter().map(|title| format!("<th>{title}</th>")).collect();
    html.push_str(&format!(
        "<div class=\"scroll\"><table class=\"words\"><thead><tr>{titles}</tr></thead><tbody>\n"
    ));
    kept.iter().take(ROWS_MOST).for_each(|named| html.push_str(&row(named, fields)));
    html.push_str("</tbody></table></div>\n");
    if kept.is_empty() {
        html.push_str("<p class=\"no-data\">There is no such bundle.</p>\n");
    }
    Ok(page("Bundles", &(nav(&all) + "<main>\n" + &html + "</main>\n")))
}

pub fn refused(line: &str) -> String {
    let body = format!(
        "<main><h1>plumb</h1><p class=\"state invalid\">{}</p><p>{}</p></main>\n",
        escape(line),
        link("/", "All bundles")
    );
    page("Refused", &body)
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<link rel=\"stylesheet\" href=\"/style.css\">\n<link rel=\"icon\" href=\"data:,\">\n\
         </head>\n<body class=\"list\">\n{body}</body>\n</html>\n",
        escape(title)
    )
}

fn link(address: &str, text: &str) -> String {
    format!("<a href=\"{}\">{}</a>", escape(address), escape(text))
}

/// Links to health, and to the series of each workload with two runs or more.
fn nav(all: &[Named]) -> String {
    let word = |named: &Named| named.found.head.asked.split(' ').next().unwrap_or_default().to_string();
    let runs = || all.iter().filter(|named| named.found.head.kind == "run" && !named.id.is_empty()).map(word);
    let workloads: BTreeSet<String> = runs().filter(|word| !word.is_empty()).collect();
    let several = workloads.iter().filter(|word| runs().filter(|own| own == *word).count() > 1);
    let mut html = "<nav aria-label=\"Pages\"><ol>\n<li><a href=\"/\">Bundles</a></li>\n\
                    <li><a href=\"/pages/health\">Health</a></li>\n"
        .to_string();
    for word in several {
        let address = format!("/pages/series?figure=Elapsed&workload={}", encoded(word));
        html.push_str(&format!("<li>{}</li>\n", link(&address, &format!("{word} over time"))));
    }
    html + "</ol></nav>\n"
}

fn form(fields: &Fields, all: &[Named]) -> String {
    let text = |name: &str, title: &str, kind: &str| {
        format!(
            "<label>{title} <input type=\"{kind}\" name=\"{name}\" value=\"{}\"></label>\n",
            escape(fields.get(name))
        )
    };
    let choice = |name: &str, title: &str, words: &[String]| {
        let option = |word: &String| {
            let is_chosen = if word == fields.get(name) { " selected" } else { "" };
            format!("<option value=\"{0}\"{is_chosen}>{0}</option>", escape(word))
        };
        let options: String = words.iter().map(option).collect();
        format!(
            "<label>{title} <select name=\"{name}\"><option value=\"\">any</option>{options}</select></label>\n"
        )
    };
    let machines: BTreeSet<String> = all.iter().map(|named| named.found.head.machine.clone()).collect();
    let machines: Vec<String> = machines.into_iter().filter(|name| !name.is_empty()).collect();
    let chosen = match fields.get("a") {
        "" => String::new(),
        id => format!("<input type=\"hidden\" name=\"a\" value=\"{}\">", escape(id)),
    };
    format!(
        "<form method=\"get\" action=\"/\">\n{}{}{}{}{}{}{chosen}<button>Filter</button>\n</form>\n",
        text("q", "Search", "search"),
        choice("kind", "Kind", &["run", "study", "calibration"].map(String::from)),
        choice("verdict", "Verdict", &VERDICTS.map(String::from)),
        choice("machine", "Machine", &machines),
        text("from", "From", "date"),
        text("to", "To", "date"),
    )
}

/// Returns the filters as a query, with another choice of the first bundle.
fn query(fields: &Fields, chosen: &str) -> String {
    let filters = FILTERS.iter().map(|name| (*name, fields.get(name))).chain([("a", chosen)]);
    let given = filters.filter(|(_, value)| !value.is_empty());
    given.map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&")
}

fn keeps(fields: &Fields, named: &Named) -> bool {
    let head = &named.found.head;
    let is = |name: &str, value: &str| fields.get(name).is_empty() || fields.get(name) == value;
    let path = named.found.path.as_ref().map_or(String::new(), |path| path.display().to_string());
    let all = [
        &path,
        &head.kind,
        &head.date,
        &head.asked,
        &head.headline,
        &head.question,
        &head.machine,
        &head.device,
    ];
    let all = all.map(|text| text.to_lowercase());
    let words = fields.get("q").to_lowercase();
    let day = head.date.get(..10).unwrap_or_default();
    let to = fields.get("to");
    is("kind", &head.kind)
        && is("machine", &head.machine)
        && (fields.get("verdict").is_empty() || verdict(&head.headline) == fields.get("verdict"))
        && day >= fields.get("from")
        && (to.is_empty() || day <= to)
        && words.split_whitespace().all(|word| all.iter().any(|text| text.contains(word)))
}

/// Returns the first verdict of a headline; empty if it has none.
fn verdict(headline: &str) -> &'static str {
    let first = VERDICTS.iter().filter_map(|word| Some((headline.find(word)?, *word)));
    // Of two at one place, the longer comes first in the table.
    first.min_by_key(|(place, _)| *place).map_or("", |(_, word)| word)
}

fn row(Named { id, found }: &Named, fields: &Fields) -> String {
    let head = &found.head;
    let name = match id.as_str() {
        "" => "-".to_string(),
        id => link(&format!("/bundles/{}/report", encoded(id)), id),
    };
    let chosen = fields.get("a");
    let compares = match (id.as_str(), chosen) {
        ("", _) => String::new(),
        (id, "") => link(&format!("/?{}", query(fields, id)), "compare"),
        (id, chosen) if id == chosen => "chosen".to_string(),
        (id, chosen) => link(&format!("/pages/compare?a={}&b={}", encoded(chosen), encoded(id)), "with this"),
    };
    let elapsed = head.elapsed().map_or(String::new(), |time| Field::time(time).shown);
    let date = head.date.replace('T', " ").replace('Z', "");
    let question = if head.question.is_empty() {
        String::new()
    } else {
        format!("<small>{}</small>", escape(&head.question))
    };
    let cells = [
        ("", compares),
        ("name", name),
        ("", escape(&head.kind)),
        ("", escape(&date)),
        ("number", escape(&elapsed)),
        ("", escape(&head.machine)),
        ("wrapped", escape(&head.asked)),
        (tone(head), format!("<span>{}{question}</span>", escape(&head.headline))),
    ];
    let cell = |(title, (class, text)): (&str, (&str, String))| {
        format!("<td class=\"{class}\" data-label=\"{title}\">{text}</td>")
    };
    format!("<tr>{}</tr>\n", TITLES.into_iter().zip(cells).map(cell).collect::<String>())
}

fn tone(head: &BundleHead) -> &'static str {
    match (head.progress, verdict(&head.headline)) {
        (BundleProgress::Ended, "PROVED" | "PROVED EQUAL" | "VALID" | "SETTLED")
            if !head.headline.contains("DISTURBED") =>
        {
            "wrapped says-good"
        }
        (BundleProgress::Ended, "INVALID" | "IMPOSSIBLE" | "REFUTED" | "UNSTABLE") => "wrapped says-bad",
        _ => "wrapped says-open",
    }
}
