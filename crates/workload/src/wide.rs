//! SALES_WIDE: the sales with five notes each, 142 bytes a row.
//!
//! A producer table takes some columns of a wide one. The source of this case had 146 bytes a row,
//! of which half were taken. The rows are those of [`SalesTable`]; the notes follow from a row's
//! bytes, so that a device cannot compress them away.

use crate::sales::{SalesSpec, SalesTable};
use plumb_types::{Column, ColumnType, RowBatch, RowSource, Schema, SourceError, columns};

/// Notes of a row, and the bytes of each.
const NOTES: usize = 5;
const NOTE_BYTES: usize = 19;

/// The wide sales as a source of rows.
#[derive(Debug)]
pub struct WideTable {
    sales: SalesTable,
    schema: Schema,
}

impl WideTable {
    /// Creates the table of a specification. Rows are made on demand.
    pub fn new(spec: SalesSpec) -> WideTable {
        let sales = SalesTable::new(spec);
        let mut columns = sales.schema().columns.clone();
        let text = ColumnType::Text { max_bytes: 20 };
        columns.extend((1..=NOTES).map(|note| Column::required(format!("NOTE_{note}"), text)));
        WideTable { sales, schema: Schema { columns } }
    }
}

impl RowSource for WideTable {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn row_count_hint(&self) -> Option<u64> {
        self.sales.row_count_hint()
    }

    /// Returns no error, because it reads nothing.
    fn next_batch(&self, batch: &mut RowBatch) -> Result<bool, SourceError> {
        batch.clear();
        let mut narrow = RowBatch::new();
        self.sales.next_batch(&mut narrow)?;
        for row in narrow.iter() {
            batch.begin_row(self.schema.columns.len() as u8);
            for value in columns(row) {
                match value {
                    Some(value) => batch.push_bytes(value),
                    None => batch.push_null(),
                }
            }
            // FNV-1a: the notes need to differ, and no more.
            let mut state = row.iter().fold(0xCBF2_9CE4_8422_2325_u64, |state, byte| {
                (state ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3)
            });
            for _ in 0..NOTES {
                let mut note = [0; NOTE_BYTES];
                for letter in &mut note {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    *letter = b'a' + (state >> 59) as u8 % 26;
                }
                batch.push_bytes(&note);
            }
            batch.end_row();
        }
        Ok(!batch.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_row_is_a_sale_with_five_notes_and_about_142_bytes() {
        let spec = SalesSpec { rows: 5000, seed: 7 };
        let (wide, sales) = (WideTable::new(spec), SalesTable::new(spec));
        let (mut rows, mut narrow) = (RowBatch::new(), RowBatch::new());
        assert!(wide.next_batch(&mut rows).expect("rows"));
        assert!(sales.next_batch(&mut narrow).expect("rows"));
        assert_eq!(rows.len(), narrow.len());
        for (row, sale) in rows.iter().zip(narrow.iter()) {
            let found: Vec<_> = columns(row).collect();
            assert_eq!(found[..9], columns(sale).collect::<Vec<_>>());
            assert!(found[9..].iter().all(|note| note.is_some_and(|note| note.len() == NOTE_BYTES)));
        }
        let mean = rows.byte_count() / rows.len();
        assert!((141..=144).contains(&mean), "{mean}");
    }
}
