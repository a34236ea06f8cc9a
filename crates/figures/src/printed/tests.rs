//! Syntax of figures, kinds of absence, and intervals.

use super::*;
use proptest::prelude::*;

fn range(raw: &str, unit: FigureUnit) -> Option<(f64, f64, f64)> {
    match read(raw, unit) {
        CellReading::Value { value, range } => Some((range.low, value, range.high)),
        _ => None,
    }
}

fn check(raw: &str, unit: FigureUnit, expected: [f64; 3]) {
    let found = range(raw, unit).unwrap_or_else(|| panic!("{raw} is a number"));
    for (found, expected) in [found.0, found.1, found.2].into_iter().zip(expected) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{raw}: {found}, expected {expected}");
    }
}

#[test]
fn the_syntax_of_reports_is_read_with_its_rounding() {
    let kilo = 1024.0;
    for (raw, unit, expected) in [
        ("21,628,695", FigureUnit::COUNT, (21_628_695.0, 21_628_695.0, 21_628_695.0)),
        ("1,083", FigureUnit::S, (1082.5, 1083.0, 1083.5)),
        ("7.E+05", FigureUnit::PER_S, (650_000.0, 700_000.0, 750_000.0)),
        ("1.3497E+07", FigureUnit::COUNT, (13_496_500.0, 13_497_000.0, 13_497_500.0)),
        ("7.1E+04", FigureUnit::PER_S, (70_500.0, 71_000.0, 71_500.0)),
        ("18E", FigureUnit::COUNT, (17.5e18, 18e18, 18.5e18)),
        ("616.4", FigureUnit::NARROW_COUNT, (616_350.0, 616_400.0, 616_450.0)),
        ("937", FigureUnit::NARROW_COUNT, (937.0, 937.0, 937.0)),
        ("5184.7K", FigureUnit::NARROW_COUNT, (5_184_650.0, 5_184_700.0, 5_184_750.0)),
        ("60.9K", FigureUnit::S, (60_850.0, 60_900.0, 60_950.0)),
        (
            "12.9G",
            FigureUnit::MB,
            (12.85 * kilo * kilo * kilo, 12.9 * kilo * kilo * kilo, 12.95 * kilo * kilo * kilo),
        ),
        (
            "551.588",
            FigureUnit::MB_PER_S,
            (551.5875 * kilo * kilo, 551.588 * kilo * kilo, 551.5885 * kilo * kilo),
        ),
        (".039M", FigureUnit::MB_PER_S, (0.0385 * kilo * kilo, 0.039 * kilo * kilo, 0.0395 * kilo * kilo)),
        ("0M", FigureUnit::MB, (0.0, 0.0, 0.5 * kilo * kilo)),
        ("109.72us", FigureUnit::MS, (0.000_109_715, 0.000_109_72, 0.000_109_725)),
        ("528.06 s", FigureUnit::MS, (528.055, 528.06, 528.065)),
        (".00ns", FigureUnit::MS, (0.0, 0.0, 5e-12)),
        ("76", FigureUnit::MS, (0.0755, 0.076, 0.0765)),
        (".0", FigureUnit::PERCENT, (0.0, 0.0, 0.05)),
        ("0.0(6)", FigureUnit::PERCENT, (0.0, 0.0, 0.05)),
        ("<0.01(2247)", FigureUnit::PERCENT, (0.0, 0.005, 0.01)),
        ("12,5", FigureUnit::PERCENT, (12.45, 12.5, 12.55)),
        ("-48.4", FigureUnit::PERCENT, (-48.45, -48.4, -48.35)),
        ("60.22 (mins)", FigureUnit::MINUTES, (60.215 * 60.0, 60.22 * 60.0, 60.225 * 60.0)),
        ("3,991,300 bytes", FigureUnit::BYTES, (3_991_299.5, 3_991_300.0, 3_991_300.5)),
        ("\u{a0}1.0\u{a0}", FigureUnit::NUMBER, (0.95, 1.0, 1.05)),
        ("45:50", FigureUnit::S, (2749.5, 2750.0, 2750.5)),
        ("2:24.41", FigureUnit::S, (144.405, 144.41, 144.415)),
        (
            "724 MB/sec",
            FigureUnit::BYTES_PER_S,
            (723.5 * kilo * kilo, 724.0 * kilo * kilo, 724.5 * kilo * kilo),
        ),
        ("34% of DB time", FigureUnit::NUMBER, (33.5, 34.0, 34.5)),
        ("630 KB", FigureUnit::NUMBER, (629.5 * kilo, 630.0 * kilo, 630.5 * kilo)),
        ("4.33 secs", FigureUnit::NUMBER, (4.325, 4.33, 4.335)),
    ] {
        check(raw, unit, [expected.0, expected.1, expected.2]);
    }
}

#[test]
fn an_absence_has_a_kind_and_is_never_zero() {
    for (raw, kind) in [
        ("", Absence::Blank),
        ("\u{a0}", Absence::Blank),
        ("N/A", Absence::NotApplicable),
        ("####", Absence::Overflow),
        ("0.00 - 542.33", Absence::Unreadable),
        ("10:00:09 (4.9 min)", Absence::Unreadable),
        ("10:75", Absence::Unreadable),
        ("1:2:3:4", Absence::Unreadable),
        ("1,2,3", Absence::Unreadable),
        ("1.2.3", Absence::Unreadable),
        (".", Absence::Unreadable),
        ("1E+400", Absence::Unreadable),
    ] {
        assert_eq!(read(raw, FigureUnit::S), CellReading::Absent(kind), "{raw}");
    }
    assert_eq!(read("User I/O", FigureUnit::TEXT), CellReading::Words);
}

#[test]
fn intervals_decide_and_not_tolerances() {
    let range = |raw: &str, unit| read(raw, unit).range().expect("a number");
    // 48,438,904 / 267,760.27 a second: the interval of a test of 108 s.
    let total = range("48,438,904", FigureUnit::COUNT);
    let length = total.over(range("267,760.27", FigureUnit::PER_S)).expect("not by zero");
    assert!(length.low > 180.90 && length.high < 180.91, "{length:?}");
    assert!(
        range("2.1", FigureUnit::MS)
            .meets(range("1,899.1", FigureUnit::S).over(range("906,150", FigureUnit::COUNT)).expect("waits"))
    );
    assert!(
        !range("2.3", FigureUnit::MS)
            .meets(range("1,899.1", FigureUnit::S).over(range("906,150", FigureUnit::COUNT)).expect("waits"))
    );
    assert_eq!(total.over(range("0", FigureUnit::PER_S)), None);
}

#[test]
fn a_column_without_a_unit_has_that_of_its_texts() {
    for (heading, texts, expected) in [
        ("32K", &["4:51", "", "4:33"][..], Some(FigureUnit::S)),
        ("ASM", &["1495 MB/sec", "752 MB/sec"], Some(FigureUnit::BYTES_PER_S)),
        ("Size", &["3.7 GB", "7 KB"], Some(FigureUnit::BYTES)),
        ("Memory Needed 1", &["64K", "128K"], Some(FigureUnit::BYTES)),
        ("Rows", &["64K", "128K"], None),
        ("Before", &["34%", "630 KB"], None),
        ("Number", &["1", "2"], None),
        ("Name", &["", ""], None),
    ] {
        assert_eq!(unit_of(heading, texts), expected, "{heading}");
    }
    assert!(is_figure("4:51") && is_figure("4.33 secs") && is_figure("64K"));
    assert!(!is_figure("<1ms") && !is_figure("1-bk") && !is_figure("2nd"));
}

proptest! {
    /// A value that is printed with some decimals lies in the interval of its print.
    #[test]
    fn the_interval_of_a_print_has_the_value(value in 0.0f64..1e9, decimals in 0usize..6) {
        let (low, _, high) = range(&format!("{value:.decimals$}"), FigureUnit::NUMBER).expect("a number");
        let slack = 1e-12 * value;
        prop_assert!(low <= value + slack && value <= high + slack);
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,24}") {
        for unit in [FigureUnit::COUNT, FigureUnit::NARROW_COUNT, FigureUnit::MB, FigureUnit::MS, FigureUnit::PERCENT] {
            let _ = read(&text, unit);
            let _ = is_number(&text);
        }
    }
}
