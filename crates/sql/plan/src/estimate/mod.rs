//! Estimates of the rows of a plan, as plain data; the optimizer computes them.

mod column;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use parking_lot::Mutex;

pub use self::column::{ColumnEstimate, position};

/// Estimate of the rows of a plan. Counts may be fractional.
#[derive(Debug, Clone)]
pub struct RelationEstimate {
    /// Number of rows.
    pub rows: f64,
    /// Estimates of the columns, one per field of the plan's schema.
    pub columns: Vec<ColumnEstimate>,
}

/// Estimated number of rows without any statistics.
pub const UNKNOWN_ROWS: f64 = 1_000.0;

/// Cache of estimates about the rows of one table in a statement, because many rules need them.
#[derive(Debug, Default)]
pub struct EstimateCache {
    /// Estimates of all columns.
    pub columns: OnceLock<Vec<ColumnEstimate>>,
    /// Estimates of the rows that pass a filter, with all columns, by filter.
    pub filtered: Mutex<HashMap<Expr, Arc<RelationEstimate>>>,
    /// Decoded rows of the table's sample.
    pub sample: OnceLock<Option<RecordBatch>>,
}

impl RelationEstimate {
    /// Creates the estimate of a plan of which only the number of rows is known.
    #[must_use]
    pub fn unknown(plan: &LogicalPlan, rows: f64) -> RelationEstimate {
        RelationEstimate { rows, columns: vec![ColumnEstimate::unknown(rows); plan.schema().fields().len()] }
    }

    /// Extends the columns to those of `plan`, for nodes that add columns to their input's.
    #[must_use]
    pub fn with_width(mut self, plan: &LogicalPlan) -> RelationEstimate {
        let unknown = ColumnEstimate::unknown(self.rows);
        self.columns.resize(plan.schema().fields().len(), unknown);
        self
    }

    /// Sets the number of rows; a smaller one is assumed to be a random selection.
    #[must_use]
    pub fn with_rows(mut self, rows: f64) -> RelationEstimate {
        if rows < self.rows {
            let before = self.rows;
            self.columns.iter_mut().for_each(|column| column.select_randomly(before, rows));
        }
        self.rows = rows;
        self
    }

    /// Estimates the values of an expression over the columns of `schema`.
    #[must_use]
    pub fn expression_estimate(&self, expr: &Expr, schema: &DFSchema) -> ColumnEstimate {
        match expr {
            Expr::Column(column) => schema
                .maybe_index_of_column(column)
                .and_then(|index| self.columns.get(index).cloned())
                .unwrap_or_else(|| ColumnEstimate::unknown(self.rows)),
            Expr::Alias(alias) => self.expression_estimate(&alias.expr, schema),
            Expr::Cast(cast) => self.expression_estimate(&cast.expr, schema),
            Expr::TryCast(cast) => self.expression_estimate(&cast.expr, schema),
            Expr::Literal(..) => ColumnEstimate { distinct: 1.0, domain: 1.0, ..ColumnEstimate::unknown(self.rows) },
            other => {
                let distinct: f64 = other
                    .column_refs()
                    .iter()
                    .filter_map(|column| self.columns.get(schema.maybe_index_of_column(column)?))
                    .map(|facts| facts.distinct.max(1.0))
                    .product();
                let distinct = distinct.min(self.rows.max(1.0));
                ColumnEstimate { distinct, domain: distinct, ..ColumnEstimate::unknown(self.rows) }
            }
        }
    }

    /// Returns the approximate bytes of a row in memory.
    #[must_use]
    pub fn row_bytes(&self) -> f64 {
        self.columns.iter().map(|column| column.width).sum::<f64>().max(8.0)
    }
}
