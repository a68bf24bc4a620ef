//! Projections, and columns that other operators compute or choose.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use engine::expression::Expression;
use engine::pipeline::Step;

use super::{Builder, Chain, SourceColumn};
use crate::cover::expression;

/// Places of computed columns among those of an input: no column has one, and no two steps of a pipeline have the same.
const COMPUTED: usize = 1 << 32;
const COMPUTED_AT_ONCE: usize = 1 << 16;

impl Builder {
    pub(super) fn projection(&mut self, projection: &ProjectionExec) -> Option<Chain> {
        let chain = self.below(projection.input())?;
        let expressions = projection.expr().iter().map(|named| expression::lower(&named.expr, &chain.schema));
        let expressions = expressions.collect::<Option<Vec<_>>>()?;
        Some(chain.projected(expressions, projection.schema()))
    }
}

impl Chain {
    /// With other columns.
    pub(super) fn projected(self, expressions: Vec<Expression>, schema: SchemaRef) -> Self {
        let mut chain = self;
        let origin = |expression: &Expression| match expression {
            Expression::Column(column) => chain.origins[*column],
            _ => None,
        };
        let source = |(place, expression): (usize, &Expression)| match expression {
            Expression::Column(column) => chain.sources[*column],
            computed => chain.computed(place, computed),
        };
        let sources = expressions.iter().enumerate().map(source).collect();
        let origins = expressions.iter().map(origin).collect();
        (chain.origins, chain.sources) = (origins, sources);
        chain.steps.push(Step::Project(expressions));
        Self { schema, ..chain }
    }

    /// What is computed of one input's columns alone is like one more of these: whoever knows the input's row knows it.
    fn computed(&self, place: usize, expression: &Expression) -> Option<SourceColumn> {
        let mut columns = Vec::new();
        expression.columns(&mut columns);
        let input = |column: &usize| self.sources[*column].map(|(input, _)| input);
        let first = columns.first().and_then(input)?;
        let is_its = expression.is_immutable() && columns.iter().all(|column| input(column) == Some(first));
        is_its.then_some((first, COMPUTED + self.steps.len() * COMPUTED_AT_ONCE + place))
    }

    /// With some of the columns.
    pub(super) fn chosen(self, columns: &[usize]) -> Option<Self> {
        let schema = Arc::new(self.schema.project(columns).ok()?);
        Some(self.projected(columns.iter().map(|column| Expression::Column(*column)).collect(), schema))
    }

    /// With the keys among its columns, and where they are.
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
        Some((self.projected(columns, schema), places))
    }
}
