//! What is believed about the rows of a plan, as plain data: the optimizer finds it out.

mod column;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use parking_lot::Mutex;

pub use self::column::{ColumnFacts, position};

/// An estimate of the rows of a plan. Counts are fractions of rows where that is what arithmetic gives.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Their number.
    pub rows: f64,
    /// One per field of the plan's schema, in its order.
    pub columns: Vec<ColumnFacts>,
}

/// Rows that are believed to be there where nothing is known.
pub const UNKNOWN_ROWS: f64 = 1_000.0;

/// Facts about the rows of a statement's table, found out once: rules ask for them again and again.
#[derive(Debug, Default)]
pub struct KnownRows {
    /// The facts of all columns.
    pub facts: OnceLock<Vec<ColumnFacts>>,
    /// By the filter: what passes it, with all columns.
    pub filtered: Mutex<HashMap<Expr, Arc<Relation>>>,
    /// The rows of the sample.
    pub sample: OnceLock<Option<RecordBatch>>,
}

impl Relation {
    /// Rows of which nothing but their number is known.
    #[must_use]
    pub fn unknown(plan: &LogicalPlan, rows: f64) -> Relation {
        Relation { rows, columns: vec![ColumnFacts::unknown(rows); plan.schema().fields().len()] }
    }

    /// As many columns as the plan has, for nodes that add some to their input's.
    #[must_use]
    pub fn with_width(mut self, plan: &LogicalPlan) -> Relation {
        let unknown = ColumnFacts::unknown(self.rows);
        self.columns.resize(plan.schema().fields().len(), unknown);
        self
    }

    /// The same columns in fewer rows, taken without regard to their values.
    #[must_use]
    pub fn with_rows(mut self, rows: f64) -> Relation {
        if rows < self.rows {
            let before = self.rows;
            self.columns.iter_mut().for_each(|column| column.thin(before, rows));
        }
        self.rows = rows;
        self
    }

    /// The facts about the values of an expression over the columns of `schema`.
    #[must_use]
    pub fn facts(&self, expr: &Expr, schema: &DFSchema) -> ColumnFacts {
        match expr {
            Expr::Column(column) => schema
                .maybe_index_of_column(column)
                .and_then(|index| self.columns.get(index).cloned())
                .unwrap_or_else(|| ColumnFacts::unknown(self.rows)),
            Expr::Alias(alias) => self.facts(&alias.expr, schema),
            Expr::Cast(cast) => self.facts(&cast.expr, schema),
            Expr::TryCast(cast) => self.facts(&cast.expr, schema),
            Expr::Literal(..) => ColumnFacts { distinct: 1.0, domain: 1.0, ..ColumnFacts::unknown(self.rows) },
            other => {
                let distinct: f64 = other
                    .column_refs()
                    .iter()
                    .filter_map(|column| self.columns.get(schema.maybe_index_of_column(column)?))
                    .map(|facts| facts.distinct.max(1.0))
                    .product();
                let distinct = distinct.min(self.rows.max(1.0));
                ColumnFacts { distinct, domain: distinct, ..ColumnFacts::unknown(self.rows) }
            }
        }
    }

    /// Bytes of a row in memory, roughly.
    #[must_use]
    pub fn row_bytes(&self) -> f64 {
        self.columns.iter().map(|column| column.width).sum::<f64>().max(8.0)
    }
}
