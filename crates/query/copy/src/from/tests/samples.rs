//! Conformance of COPY: the samples of every type come back from what COPY TO writes, in each format of rows.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use rowstore::sample_values::all_samples;
use types::sample_values::all_types;

use super::*;
use crate::to::{Column, EncodedRows, RowFormat, RowStyle};

#[test]
fn all_samples_come_back_from_every_format() {
    for sql_type in all_types() {
        let values = all_samples(&sql_type);
        let mut shown = TextEncoder::new(&values, &sql_type, &text_style(SessionZone::UTC)).unwrap();
        let expected: Vec<String> = (0..values.len()).map(|row| shown.text(row).unwrap_or("NULL").to_owned()).collect();
        let schema = Schema::new(vec![sql_type.arrow_field("a", true)]);
        let batch = RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap();
        let types = std::slice::from_ref(&sql_type);
        let text = RowStyle::Text { delimiter: b'\t', null: "\\N".to_owned(), header: false };
        let csv = RowStyle::Csv { delimiter: b',', null: String::new(), header: false, quote: b'"', escape: b'"' };
        let formats = [
            (text, Copy::text(types)),
            (csv, Copy::csv(types)),
            (RowStyle::Binary, Copy::new(RecordFormat::Binary, types)),
        ];
        for (style, copy) in formats {
            let is_text = !matches!(style, RowStyle::Binary);
            let column = Column { name: "a".to_owned(), sql_type: sql_type.clone(), force_quote: false };
            let format = RowFormat { columns: vec![column], style, text_style: text_style(SessionZone::UTC) };
            let mut rows = EncodedRows::default();
            format.write_header(&mut rows);
            format.write_batch(&batch, &mut rows).unwrap();
            format.write_trailer(&mut rows);
            let read = copy.run_cut(&rows.bytes, rows.bytes.len(), 1 << 20);
            if is_text && sql_type.needs_catalog() {
                let error = read.expect_err("names are not looked up");
                assert_eq!(error.condition, types::Condition::FeatureNotSupported, "{sql_type}: {error}");
                continue;
            }
            let read = read.unwrap_or_else(|error| panic!("{sql_type}, {:?}: {error}", format.style));
            assert_eq!(read.rows, expected, "{sql_type}, {:?}", format.style);
        }
    }
}
