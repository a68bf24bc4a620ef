//! Operators of Kiln's own, taken apart: their expressions and plain data, of which others make the same operators again.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;

pub use crate::project_set::Column as SeriesColumn;
use crate::project_set::ProjectSetExec;
use crate::rank_limit::RankLimitExec;

/// One of them, without its input.
#[derive(Debug, Clone)]
pub enum OwnOperator {
    /// For each row of the input as many rows as its longest series has values.
    ProjectSet { columns: Vec<SeriesColumn>, schema: SchemaRef },
    /// Leaves out rows that rank beyond `most` among those of their part.
    RankLimit { parts: Vec<Arc<dyn PhysicalExpr>>, order: Vec<PhysicalSortExpr>, most: usize },
}

impl OwnOperator {
    /// The parts of an operator of Kiln's own; `None` for any other.
    #[must_use]
    pub fn of(operator: &dyn ExecutionPlan) -> Option<Self> {
        if let Some(series) = operator.downcast_ref::<ProjectSetExec>() {
            return Some(Self::ProjectSet { columns: series.columns().to_vec(), schema: operator.schema() });
        }
        let ranks = operator.downcast_ref::<RankLimitExec>()?;
        let (parts, order, most) = ranks.limit();
        Some(Self::RankLimit { parts: parts.to_vec(), order: order.to_vec(), most })
    }

    /// The operator over `input`, whose columns its expressions count.
    #[must_use]
    pub fn over(self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        match self {
            Self::ProjectSet { columns, schema } => Arc::new(ProjectSetExec::new(input, columns, schema)),
            Self::RankLimit { parts, order, most } => Arc::new(RankLimitExec::new(input, parts, order, most)),
        }
    }
}
