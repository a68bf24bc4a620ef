//! Logical node that gives a row for each value of a series.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use functions::series::SeriesType;

/// Node that repeats each input row once per value of its longest series; shorter series are padded with NULLs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProjectSet {
    pub input: Arc<LogicalPlan>,
    /// Output columns.
    pub columns: Vec<SetColumn>,
    pub schema: DFSchemaRef,
}

/// Output column of a [`ProjectSet`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SetColumn {
    /// A value of the input row.
    Input(Expr),
    /// The values of a series from the first argument to the second, by steps of the third.
    Series { kind: SeriesType, args: Vec<Expr> },
    /// WITH ORDINALITY: the number of the row among those of its input row, from 1.
    Ordinal,
}

impl PartialOrd for ProjectSet {
    fn partial_cmp(&self, _: &Self) -> Option<Ordering> {
        None
    }
}

impl UserDefinedLogicalNodeCore for ProjectSet {
    fn name(&self) -> &str {
        "ProjectSet"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        let of_column = |column: &SetColumn| match column {
            SetColumn::Input(expr) => vec![expr.clone()],
            SetColumn::Series { args, .. } => args.clone(),
            SetColumn::Ordinal => Vec::new(),
        };
        self.columns.iter().flat_map(of_column).collect()
    }

    /// Returns the computed columns: filters that read one of them stay above the node, all others can be pushed below.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let made = self.columns.iter().zip(self.schema.fields());
        let made = made.filter(|(column, _)| !matches!(column, SetColumn::Input(_)));
        made.map(|(_, field)| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProjectSet")
    }

    fn with_exprs_and_inputs(&self, exprs: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let Some(input) = inputs.pop() else { return internal_err!("ProjectSet was rebuilt without an input") };
        let mut exprs = exprs.into_iter();
        let columns = self.columns.iter().map(|column| match column {
            SetColumn::Input(expr) => SetColumn::Input(exprs.next().unwrap_or_else(|| expr.clone())),
            SetColumn::Series { kind, args } => {
                SetColumn::Series { kind: *kind, args: exprs.by_ref().take(args.len()).collect() }
            }
            SetColumn::Ordinal => SetColumn::Ordinal,
        });
        Ok(Self { columns: columns.collect(), input: Arc::new(input), schema: Arc::clone(&self.schema) })
    }
}
