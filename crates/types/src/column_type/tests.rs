//! Types written and read back.

use super::*;

fn check(text: &str, expect: &str) {
    let found = match text.parse::<ColumnType>() {
        Ok(column_type) => column_type.to_string(),
        Err(error) => error.to_string(),
    };
    assert_eq!(found, expect, "{text}");
    if let Ok(column_type) = text.parse::<ColumnType>() {
        assert_eq!(column_type.to_string().parse(), Ok(column_type));
    }
}

#[test]
fn types_are_read_in_any_case_and_written_in_one() {
    check("NUMBER", "NUMBER");
    check("number(38,2)", "NUMBER(38,2)");
    check(" Number ( 10 , -2 ) ", "NUMBER(10,-2)");
    check("NUMBER(10)", "NUMBER(10)");
    check("NUMBER(*,2)", "NUMBER(*,2)");
    check("date", "DATE");
    check("VarChar2(60)", "VARCHAR2(60)");
    check("int", "NUMBER(38)");
    check("text", "VARCHAR2(4000)");
    check("text(5)", "VARCHAR2(5)");
}

#[test]
fn a_type_that_cannot_be_read_says_what_can() {
    check(
        "flaot",
        "\"flaot\" is no column type; write NUMBER, NUMBER(38,2), INT, DATE, VARCHAR2(60) or TEXT",
    );
    check("NUMBER(39)", "\"NUMBER(39)\": the precision of a NUMBER is a whole number from 1 to 38");
    check("NUMBER(*)", "\"NUMBER(*)\": the precision of a NUMBER is a whole number from 1 to 38");
    check("NUMBER(5,-85)", "\"NUMBER(5,-85)\": the scale of a NUMBER is a whole number from -84 to 127");
    check("VARCHAR2", "\"VARCHAR2\": VARCHAR2 needs its longest length in bytes, as in VARCHAR2(60)");
    check(
        "VARCHAR2(0)",
        "\"VARCHAR2(0)\": the length of a VARCHAR2 is a whole number of bytes from 1 to 32767",
    );
    check("VARCHAR2(9", "\"VARCHAR2(9\": the parenthesis is not closed");
    check("DATE(3)", "\"DATE(3)\": this type takes nothing in parentheses");
}

#[test]
fn serde_uses_the_written_form() {
    let column_type = ColumnType::Number { precision: Some(38), scale: Some(2) };
    let json = serde_json::to_string(&column_type).unwrap();
    assert_eq!(json, "\"NUMBER(38,2)\"");
    assert_eq!(serde_json::from_str::<ColumnType>(&json).unwrap(), column_type);
    assert!(serde_json::from_str::<ColumnType>("\"blob\"").is_err());
}

#[test]
fn a_number_is_admitted_when_it_needs_no_rounding() {
    let admits = |column_type: &str, number: &str| {
        let shape = crate::parse_number(number, &mut Vec::new()).unwrap();
        column_type.parse::<ColumnType>().unwrap().admits_number(shape)
    };
    assert!(admits("NUMBER", "1e-100"));
    assert!(admits("NUMBER(5,2)", "999.99"));
    assert!(admits("NUMBER(5,2)", "-999.9900"));
    assert!(!admits("NUMBER(5,2)", "1000"));
    assert!(!admits("NUMBER(5,2)", "1.005"));
    assert!(admits("NUMBER(3)", "999"));
    assert!(!admits("NUMBER(3)", "0.5"));
    assert!(admits("NUMBER(3,-2)", "12300"));
    assert!(!admits("NUMBER(3,-2)", "12350"));
    assert!(admits("NUMBER(2,4)", "0.0099"));
    assert!(!admits("NUMBER(2,4)", "0.01"));
    assert!(admits("NUMBER(3,-2)", "0"));
    assert!(!admits("DATE", "1"));
}
