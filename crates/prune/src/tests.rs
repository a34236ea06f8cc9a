//! Files of each form, whole and damaged.

use super::*;
use serde_json::{Value, json};
use std::fs;

/// A directory with one trace.
struct Place(tempfile::TempDir);

impl Place {
    fn of(content: &str) -> Place {
        let place = Place(tempfile::tempdir().expect("a directory"));
        fs::write(place.path(), content).expect("a trace");
        place
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("trace")
    }

    fn read(&self, rules: &[&str], mapping: Option<&str>) -> Result<PrunedTrace, PruneError> {
        let rules = rules.iter().map(|text| DropRule::parse(text)).collect::<Result<Vec<_>, _>>()?;
        let mapping = mapping.map(ColumnMapping::parse).transpose()?;
        PrunedTrace::read(&self.path(), rules, mapping.as_ref())
    }

    /// Returns the copy. The trace must stay as it was.
    fn copy(&self, rules: &[&str], mapping: Option<&str>) -> (String, PruneReport) {
        let before = fs::read(self.path()).expect("a trace");
        let trace = self.read(rules, mapping).expect("a trace");
        let mut copy = Vec::new();
        trace.write(&mut copy).expect("written");
        assert_eq!(fs::read(self.path()).expect("a trace"), before, "the original is byte-identical");
        (String::from_utf8(copy).expect("UTF-8"), trace.report())
    }
}

fn refused(content: &str, rules: &[&str], mapping: Option<&str>) -> String {
    let place = Place::of(content);
    let error = place.read(rules, mapping).err().unwrap_or_else(|| panic!("{content} is refused"));
    let error = error.to_string().replace(&place.path().display().to_string(), "TRACE");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

/// A span of trace `a` with times in milliseconds.
fn span(id: u64, parent: u64, times: [u64; 2], name: &str, sql: Option<&str>) -> Value {
    let mut attributes = vec![json!({"key": "peer", "value": {"stringValue": format!("p{id}")}})];
    if let Some(sql) = sql {
        attributes.push(json!({"key": "db.statement", "value": {"stringValue": sql}}));
        attributes.push(json!({"key": "db.response.returned_rows", "value": {"intValue": "5"}}));
    }
    let parent = if parent == 0 { String::new() } else { format!("{parent:016x}") };
    json!({
        "traceId": "0af7651916cd43dd8448eb211c80319c",
        "spanId": format!("{id:016x}"),
        "parentSpanId": parent,
        "name": name,
        "kind": if sql.is_some() { 3 } else { 2 },
        "startTimeUnixNano": format!("{}", 1_700_000_000_000_000_000 + times[0] * 1_000_000),
        "endTimeUnixNano": format!("{}", 1_700_000_000_000_000_000 + times[1] * 1_000_000),
        "attributes": attributes,
    })
}

fn document(spans: &[Value]) -> Value {
    json!({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "s"}, "spans": spans}]}]})
}

fn request() -> Vec<Value> {
    vec![
        span(1, 0, [0, 100], "GET /", None),
        span(2, 1, [10, 40], "catalog", Some("SELECT pg_catalog.f(1)")),
        span(3, 2, [15, 20], "inner", None),
        span(4, 1, [50, 80], "orders", Some("SELECT * FROM orders WHERE id = 7")),
    ]
}

const CATALOG: &str = "sql like \"SELECT pg_catalog%\"";

fn spans(copy: &str) -> Vec<Value> {
    let documents = serde_json::Deserializer::from_str(copy).into_iter::<Value>();
    let list = |value: Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    documents
        .flat_map(|document| list(document.expect("JSON"), "resourceSpans"))
        .flat_map(|resource| list(resource, "scopeSpans"))
        .flat_map(|scope| list(scope, "spans"))
        .collect()
}

/// Start and duration in milliseconds from the start of the first span.
fn times(span: &Value) -> (i64, i64) {
    let time = |key: &str| span[key].as_str().expect("a time").parse::<i64>().expect("a number");
    let [start, end] = [time("startTimeUnixNano"), time("endTimeUnixNano")];
    ((start - 1_700_000_000_000_000_000) / 1_000_000, (end - start) / 1_000_000)
}

#[test]
fn a_span_goes_with_those_below_it_and_later_ones_begin_earlier() {
    for content in [
        document(&request()).to_string(),
        format!("{:#}", document(&request())),
        // A line for each span, the parent last, between metrics.
        request()
            .iter()
            .rev()
            .map(|span| document(std::slice::from_ref(span)).to_string() + "\n")
            .collect::<String>()
            + "{\"resourceMetrics\":[]}\n",
    ] {
        let (copy, report) = Place::of(&content).copy(&[CATALOG], None);
        let mut kept = spans(&copy);
        kept.sort_by_key(times);
        assert_eq!(kept.iter().map(times).collect::<Vec<_>>(), [(0, 70), (20, 30)]);
        assert_eq!(kept[0]["spanId"], kept[1]["parentSpanId"], "links are alike");
        assert_eq!(kept[0]["traceId"], kept[1]["traceId"]);
        assert_ne!(kept[0]["spanId"], "0000000000000001");
        assert_ne!(kept[0]["traceId"], "0af7651916cd43dd8448eb211c80319c");
        let sums =
            |sums: &SpanSums| (sums.spans, sums.executions, sums.fetches, sums.duration_ns / 1_000_000);
        assert_eq!(sums(&report.all.before), (4, 2, Some(10), 100));
        assert_eq!(sums(&report.all.after), (2, 1, Some(5), 70));
        assert_eq!(report.tops[0].name, "GET /");
        let statements: Vec<&str> = report.statements.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(statements, ["select pg_catalog.f(?)", "select * from orders where id = ?"]);
        assert_eq!(report.statements[0].after, SpanSums::default());
        assert_eq!((report.rules, report.notes), (vec![(CATALOG.to_string(), 1)], Vec::new()));
    }
}

#[test]
fn a_copy_differs_by_ids_and_times_alone() {
    // The example of the specification: upper case, and a parent that is elsewhere.
    let example = r#"{
      "resourceSpans": [ {
          "resource": { "attributes": [ { "key": "service.name", "value": { "stringValue": "m\u0079" } } ] },
          "schemaUrl": "x", "unknown": [1.50, 1e3, -0, null, {"spans": [{"spanId": 1}]}],
          "scopeSpans": [ { "spans": [ {
                "traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174",
                "parentSpanId": "EEE19B7EC3C1B173", "name": "I'm a server span", "flags": 256,
                "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": 1544712661000000000,
                "kind": 2, "attributes": [ { "value": { "arrayValue": {"values": [{"intValue": "5"}]} }, "key": "k" } ],
                "links": [ {"spanId": "EEE19B7EC3C1B173", "traceId": "5B8EFFF798038103D269B633813FC60C"},
                           {"traceId": "aB8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B173"} ],
                "events": [ {"timeUnixNano": "1544712660500000000", "name": "e"} ], "status": {} } ] } ] } ] }
    "#;
    let (copy, report) = Place::of(example).copy(&["type=client"], None);
    assert_eq!(report.notes.len(), 2, "a missing parent and an unused rule: {:?}", report.notes);
    assert!(report.tops[0].name.contains("parent is not in the file"));
    let [before, after] = [&spans(example)[0], &spans(&copy)[0]];
    let mut back = copy.clone();
    for key in ["traceId", "spanId", "parentSpanId"] {
        let [old, new] = [before, after].map(|span| span[key].as_str().expect("an id"));
        assert!(old != new && old.len() == new.len() && new == new.to_uppercase(), "{old} {new}");
        back = back.replace(new, old);
    }
    assert_eq!(back, example, "byte for byte");
    assert_eq!(after["links"][0]["traceId"], after["traceId"], "links within the file follow");
    assert_eq!(after["links"][0]["spanId"], after["parentSpanId"]);
    assert_eq!(after["links"][1], before["links"][1], "and others stay");
    let (again, _) = Place::of(example).copy(&["type=client"], None);
    let (other, _) = Place::of(example).copy(&["type=server", "type=client"], None);
    let (of_copy, _) = Place::of(&copy).copy(&["type=client"], None);
    assert_eq!(again, copy);
    assert!(spans(&other).is_empty());
    assert_ne!(of_copy, example, "a copy of a copy has ids of its own");
}

#[test]
fn commas_and_events_follow_the_spans_that_are_left() {
    let mut spans_of = request();
    spans_of[3]["events"] =
        json!([{"timeUnixNano": "1700000000055000000"}, {"timeUnixNano": "1700000000999000000"}]);
    for rule in
        ["name=catalog", "name=orders", "name like '%'", "name=GET /", "attr.peer=p4", "type=3", "name=none"]
    {
        let (copy, report) = Place::of(&format!("{:#}", document(&spans_of))).copy(&[rule], None);
        let kept = spans(&copy);
        assert_eq!(kept.len() as u64, report.all.after.spans, "{rule}: {copy}");
        if rule == "name=catalog" {
            let times: Vec<&str> =
                [0, 1].map(|at| kept[1]["events"][at]["timeUnixNano"].as_str().expect("a time")).to_vec();
            assert_eq!(times, ["1700000000025000000", "1700000000050000000"], "moved, and within the span");
        }
    }
}

#[test]
fn what_is_no_otlp_is_one_line() {
    let whole = document(&request()).to_string();
    for cut in [10, 60, 200, whole.len() - 200, whole.len() - 1] {
        let why = refused(&whole[..cut], &[], None);
        assert!(why.starts_with("TRACE is cut off in line 1, within ") && why.contains("unknown"), "{why}");
    }
    let one = |change: fn(&mut Value)| {
        let mut all = request();
        change(&mut all[1]);
        document(&all).to_string()
    };
    let cases: [(String, &str); 15] = [
        (String::new(), "no span is in it"),
        ("{}".to_string(), "no span is in it"),
        ("{\"resourceLogs\": []}".to_string(), "no span is in it"),
        ("{\"data\": [{\"traceID\": \"1\", \"spans\": [{}]}]}".to_string(), "no span is in it"),
        (
            one(|span| span["endTimeUnixNano"] = json!("1700000000000000000")),
            "span catalog ends 10000000 ns before",
        ),
        (one(|span| span["endTimeUnixNano"] = json!("0")), "its duration is unknown, and not 0"),
        (one(|span| span["startTimeUnixNano"] = json!("soon")), "time \"soon\", expected nanoseconds"),
        (one(|span| span["startTimeUnixNano"] = json!("-5")), "expected nanoseconds"),
        (one(|span| span["spanId"] = json!("12")), "spanId is \"12\", expected 16 hexadecimal digits"),
        (one(|span| span["spanId"] = json!("äääääääää")), "expected 16 hexadecimal digits"),
        (one(|span| span["traceId"] = json!(null)), "span catalog has no traceId"),
        (one(|span| span["spanId"] = json!("0000000000000001")), "spans 1 and 2 have one id"),
        (one(|span| span["parentSpanId"] = json!("0000000000000003")), "a circle"),
        (one(|span| span["parentSpanId"] = json!("0000000000000002")), "a circle"),
        (whole.replace("\"spans\":[", "\"spans\":[7,"), "a span is no object"),
    ];
    for (content, why) in cases {
        let line = refused(&content, &[], None);
        assert!(line.starts_with("TRACE") && line.contains(why), "{line}");
    }
    for damaged in
        ["{]", "{\"a\" 1}", "{\"a\": tru}", "{\"a\": 1 2}", "{\"a\": \"\u{1}\"}", "{1: 2}", "[1,]", "{} x"]
    {
        let line = refused(damaged, &[], None);
        assert!(
            line.starts_with("TRACE line 1: ") && line.contains("expected") || line.contains("is no"),
            "{line}"
        );
    }
    let deep = "[".repeat(100_000);
    assert!(refused(&deep, &[], None).contains("more than 200 levels"));
}

#[test]
fn several_tops_are_told() {
    let mut all = request();
    all[1]["parentSpanId"] = json!("");
    let (_, report) = Place::of(&document(&all).to_string()).copy(&[], None);
    assert!(
        report.notes[0].starts_with("top spans behind the first of their trace: 1; "),
        "{:?}",
        report.notes
    );
}

/// Spans of the source's table: a round trip, a serialisation, executions, a fetch, and a commit.
const SOURCE: &str = "\
PM_INSTANCE_ID,PM_TRANS_DEFN_ID,PM_PERF_TRACE,PM_TRANS_DURATION,PM_PARENT_INST_ID,PM_TOP_INST_ID,\
PM_METRIC_VALUE3,PM_METRIC_VALUE4,PM_METRIC_VALUE5,PM_METRIC_VALUE6,PM_METRIC_VALUE7,PM_ADDTNL_DESCR\r
10000000000000010,400,\"Trace, with a name of thirty letters\",100,0,10000000000000010,1,80,3,4,x,a\r
10000000000000011,427,T,90,10000000000000010,10000000000000010,70,,,,, \r
10000000000000012,408,T,40,10000000000000011,10000000000000010,,,,,SELECT PSLOCK,\r
10000000000000013,414,T,10,10000000000000012,10000000000000010,3,,,,SELECT PSLOCK,\r
10000000000000014,408,T,20,10000000000000011,10000000000000010,,,,,SELECT PS_ORDER,\"a, \"\"b\"\"\"\r
10000000000000015,414,T,5,10000000000000014,10000000000000010,1,,,,,\r
10000000000000016,425,T,10,10000000000000011,10000000000000010,,,,,,\r
";

#[test]
fn the_sums_of_the_sources_table_are_corrected() {
    let (copy, report) = Place::of(SOURCE).copy(&["sql like 'SELECT PSLOCK%'", "type=425"], None);
    let rows: Vec<Vec<&str>> = copy.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(
        (copy.lines().count(), rows[0].join(",")),
        (5, SOURCE.lines().next().unwrap_or_default().to_string())
    );
    // 50 ms of 100 are gone, and of the time in SQL; one execution of three, three fetches of four.
    assert!(rows[1].join(",").contains(",400,\"xPTTrace, with a name of thirt\",50,0,"), "{copy}");
    assert!(rows[1].join(",").ends_with(",1,30,2,1,x,a"), "{copy}");
    assert_eq!((rows[2][3], rows[2][6]), ("40", "20"));
    assert!(
        rows[3].join(",").ends_with(",SELECT PS_ORDER,\"a, \"\"b\"\"\""),
        "other fields keep their bytes"
    );
    assert!(copy.contains("\"\"\"\r\n") && copy.ends_with("\r\n"));
    let ids: Vec<u128> = rows[1..].iter().map(|row| row[0].parse().expect("a number")).collect();
    assert!(ids[0] < 10_000_000_000_000_000 && ids == [ids[0], ids[0] + 1, ids[0] + 4, ids[0] + 5]);
    assert_eq!((rows[2][4], rows[4][5]), (rows[1][0], rows[1][0]), "links are alike");
    assert_eq!(report.all.before.fetches.zip(report.all.after.fetches), Some((4, 1)));
    assert_eq!((report.all.before.executions, report.all.after.executions), (2, 1));
    assert_eq!(report.all.after.duration_ns, 50_000_000);
    assert!(report.all.after.sql_ns <= report.all.after.duration_ns);
    assert!(report.tops[0].name.ends_with(" 10000000000000010"), "{}", report.tops[0].name);
    assert_eq!(report.notes, [] as [&str; 0]);
    // Without the correction of metric 4, more than 100% of the duration would be in SQL.
    let uncorrected: u32 =
        SOURCE.lines().nth(1).and_then(|row| row.rsplit(',').nth(4)).expect("a sum").parse().expect("ms");
    let duration: u32 = rows[1].iter().rev().nth(8).expect("a duration").parse().expect("ms");
    assert!(uncorrected > duration, "{uncorrected} of {duration}");
}

#[test]
fn columns_are_those_of_a_mapping() {
    let map = "id=Span,parent=Above,duration_s=Took,sql=Text,fetches=Rows,type=Kind,name=Name";
    let content = "Name;Span;Above;Took;Kind;Text;Rows\nA;a-1;;2.5;web;;\nB;a-2;a-1;1.25;db;select 1;7\n\nC;a-3;a-1;.5;db;select 2;";
    let (copy, report) = Place::of(content).copy(&["attr.Rows=7"], Some(map));
    assert_eq!(
        copy,
        "Name;Span;Above;Took;Kind;Text;Rows\nA;xa-1;;1.25;web;;\n\nC;xa-3;xa-1;.5;db;select 2;"
    );
    assert_eq!((report.all.before.fetches, report.all.after.fetches), (Some(7), None), "unknown, and not 0");
    assert_eq!(report.statements[0].name, "select ?");
    let numbers = "id,up,ms\n7,0,10\n8,7,4\n";
    let (copy, _) = Place::of(numbers).copy(&["type=x"], Some("id=ID,parent=up,duration_ms=ms"));
    assert_eq!(copy, "id,up,ms\n9,0,10\n10,9,4\n", "the next free ids");
}

#[test]
fn what_is_no_table_of_spans_is_one_line() {
    let map = Some("id=id,parent=up,duration_ms=ms,top=top");
    let cases = [
        ("id,up,ms,top\n", map, "no row below the names"),
        (
            "id,up,Ms2,top\n1,0,1,1\n",
            map,
            "there is no column ms for duration_ms; the file has id, up, Ms2, top",
        ),
        ("id,up,ms,top\n1,0,1\n2,1,1,1\n", map, "line 2: the row has 3 fields, expected 4"),
        ("id,up,ms,top\n1,0,5,1\n2,1,1", map, "is cut off in line 3, within a row"),
        ("id,up,ms,top\n1,0,5,1\n2,1,\"1", map, "within a text in quotes"),
        ("id,up,ms,top\n1,0,-5,1\n", map, "span 1 has the duration \"-5\", expected a number of 0 or more"),
        ("id,up,ms,top\n1,0,,1\n", map, "has the duration \"\""),
        ("id,up,ms,top\n1,0,1e3,1\n", map, "has the duration \"1e3\""),
        ("id,up,ms,top\n1,0,99999999999999,1\n", map, "has the duration"),
        ("id,up,ms,top\n1,0,5,1\n2,0,5,1\n", map, "span 2 has no parent, and another top: 1"),
        ("id,up,ms,top\n1,0,5,1\n2,1,5,2\n", map, "span 2 has another top than span 1 above it"),
        ("id,up,ms,top\n1,2,5,1\n2,1,5,1\n", map, "a circle"),
        ("id,up,ms,top\n1,0,5,1\n1,0,5,1\n", map, "have one id"),
        ("id,up,ms,top\n,0,5,1\n", map, "the span has no id in id"),
        ("id,up,ms,top\n1,0,5,1\n", Some("id=id,parent=up"), "no column is named for one of duration_s"),
        ("", Some("id=id,parent=up,duratoin_ms=x"), "did you mean duration_ms?"),
        ("", Some("id="), "id names no column"),
    ];
    for (content, mapping, why) in cases {
        let line = refused(content, &["type=1"], mapping);
        assert!(line.contains(why), "{line}");
    }
    let line = refused("id,up,ms,top\n1,0,5,1\n", &["attr.Top=1"], map);
    assert!(line.contains("the file has no column Top; did you mean attr.top?"), "{line}");
    let short = SOURCE.replace("PM_PARENT_INST_ID", "PARENT");
    assert!(refused(&short, &[], None).contains("there is no column PM_PARENT_INST_ID for parent"));
}

fn entry(at: &str, process: u32, ms: &str, query: &str) -> [String; 3] {
    let message =
        format!("duration: {ms} ms  plan:\nQuery Text: {query}\nResult  (cost=0.00..0.01 rows=1 width=4)");
    let csv = message.replace('"', "\"\"");
    [
        format!("{at} [{process}] LOG:  {}\n{at} [1] LOG:  checkpoint\n", message.replace('\n', "\n\t")),
        format!(
            "{at},\"u\",\"d\",{process},,x,3,\"SELECT\",,,0,LOG,00000,\"{csv}\",,,\"psql\"\n{at},,,1,,,,,,,,LOG,0,\"x\"\n"
        ),
        json!({"timestamp": at, "pid": process, "error_severity": "LOG", "message": message}).to_string()
            + "\n{}\n",
    ]
}

#[test]
fn a_statement_of_a_function_is_below_its_caller() {
    let at = |ms: u32| format!("2026-01-01 10:00:00.{ms:03} UTC");
    let entries = [
        entry(&at(100), 7, "50.000", "select count(*) from \"pg_class\""),
        entry(&at(101), 8, "20.000", "select 1 from other"),
        entry(&at(150), 7, "30.000", "select 1 from inner"),
        entry(&at(200), 7, "180.250", "select f()"),
        entry(&at(300), 7, "10.000", "select 1 from later"),
    ];
    for form in 0..3 {
        let content: String = entries.iter().map(|forms| forms[form].as_str()).collect();
        let (copy, report) = Place::of(&content).copy(&["sql like '%pg_class%'"], None);
        let expected = content.replace(&entries[0][form][..entries[0][form].find(['\n']).unwrap_or(0)], "");
        assert!(copy.len() < content.len() && !copy.contains("pg_class"), "{copy}");
        assert!(copy.contains("duration: 130.250 ms  plan:") && !copy.contains("180.250"), "{copy}");
        // All other lines are there.
        let others = ["checkpoint", "x\"", "{}"][form];
        assert_eq!(copy.matches(others).count(), expected.matches(others).count(), "{copy}");
        let [before, after] = [&report.all.before, &report.all.after].map(|sums| sums.duration_ns / 1000);
        assert_eq!((before, after), (20_000 + 180_250 + 10_000, 20_000 + 130_250 + 10_000));
        assert_eq!((report.all.after.executions, report.all.after.fetches), (4, None));
        assert_eq!(report.notes, [] as [&str; 0]);
    }
}

#[test]
fn times_that_are_too_coarse_are_told() {
    let short = entry("2026-01-01 10:00:00 UTC", 7, "0.200", "select 1 from a")[0].clone()
        + &entry("2026-01-01 10:00:00 UTC", 7, "0.900", "select 1 from b")[0];
    let (copy, report) = Place::of(&short).copy(&["sql like '%b'"], None);
    assert!(!copy.contains("from b") && copy.contains("from a"));
    assert!(
        report.notes[0].starts_with("statements that may be below another one: 1; "),
        "{:?}",
        report.notes
    );
    let none = entry("", 7, "0.200", "select 1 from a")[0].clone();
    let (_, report) = Place::of(&none).copy(&[], None);
    assert!(
        report.notes[0].starts_with("statements without a process or a time in the log: 1; "),
        "{:?}",
        report.notes
    );
    let csv = entry("2026-01-01 10:00:00 UTC", 7, "0.200", "select 1")[1].clone();
    assert!(refused(&csv[..csv.find("Result").unwrap_or(0)], &[], None).contains("within an entry"));
}

#[test]
fn two_traces_are_compared_by_statement() {
    let place = Place::of(&document(&request()).to_string());
    let (copy, _) = place.copy(&[CATALOG], None);
    let other = Place::of(&copy);
    let [one, two] = [&place, &other].map(|place| place.read(&[], None).expect("a trace"));
    let report = one.compared(&two);
    let rows: Vec<_> =
        report.statements.iter().map(|row| (row.before.executions, row.after.executions)).collect();
    assert_eq!((rows, report.all.after.spans), (vec![(1, 0), (1, 1)], 2));
    assert!(PrunedTrace::recognises(&place.path()) && !PrunedTrace::recognises(place.0.path()));
}

#[test]
fn a_file_that_changes_is_refused() {
    let place = Place::of(&document(&request()).to_string());
    let trace = place.read(&[CATALOG], None).expect("a trace");
    fs::write(place.path(), document(&request()).to_string().replace("orders", "ORDERS")).expect("written");
    let error = trace.write(Vec::new()).expect_err("it changed").to_string();
    assert!(error.ends_with("it changed while it was read; copy it first"), "{error}");
}
