//! Compiles projections and the columns that other operators compute or select.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use engine::expression::Expression;
use engine::pipeline::Step;

use super::{OpenPipelines, ProgramBuilder, SourceColumn};
use crate::expression;

/// Returns a unique position for a computed column, beyond those of real columns.
fn next_computed_column() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1 << 32);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl ProgramBuilder<'_> {
    /// Compiles a projection.
    pub(super) fn lower_projection(&mut self, projection: &ProjectionExec) -> Option<OpenPipelines> {
        let chain = self.lower_input(projection.input())?;
        let expressions = projection.expr().iter().map(|named| expression::lower(&named.expr, &chain.schema));
        let expressions = expressions.collect::<Option<Vec<_>>>()?;
        Some(chain.project(expressions, projection.schema()))
    }
}

impl OpenPipelines {
    /// Projects rows to these expressions.
    pub(super) fn project(self, expressions: Vec<Expression>, schema: SchemaRef) -> Self {
        let mut chain = self;
        let source = |expression: &Expression| match expression {
            Expression::Column(column) => chain.value_sources[*column],
            computed => chain.derived_source(computed),
        };
        chain.value_sources = expressions.iter().map(source).collect();
        for branch in &mut chain.branches {
            let origin = |expression: &Expression| match expression {
                Expression::Column(column) => branch.filterable_sources[*column],
                _ => None,
            };
            branch.filterable_sources = expressions.iter().map(origin).collect();
        }
        chain.push(&Step::Project(expressions));
        Self { schema, ..chain }
    }

    /// Returns the source of an expression that depends on columns of one input alone: it is determined by the input's
    /// row, like any column of the input.
    fn derived_source(&self, expression: &Expression) -> Option<SourceColumn> {
        let mut columns = Vec::new();
        expression.collect_columns(&mut columns);
        let input = |column: &usize| self.value_sources[*column].map(|(input, _)| input);
        let first = columns.first().and_then(input)?;
        // In rows that an outer join padded with NULLs, the expression is computed from NULLs here, but may be NULL
        // itself if it was computed below.
        let is_its =
            !self.null_padded_inputs.contains(&first) && columns.iter().all(|column| input(column) == Some(first));
        (is_its && expression.is_immutable()).then(|| (first, next_computed_column()))
    }

    /// Selects some of the columns.
    pub(super) fn select_columns(self, columns: &[usize]) -> Option<Self> {
        let schema = Arc::new(self.schema.project(columns).ok()?);
        Some(self.project(columns.iter().map(|column| Expression::Column(*column)).collect(), schema))
    }

    /// Appends computed keys to the columns; returns the positions of all keys.
    pub(super) fn with_keys<'a>(
        self,
        keys: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>,
    ) -> Option<(Self, Vec<usize>)> {
        let mut columns: Vec<Expression> = (0..self.schema.fields().len()).map(Expression::Column).collect();
        let mut fields: Vec<_> = self.schema.fields().iter().cloned().collect();
        let plain = columns.len();
        let mut places = Vec::new();
        for key in keys {
            if let Some(column) = key.downcast_ref::<Column>() {
                places.push(column.index());
                continue;
            }
            columns.push(expression::lower(key, &self.schema)?);
            fields.push(key.return_field(&self.schema).ok()?);
            places.push(columns.len() - 1);
        }
        if columns.len() == plain {
            return Some((self, places));
        }
        let schema = Arc::new(Schema::new(fields));
        Some((self.project(columns, schema), places))
    }
}
