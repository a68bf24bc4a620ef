//! SELECTs that return columns unchanged: rows are encoded for the client directly from their stored form.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use rowstore::{StoredColumn, Tuple, decode_columns};
use scan::column_defs;
use storage_error::from_rowstore;
use types::{SessionZone, SqlResult};
use value_codec::encode::{Format, StoredEncoder};

use super::index_range::{IndexRangeSource, input_position};
use super::lookup_chain::{Step, StepKind};
use super::vectorized_expression::arrow_error;

/// Stored rows with the columns that are returned.
#[derive(Debug)]
pub struct StoredRows {
    pub(super) rows: Vec<Tuple>,
    pub(super) columns: Arc<[StoredColumn]>,
}

impl StoredRows {
    /// Keeps the rows whose entry in `wanted` is true.
    pub fn retain(&mut self, wanted: &[bool]) {
        let mut wanted = wanted.iter();
        self.rows.retain(|_| wanted.next().is_some_and(|wanted| *wanted));
    }

    /// Returns the rows, in order.
    #[must_use]
    pub fn rows(&self) -> &[Tuple] {
        &self.rows
    }

    /// Returns the encoder that writes the rows for the client; `None` if they have to be converted to columns first.
    #[must_use]
    pub fn encoder<'a>(
        &self,
        column_formats: impl IntoIterator<Item = (&'a types::SqlType, Format)>,
        zone: SessionZone,
    ) -> Option<StoredEncoder> {
        StoredEncoder::new(&self.columns, column_formats, zone)
    }

    /// Converts the rows to a record batch.
    ///
    /// # Errors
    /// A stored value that does not have its column's type.
    pub fn to_batch(&self) -> SqlResult<RecordBatch> {
        let columns = decode_columns(&self.rows, &self.columns, self.rows.len()).map_err(from_rowstore)?;
        let fields = columns.iter().map(|column| Field::new("", column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(arrow_error)
    }
}

/// Returns the columns that the steps choose; `None` if the steps do more than choose columns, or if a filter may
/// remove rows of the index range. For a query that locks its rows (`locks_rows`), the two trailing columns that
/// identify each row are required and left out.
pub(super) fn choose_stored_columns(
    steps: &[Step],
    keyed: &IndexRangeSource,
    is_locking: bool,
) -> SqlResult<Option<Arc<[StoredColumn]>>> {
    let defs = column_defs(&keyed.table);
    let width = defs.len();
    let mut chosen: Vec<usize> = (0..width + if is_locking { 2 } else { 0 }).collect();
    let mut is_leading = true;
    let mut is_sorted = keyed.is_ordered;
    for step in steps {
        match &step.kind {
            StepKind::Filter(_) if is_leading && keyed.range_implies_filters => {}
            StepKind::Project(exprs) => {
                let position = |expr| input_position(expr, step).and_then(|position| chosen.get(position).copied());
                match exprs.iter().map(position).collect() {
                    Some(positions) => chosen = positions,
                    None => return Ok(None),
                }
                is_leading = false;
            }
            StepKind::Sort(_) if std::mem::take(&mut is_sorted) => is_leading = false,
            StepKind::Limit { .. } => is_leading = false,
            StepKind::Filter(_) | StepKind::Sort(_) | StepKind::Aggregate(_) => return Ok(None),
        }
    }
    if is_locking {
        if !chosen.ends_with(&[width, width + 1]) {
            return Ok(None);
        }
        chosen.truncate(chosen.len() - 2);
    }
    if chosen.iter().any(|position| width <= *position) {
        return Ok(None);
    }
    let columns = chosen.into_iter().map(|position| scan::stored_column(&defs[position]));
    columns.collect::<SqlResult<Vec<_>>>().map(|columns| Some(columns.into()))
}
