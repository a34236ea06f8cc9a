//! Texts and records that no name may survive, and figures and words that must.

use super::*;

fn tokens() -> Tokens {
    Tokens::new(["redo", "sort_area_size", "64M"])
}

/// Values of all kinds of names, each under a label of its own and under those of figures, words
/// and times: none may stay in any part.
#[test]
fn nothing_that_is_neither_listed_nor_a_figure_survives() {
    const HOSTILE: [(&str, &str); 44] = [
        ("2001:db8::8a2e:370:7334", "8a2e"),
        ("fe80::1ff:fe23:4567:890a", "fe23"),
        ("[::ffff:c0a8:101]:1521", "ffff"),
        ("10.0.0.7", "10.0.0.7"),
        ("192.168.7.41:5432", "192.168"),
        ("52:54:00:12:34:56", "52:54"),
        ("db17", "db17"),
        ("prod-ora7", "ora7"),
        ("vm7", "vm7"),
        ("scott/tiger@//db17:1521/PAY", "tiger"),
        ("scott/tiger@//db17:1521/PAY", "scott"),
        ("postgres://alice:s3cret@db17/payroll", "s3cret"),
        ("host=db17 user=alice password=s3cret", "alice"),
        ("Server=10.1.2.3;Uid=bob;Pwd=s3cret;", "bob"),
        ("\\\\filer7\\share\\x", "filer7"),
        ("C:\\Users\\alice\\payroll.dbf", "payroll"),
        ("/home/alice/data", "alice"),
        ("~alice/x", "alice"),
        ("+DATA/orcl/spfileorcl.ora", "spfileorcl"),
        ("alice@corp.example.net", "alice"),
        ("Bearer eyJhbGciOiJIUzI1NiJ9.e30.abc", "eyJhbGci"),
        ("AKIAIOSFODNN7EXAMPLE", "AKIA"),
        ("wJalrXUtnFEMI/K7MDENG", "wJalrX"),
        ("DE89370400440532013000", "DE89"),
        ("'078-05-1120'::text", "078"),
        ("c.surname = 'Smith'", "Smith"),
        ("select salary from employees", "salary"),
        ("Müller", "Müller"),
        ("東京支店", "東京"),
        ("Ωmega", "Ωmega"),
        ("Олег", "Олег"),
        ("नमस्ते", "नम"),
        ("😀secret", "😀"),
        ("zoë_orders", "zoë"),
        ("acme$prod", "acme"),
        ("p@ss!w#rd", "ss!w"),
        ("ORCLXDB", "ORCL"),
        ("orders2024", "orders"),
        ("x'y\"zed", "zed"),
        ("4c4c4544-0042-3510-8052-b4c04f475231", "4c4c"),
        ("a1b2c3d4e5f6a7b8c9d0", "a1b2"),
        ("+49-30-5551234x", "5551234x"),
        ("12acme34", "acme"),
        ("kunde\u{200b}name", "kunde"),
    ];
    for (text, part) in HOSTILE {
        let mut tokens = tokens();
        for label in
            ["DB Name", "Waits", "Event", "Begin Snap Time", "Kundennummer", "Release", "Platform", ""]
        {
            let label = tokens.label(label);
            let copy = tokens.value(label, text);
            assert!(!copy.contains(part), "{label:?} {text}: {copy}");
        }
        for copy in
            [tokens.hidden(text), tokens.sentence(&format!("it read {text}, 12 times")), tokens.name(text)]
        {
            assert!(!copy.contains(part), "{text}: {copy}");
        }
    }
}

#[test]
fn a_number_stays_under_a_label_of_figures_and_goes_under_one_of_names() {
    let mut tokens = tokens();
    let value = |tokens: &mut Tokens, label: &str, text: &str| {
        let label = tokens.label(label);
        tokens.value(label, text)
    };
    for (label, text) in [
        ("Waits", "1,234,567"),
        ("Avg wait (ms)", "4.16"),
        ("% DB time", "99.3"),
        ("Elapsed Time (s)", "60.22 (mins)"),
        ("Snap Time", "20-Oct-14 11:00:05"),
        ("r/s", "4.50"),
        ("Reads: Data", "12.5M"),
        ("Snap Id", "95"),
        ("Event", "db file sequential read"),
        ("Event", "enq: TX - row lock contention"),
        ("Release", "11.2.0.4.0"),
        ("Platform", "Linux x86 64-bit"),
        ("Executions", "N/A"),
    ] {
        assert_eq!(value(&mut tokens, label, text), text, "{label}");
    }
    for (label, text) in [
        ("DB Id", "1269760792"),
        ("Inst Num", "1"),
        ("Port", "1521"),
        ("SSN", "078051120"),
        ("Phone", "5551234"),
        ("Date of Birth", "1970-01-02"),
        ("Customer", "4711"),
        ("PID", "4711"),
        ("Owner", "SERVICE"),
        ("Object Name", "FILTER"),
        ("Host Name", "master"),
    ] {
        assert_ne!(value(&mut tokens, label, text), text, "{label}");
    }
}

#[test]
fn equal_words_have_equal_tokens_of_their_width() {
    let mut tokens = tokens();
    let copy = tokens.hidden("payroll.customers c, payroll.x (c.id)");
    assert_eq!(copy.chars().count(), "payroll.customers c, payroll.x (c.id)".chars().count());
    let words: Vec<&str> = copy.split(|letter: char| !(letter.is_alphanumeric() || letter == '_')).collect();
    assert_eq!((words[0], words[2]), (words[4], words[7]), "{copy}");
    let all: BTreeSet<String> = (0..5000).map(|number| tokens.hidden(&format!("n{number:04}"))).collect();
    assert_eq!(all.len(), 5000, "each word has its own");
    let short: BTreeSet<String> =
        ('a'..='z').chain('0'..='9').map(|letter| tokens.hidden(&letter.to_string())).collect();
    assert_eq!(short.len(), 36);
}

#[test]
fn a_sentence_keeps_listed_words_and_figures_that_stand_alone() {
    let mut tokens = tokens();
    let kept = "page cache: 0 pages of the files before the build and 0 after it, of 58,880";
    assert_eq!(tokens.sentence(kept), kept);
    let kept = "O_DIRECT in the flags of 6 of 6 data files (sort_area_size=64M)";
    assert_eq!(tokens.sentence(kept), kept);
    let copy =
        tokens.sentence("could not read /data/service/orders: the table 'service data' of master.filter.");
    assert!(!["service", "orders", "master", "filter"].iter().any(|word| copy.contains(word)), "{copy}");
}
