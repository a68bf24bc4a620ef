//! Chains that give columns of the rows that an index finds as they are: what they give is sent as it is stored.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema};
use rowstore::{StoredColumn, Tuple, batch_of};
use scan::column_defs;
use storage_error::from_rowstore;
use types::{SessionZone, SqlResult};
use value_codec::encode::{Format, StoredEncoder};

use super::chain::{Effect, Step};
use super::expression::internal;
use super::source::{KeyedRows, position_of};

/// Stored rows and the columns of them that are wanted.
#[derive(Debug)]
pub struct StoredRows {
    pub(super) rows: Vec<Tuple>,
    pub(super) columns: Arc<[StoredColumn]>,
}

impl StoredRows {
    /// Of the rows those that are `wanted`, one by one.
    pub fn retain(&mut self, wanted: &[bool]) {
        let mut wanted = wanted.iter();
        self.rows.retain(|_| wanted.next().is_some_and(|wanted| *wanted));
    }

    /// The rows, in order.
    #[must_use]
    pub fn rows(&self) -> &[Tuple] {
        &self.rows
    }

    /// What writes the rows; `None` where they have to be columns for it.
    #[must_use]
    pub fn encoder<'a>(
        &self,
        sent: impl IntoIterator<Item = (&'a types::SqlType, Format)>,
        zone: SessionZone,
    ) -> Option<StoredEncoder> {
        StoredEncoder::new(&self.columns, sent, zone)
    }

    /// The same rows as columns.
    ///
    /// # Errors
    /// For values that are not of their column's type.
    pub fn to_batch(&self) -> SqlResult<RecordBatch> {
        let columns = batch_of(&self.rows, &self.columns, self.rows.len()).map_err(from_rowstore)?;
        let fields = columns.iter().map(|column| Field::new("", column.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(schema, columns, &options).map_err(internal)
    }
}

/// The columns that the steps give, if all they do is to choose some, and the index finds no row that they leave out. Where rows are to be
/// locked (`is_locking`), those that say which row each is come last, and are left out.
pub(super) fn columns(steps: &[Step], keyed: &KeyedRows, is_locking: bool) -> SqlResult<Option<Arc<[StoredColumn]>>> {
    let defs = column_defs(&keyed.table);
    let width = defs.len();
    let mut chosen: Vec<usize> = (0..width + if is_locking { 2 } else { 0 }).collect();
    let mut is_leading = true;
    let mut is_sorted = keyed.is_ordered;
    for step in steps {
        match &step.effect {
            Effect::Filter(_) if is_leading && keyed.is_exact => {}
            Effect::Project(exprs) => {
                let position = |expr| position_of(expr, step).and_then(|position| chosen.get(position).copied());
                match exprs.iter().map(position).collect() {
                    Some(positions) => chosen = positions,
                    None => return Ok(None),
                }
                is_leading = false;
            }
            Effect::Sort(_) if std::mem::take(&mut is_sorted) => is_leading = false,
            Effect::Cut { .. } => is_leading = false,
            Effect::Filter(_) | Effect::Sort(_) | Effect::Aggregate(_) => return Ok(None),
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
