//! `plumb export`, `plumb head` and `plumb count`: loaded rows come out again, in the requested
//! order. Also the inputs of a first day: a pipe, other delimiters and dates, hints.

use crate::program::{command, fine, names, refused};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const SHOPS: &str = "id,city,opened,amount\n3,Ulm,2020-01-31,2.5\n1,\"Bad Tölz, Süd\",2019-12-01 08:30:00,-10\n2,,2021-05-05,\n";

#[test]
fn what_was_loaded_comes_out_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("shops.csv"), SHOPS).expect("a file");
    for conventional in [&[][..], &["--conventional"]] {
        let arguments = [&["load", "shops.csv", "--table", "shops"], conventional].concat();
        fine(directory.path(), arguments);
        assert_eq!(fine(directory.path(), ["export", "shops"]), SHOPS);
        let some = fine(directory.path(), ["export", "shops", "--columns", "amount,ID", "--limit", "2"]);
        assert_eq!(some, "amount,id\n2.5,3\n-10,1\n");
        insta::assert_snapshot!("head", fine(directory.path(), ["head", "shops", "2"]));
        fine(directory.path(), ["drop", "shops"]);
    }
}

#[test]
fn numbers_come_back_as_they_were_written() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text =
        "shortest,float,fixed,bare,whole\n10,10.0,-2.50,.5,3\n2.5,0.25,10.00,-.25,-4\n0,-3.5,0.00,3,0\n";
    fs::write(directory.path().join("t.csv"), text).expect("a file");
    for conventional in [&[][..], &["--conventional"]] {
        let said = fine(directory.path(), [&["load", "t.csv", "--table", "t"], conventional].concat());
        assert_eq!(said.matches("all values are numbers").count(), 5, "{said}");
        assert_eq!(fine(directory.path(), ["export", "t"]), text);
        let shown = fine(directory.path(), ["head", "t", "--columns", "fixed,bare"]);
        assert!(shown.contains("-2.50") && shown.contains("-.25"), "{shown}");
        fine(directory.path(), ["drop", "t"]);
    }
}

#[test]
fn dates_come_back_as_they_were_written_and_declared_numbers_with_their_scale() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = "day,at,stamp,amount\n31/12/2020,3.4.2021 09:05,2021-03-28T01:00:00+01:00,302.60\n\
                01/02/2021,28.11.2021,2021-03-29T23:59:58+01:00,5.00\n";
    fs::write(directory.path().join("t.csv"), text).expect("a file");
    for conventional in [&[][..], &["--conventional"]] {
        let types = ["load", "t.csv", "--table", "t", "--types", "amount=NUMBER(38,2)"];
        let said = fine(directory.path(), [&types[..], conventional].concat());
        assert_eq!(said.matches("all values are dates").count(), 3, "{said}");
        assert_eq!(fine(directory.path(), ["export", "t"]), text);
        assert!(fine(directory.path(), ["head", "t"]).contains("3.4.2021 09:05"));
        fine(directory.path(), ["drop", "t"]);
    }
    // With a given type, dates are read and written in the given form.
    let given = ["load", "t.csv", "--table", "t", "--types", "day=DATE", "--date-format", "DD/MM/YYYY"];
    fine(directory.path(), given);
    assert_eq!(fine(directory.path(), ["export", "t"]), text);
    fs::write(directory.path().join("mixed.csv"), "at\n2021-1-5\n2021-01-06\n").expect("a file");
    let said = fine(directory.path(), ["load", "mixed.csv", "--table", "mixed"]);
    assert!(said.contains("--types makes it a DATE all the same"), "{said}");
    assert_eq!(fine(directory.path(), ["export", "mixed"]), "at\n2021-1-5\n2021-01-06\n");
}

#[test]
fn parquet_is_refused_with_the_build_that_has_it() {
    if cfg!(feature = "parquet") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (code, line) = refused(directory.path(), ["export", "t", "--format", "parquet"]);
    assert_eq!(code, 2);
    assert!(line.contains("`cargo build --release --features parquet` has it"), "{line}");
}

#[test]
fn rows_come_in_the_order_of_an_index() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut text = "id,name\n".to_string();
    (0..20_000_u32).for_each(|row| {
        let _ = writeln!(text, "{},name {}", row.wrapping_mul(2_654_435_761) % 20_011, row % 97);
    });
    fs::write(directory.path().join("t.csv"), &text).expect("a file");
    fine(directory.path(), ["load", "t.csv", "--table", "t"]);
    fine(directory.path(), ["index", "t", "id desc", "--name", "by_id"]);
    let exported = fine(directory.path(), ["export", "t", "--order-by", "by_id", "--output", "out.csv"]);
    assert_eq!(exported, "out.csv: 20,000 rows\n");
    let out = fs::read_to_string(directory.path().join("out.csv")).expect("made");
    let id = |line: &str| line.split(',').next().and_then(|id| id.parse::<u32>().ok()).expect("an id");
    let ids: Vec<u32> = out.lines().skip(1).map(id).collect();
    assert!(ids.len() == 20_000 && ids.is_sorted_by(|one, two| one >= two));
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&out), sorted(&text));
    let first = fine(directory.path(), ["export", "t", "--order-by", "BY_ID", "--limit", "3"]);
    assert_eq!(first.lines().collect::<Vec<_>>(), out.lines().take(4).collect::<Vec<_>>());
    let mut said = String::new();
    for case in [
        &["export", "u"][..],
        &["export", "t", "--columns", "nobody"],
        &["export", "t", "--order-by", "nobody"],
        &["export", "t", "--output", "out.csv"],
        &["head", "t", "--order-by", "nobody"],
    ] {
        let (code, line) = refused(directory.path(), case);
        let _ = write!(said, "$ plumb {}\n{line} [{code}]\n\n", case.join(" "));
    }
    insta::assert_snapshot!("refused", said);
    assert_eq!(names(directory.path()), ["out.csv", "plumb.db", "t.csv"]);
}

#[test]
fn rows_longer_than_a_block_come_whole_in_the_order_of_an_index() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let line = |id: usize| {
        // Some rows take a part of a block of 2K, some several blocks.
        let text = |length: usize| format!("{id}.").repeat(length)[..length].to_string();
        format!("{id},{},{}\n", text(1 + id * 37 % 3900), text(1 + id * 53 % 3900))
    };
    let ids: Vec<usize> = (0..400).map(|row| row * 211 % 401).collect();
    let of = |ids: &[usize]| "id,a,b\n".to_string() + &ids.iter().map(|id| line(*id)).collect::<String>();
    fs::write(directory.path().join("t.csv"), of(&ids)).expect("a file");
    fine(directory.path(), ["load", "t.csv", "--table", "t", "--set", "db_block_size=2K"]);
    fine(directory.path(), ["index", "t", "id", "--name", "by_id"]);
    let mut sorted = ids;
    sorted.sort_unstable();
    assert_eq!(fine(directory.path(), ["export", "t", "--order-by", "by_id"]), of(&sorted));
}

/// Loads standard input; returns the output.
fn load_from_a_pipe(directory: &std::path::Path, text: &[u8]) -> String {
    let mut load = command(directory);
    load.args(["load", "-", "--table", "t"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = load.spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(text).expect("read");
    let ended = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&[ended.stdout, ended.stderr].concat()).into_owned()
}

#[test]
fn a_pipe_is_loaded_and_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let said = load_from_a_pipe(directory.path(), b"id|day\n1|31/12/2020\n2|01/01/2021\n");
    assert!(said.starts_with("standard input: 2 rows\n"), "{said}");
    assert!(said.contains("all values are dates written DD/MM/YYYY"), "{said}");
    assert_eq!(fine(directory.path(), ["export", "t"]), "id,day\n1,31/12/2020\n2,01/01/2021\n");
    assert_eq!(names(directory.path()), ["plumb.db"]);
    let said = load_from_a_pipe(directory.path(), b"");
    assert!(said.contains("standard input is empty") || said.contains("exists already"), "{said}");
}

#[test]
fn words_for_null_are_hinted_at_with_the_option_that_helps() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    fs::write(directory.path().join("t.csv"), "a,b,c,d\n1,2020-01-01,1,x\nNA,NULL,\\N,NA\n").expect("a file");
    let said = fine(directory.path(), ["load", "t.csv", "--table", "t"]);
    for hint in ["--null NA\n", "--null NULL\n", "--null '\\N'\n"] {
        assert!(said.contains(&format!("; if it means NULL, load again with {hint}")), "{said}");
    }
    assert_eq!(said.matches("if it means NULL").count(), 3, "text stays text without a hint: {said}");
    let said = fine(
        directory.path(),
        ["load", "t.csv", "--table", "u", "--null", "NA", "--null", "NULL", "--null", "\\N"],
    );
    assert!(said.contains("NUMBER(1)") && said.contains("all values are dates"), "{said}");
}

#[test]
fn lists_checks_and_loads_are_there_for_programs() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("shops.csv"), SHOPS).expect("a file");
    let json = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&fine(here, arguments)).expect("stdout is JSON and nothing else")
    };
    let loaded = json(&["load", "shops.csv", "--table", "shops", "--json"]);
    assert_eq!((&loaded["rows"], &loaded["columns"][2]["type"]), (&3.into(), &"DATE".into()));
    let tables = json(&["list", "tables", "--json"]);
    assert_eq!((&tables[0]["name"], &tables[0]["rows"]), (&"SHOPS".into(), &3.into()));
    let checked = json(&["check", "--json"]);
    assert_eq!((&checked[0]["table"], &checked[0]["right"]), (&"SHOPS".into(), &true.into()));
    for what in ["workloads", "studies", "settings", "events", "statistics"] {
        assert!(json(&["list", what, "--json"]).as_array().is_some_and(|list| list.len() > 2), "{what}");
    }
    assert_eq!(json(&["list", "bundles", "--json"]), serde_json::json!([]));
    fine(here, ["run", "large-sort", "--rows", "20K"]);
    let bundles = json(&["list", "bundles", "--json"]);
    assert_eq!(bundles[0]["kind"], "run");
    assert!(bundles[0]["size"].as_u64().is_some_and(|bytes| bytes > 10_000), "a size is a number");
    let says = bundles[0]["says"].as_str().expect("a headline");
    assert!(says.starts_with("Run: VALID"), "{says}");
    assert!(fine(here, ["list", "bundles"]).contains("plumb-reports/large-sort-"), "and in columns");
}

#[test]
fn a_cure_works_as_it_is_printed_wherever_the_database_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::create_dir(here.join("db")).expect("a directory");
    fs::write(here.join("shops.csv"), SHOPS).expect("a file");
    let at = ["--path", "db"];
    fine(here, [&["load", "shops.csv", "--table", "shops"], &at[..]].concat());
    let (_, line) = refused(here, [&["load", "shops.csv", "--table", "shops"], &at[..]].concat());
    assert!(line.ends_with("remove it first with `plumb drop SHOPS --path db`"), "{line}");
    let made = fine(here, [&["index", "shops", "id"], &at[..]].concat());
    assert!(made.contains("run `plumb check shops --path db` to verify it"), "{made}");
}

#[test]
fn pages_for_shells_and_readers_are_made_from_the_arguments() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (page, mark) in [
        ("bash", "complete -o default -F _plumb plumb"),
        ("zsh", "#compdef plumb"),
        ("fish", "complete -c plumb"),
    ] {
        assert!(fine(directory.path(), ["completions", page]).contains(mark), "{page}");
    }
    let man = fine(directory.path(), ["man"]);
    assert!(man.contains(".TH plumb 1") && man.contains(".SH PLUMB CALIBRATE"), "{man}");
    for missing in ["plumb\\-run(1)", "plumb-run(1)", "study\\-run", "plumb\\-help(1)"] {
        assert!(!man.contains(missing), "{missing} is no page");
    }
}

/// Sources the script in a bash and asks it as readline would.
#[test]
fn bash_completes_commands_settings_and_bundles() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fine(here, ["run", "redo", "--rows", "100", "--bundle", "plumb-reports/mine"]);
    fs::write(here.join("plumb.bash"), fine(here, ["completions", "bash"])).expect("a file");
    let program = Path::new(env!("CARGO_BIN_EXE_plumb")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    for (words, expected) in [
        ("plumb st", "study"),
        ("plumb report plumb-reports/m", "plumb-reports/mine"),
        ("plumb run slob --set log_file_i", "log_file_io="),
        ("plumb run slob --set io_method = s", "sync"),
        ("plumb load t.c", ""),
    ] {
        let last = words.split(' ').count() - 1;
        let script = format!(
            "source plumb.bash; COMP_WORDS=({words}); COMP_CWORD={last}; _plumb; echo \"${{COMPREPLY[@]}}\""
        );
        let bash = Command::new("bash").args(["-c", &script]).current_dir(here).env("PATH", &path).output();
        let Ok(bash) = bash else {
            println!("skipped: there is no bash");
            return;
        };
        assert_eq!(String::from_utf8_lossy(&bash.stdout).trim_end(), expected, "{words}");
    }
}

#[test]
fn rows_are_chosen_by_a_condition_counted_and_added() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("shops.csv"), SHOPS).expect("a file");
    for conventional in [&[][..], &["--conventional"]] {
        fine(here, [&["load", "shops.csv", "--table", "shops"], conventional].concat());
        let chosen = ["export", "shops", "--where", "amount > -20 AND id < 3", "--columns", "id,city"];
        assert_eq!(fine(here, chosen), "id,city\n1,\"Bad Tölz, Süd\"\n");
        let piped = ["export", "shops", "--delimiter", "semicolon", "--where", "id = 1"];
        assert_eq!(fine(here, piped), "id;city;opened;amount\n1;Bad Tölz, Süd;2019-12-01 08:30:00;-10\n");
        assert!(fine(here, ["head", "shops", "--where", "city IS NULL"]).contains("2021-05-05"));
        assert_eq!(fine(here, ["head", "shops", "--limit", "1", "--columns", "id"]), "id\n3\n");
        assert_eq!(fine(here, ["count", "shops"]), "3 rows\n");
        let some = fine(here, ["count", "shops", "--where", "id >= 2", "--sum", "amount,ID"]);
        assert_eq!(some, "2 rows of 3 rows\nsum of amount: 2.5\nsum of id: 5\n");
        let json = fine(here, ["count", "shops", "--sum", "amount", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!((&json["rows"], &json["sums"]["amount"]), (&3.into(), &"-7.5".into()));
        fine(here, ["drop", "shops", "--yes"]);
    }
}

#[test]
fn an_index_shows_its_table_in_its_order_also_by_a_condition() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    fs::write(here.join("t.csv"), "id,name\n2,b\n3,c\n1,a\n4,d\n").expect("a file");
    fine(here, ["load", "t.csv", "--table", "t"]);
    fine(here, ["index", "t", "id desc", "--name", "by_id"]);
    assert_eq!(fine(here, ["head", "by_id", "2", "--columns", "id"]), "id\n4\n3\n");
    let chosen =
        ["export", "t", "--order-by", "by_id", "--where", "id <> 3", "--limit", "2", "--columns", "id"];
    assert_eq!(fine(here, chosen), "id\n4\n2\n");
    let (code, said) = refused(here, ["head", "nobody"]);
    assert!(code == 1 && said.contains("there is no table nobody"), "{said}");
    let (code, said) = refused(here, ["count", "t", "--where", "price > 1"]);
    assert!(code != 0 && said.contains("price"), "{said}");
    let (_, said) = refused(here, ["count", "t", "--sum", "name"]);
    assert!(said.contains("numbers are added"), "{said}");
}

#[test]
fn numbers_with_a_decimal_comma_are_numbers_if_asked_for() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let here = directory.path();
    let text = "id;amount;day\n1;6.341,71;03.04.2021\n2;-0,50;28.11.2021\n3;12,00;01.12.2021\n";
    fs::write(here.join("de.csv"), text).expect("a file");
    let said =
        fine(here, ["load", "de.csv", "--table", "de", "--decimal", "comma", "--date-format", "DD.MM.YYYY"]);
    assert_eq!(said.matches("all values are numbers").count(), 2, "{said}");
    assert_eq!(fine(here, ["count", "de", "--sum", "amount"]), "3 rows\nsum of amount: 6353.21\n");
    let row = ["export", "de", "--where", "id = 1", "--delimiter", ";"];
    assert_eq!(fine(here, row), "id;amount;day\n1;6341.71;03.04.2021\n");
    let said = fine(here, ["load", "de.csv", "--table", "text", "--date-format", "DD.MM.YYYY"]);
    assert_eq!(said.matches("all values are numbers").count(), 1, "without it the column is text: {said}");
}

#[test]
fn a_word_of_sql_says_where_it_is() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for word in ["select", "UPDATE", "insert", "delete"] {
        let (code, said) = refused(directory.path(), [word, "*", "from", "t"]);
        assert!(code == 2 && said.contains("plumb has no SQL") && said.contains("`count`"), "{said}");
    }
}
