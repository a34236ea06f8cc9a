//! Writes rows of a table as an Apache Parquet file. The crate is separate and behind the feature
//! `parquet`, because its dependency takes a fifth of the program's build time.
//!
//! Rows are collected by column; 64K rows become a row group. Each column is optional, and NULL is
//! a definition level of 0.
//!
//! ```text
//! NUMBER(p,s), p up to 18, s from 0    INT64, decimal(p,s)
//! any other NUMBER                     BYTE_ARRAY, a string: no binary type holds it exactly
//! DATE                                 INT64, timestamp in milliseconds, of no time zone
//! VARCHAR2                             BYTE_ARRAY, a string
//! ```

use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use plumb_types::{ColumnType, DateTime, Schema, Value};
use std::io::Write;
use std::sync::Arc;

const GROUP_ROWS: usize = 64 * 1024;
/// Digits that 64 bits hold.
const DIGITS_MAX: u8 = 18;

/// Reasons why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum ParquetError {
    /// The library, or what it writes to, refuses.
    #[error("cannot write the Parquet file: {0}")]
    Library(#[from] parquet::errors::ParquetError),
    /// A number has more digits than its column declares.
    #[error(
        "the number {number} is not one of {column_type}, as its column has it; `plumb check` finds what is wrong"
    )]
    Number { number: String, column_type: ColumnType },
}

/// Values of a column that are not written yet, with their definition levels.
enum Column {
    Integers(Vec<i64>),
    Strings(Vec<ByteArray>),
}

/// Writes rows to a file.
pub struct ParquetWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    types: Vec<ColumnType>,
    columns: Vec<(Column, Vec<i16>)>,
    row_count: usize,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file with the columns of a schema. Fails if `out` cannot be written.
    pub fn new(out: W, schema: &Schema) -> Result<ParquetWriter<W>, ParquetError> {
        let fields = schema.columns.iter().map(|column| field(&column.name, column.column_type));
        let fields = fields.collect::<Result<Vec<TypePtr>, ParquetError>>()?;
        let root = Type::group_type_builder("table").with_fields(fields).build()?;
        let properties = Arc::new(WriterProperties::builder().set_created_by("plumb".to_string()).build());
        let file = SerializedFileWriter::new(out, Arc::new(root), properties)?;
        let types: Vec<ColumnType> = schema.columns.iter().map(|column| column.column_type).collect();
        let columns = types.iter().map(|column_type| (Column::of(*column_type), Vec::new())).collect();
        Ok(ParquetWriter { file, types, columns, row_count: 0 })
    }

    /// Appends a row, a value for each column. Fails if a value is not of its column's type.
    pub fn push(&mut self, row: &[&Value]) -> Result<(), ParquetError> {
        assert_eq!(row.len(), self.columns.len(), "a row has a value for each column");
        for ((value, (column, levels)), column_type) in row.iter().zip(&mut self.columns).zip(&self.types) {
            levels.push(i16::from(!value.is_null()));
            if !value.is_null() {
                column.push(value, *column_type)?;
            }
        }
        self.row_count += 1;
        if self.row_count == GROUP_ROWS { self.end_group() } else { Ok(()) }
    }

    /// Writes what is left, and the end of the file; gives back what it was written to.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        if self.row_count > 0 {
            self.end_group()?;
        }
        Ok(self.file.into_inner()?)
    }

    fn end_group(&mut self) -> Result<(), ParquetError> {
        self.row_count = 0;
        let mut group = self.file.next_row_group()?;
        for (column, levels) in &mut self.columns {
            let mut writer = group.next_column()?.expect("the file has these columns");
            match column {
                Column::Integers(values) => {
                    writer.typed::<Int64Type>().write_batch(values, Some(levels), None)?;
                    values.clear();
                }
                Column::Strings(values) => {
                    writer.typed::<ByteArrayType>().write_batch(values, Some(levels), None)?;
                    values.clear();
                }
            }
            writer.close()?;
            levels.clear();
        }
        group.close()?;
        Ok(())
    }
}

impl Column {
    fn of(column_type: ColumnType) -> Column {
        match column_type {
            ColumnType::Date => Column::Integers(Vec::new()),
            _ if decimal(column_type).is_some() => Column::Integers(Vec::new()),
            _ => Column::Strings(Vec::new()),
        }
    }

    fn push(&mut self, value: &Value, column_type: ColumnType) -> Result<(), ParquetError> {
        match (self, value) {
            (Column::Integers(values), Value::Date(date)) => values.push(milliseconds(date)),
            (Column::Integers(values), number) => {
                let text = number.to_string();
                let scale = decimal(column_type).map_or(0, |(_, scale)| scale);
                let wrong = || ParquetError::Number { number: text.clone(), column_type };
                values.push(scaled(&text, scale).ok_or_else(wrong)?);
            }
            (Column::Strings(values), value) => values.push(ByteArray::from(value.to_string().into_bytes())),
        }
        Ok(())
    }
}

/// Precision and scale of numbers that 64 bits hold.
fn decimal(column_type: ColumnType) -> Option<(u8, u8)> {
    match column_type {
        ColumnType::Number { precision: Some(precision @ 1..=DIGITS_MAX), scale } => {
            let scale = u8::try_from(scale.unwrap_or(0)).ok().filter(|scale| *scale <= precision)?;
            Some((precision, scale))
        }
        _ => None,
    }
}

fn field(name: &str, column_type: ColumnType) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match (column_type, decimal(column_type)) {
        (ColumnType::Date, _) => (Physical::INT64, LogicalType::timestamp(false, TimeUnit::MILLIS)),
        (_, Some((precision, scale))) => {
            (Physical::INT64, LogicalType::decimal(i32::from(scale), i32::from(precision)))
        }
        _ => (Physical::BYTE_ARRAY, LogicalType::String),
    };
    let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    let builder = match decimal(column_type) {
        Some((precision, scale)) => builder.with_precision(i32::from(precision)).with_scale(i32::from(scale)),
        None => builder,
    };
    Ok(Arc::new(builder.with_logical_type(Some(logical)).build()?))
}

/// Returns the unscaled integer of a number in shortest form; `None` if it has more than
/// `scale` digits after the point.
fn scaled(text: &str, scale: u8) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let missing = usize::from(scale).checked_sub(fraction.len())?;
    format!("{whole}{fraction}{}", "0".repeat(missing)).parse().ok()
}

/// Returns milliseconds since 1970 of a date without a time zone.
fn milliseconds(date: &DateTime) -> i64 {
    // Hinnant's days_from_civil: a year begins in March, so that the leap day is its last.
    let (month, day) = (i64::from(date.month()), i64::from(date.day()));
    let year = i64::from(date.year()) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    let seconds = i64::from(date.hour()) * 3600 + i64::from(date.minute()) * 60 + i64::from(date.second());
    (days * 86_400 + seconds) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use plumb_types::{Column, Number};

    #[test]
    fn another_reader_finds_the_rows() {
        let number = |text: &str| Value::Number(Number::parse(text).expect("a number"));
        let columns = vec![
            Column::nullable("id", ColumnType::Number { precision: Some(5), scale: None }),
            Column::nullable("amount", ColumnType::Number { precision: Some(9), scale: Some(2) }),
            Column::nullable("large", ColumnType::NUMBER),
            Column::nullable("day", ColumnType::Date),
            Column::nullable("name", ColumnType::Text { max_bytes: 9 }),
        ];
        let schema = Schema::new(columns).expect("a schema");
        let mut writer = ParquetWriter::new(Vec::new(), &schema).expect("begun");
        let day = Value::Date(DateTime::new(1996, 3, 31, 13, 45, 1).expect("a day"));
        let rows = [
            vec![number("7"), number("-2.5"), number("1e40"), day, Value::Text("é".to_string())],
            vec![number("-99999"), Value::Null, Value::Null, Value::Null, Value::Null],
        ];
        for row in rows.iter().cycle().take(GROUP_ROWS + 10) {
            writer.push(&row.iter().collect::<Vec<_>>()).expect("written");
        }
        let file = writer.finish().expect("written");
        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("a Parquet file");
        assert_eq!(reader.num_row_groups(), 2);
        let found: Vec<String> =
            reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_string()).collect();
        assert_eq!(found.len(), GROUP_ROWS + 10);
        assert!(
            found[0].contains("amount: -2.50") && found[0].contains("1996-03-31 13:45:01"),
            "{}",
            found[0]
        );
        assert!(found[1].contains("id: -99999") && found[1].contains("amount: null"), "{}", found[1]);
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        let day =
            |year, month, day| milliseconds(&DateTime::date(year, month, day).expect("a day")) / 86_400_000;
        assert_eq!(
            [day(1970, 1, 1), day(1970, 3, 1), day(1969, 12, 31), day(2000, 2, 29), day(1, 1, 1)],
            [0, 59, -1, 11_016, -719_162]
        );
    }

    #[test]
    fn numbers_have_the_digits_of_their_column() {
        assert_eq!((scaled("12.5", 2), scaled("-3", 0), scaled("1.234", 2)), (Some(1250), Some(-3), None));
    }
}
