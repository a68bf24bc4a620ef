//! Kiln's own operators as expressions and plain data, from which another process rebuilds them.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;

pub use crate::project_set::ProjectSetColumn as SeriesColumn;
use crate::project_set::ProjectSetExec;
use crate::rank_limit::RankLimitExec;

/// Operator of Kiln's own, without its input.
#[derive(Debug, Clone)]
pub enum PortableOperator {
    /// Expands each input row to as many rows as its longest series has values.
    ProjectSet { columns: Vec<SeriesColumn>, schema: SchemaRef },
    /// Removes rows that rank beyond `most` in their window partition.
    RankLimit { parts: Vec<Arc<dyn PhysicalExpr>>, order: Vec<PhysicalSortExpr>, most: usize },
}

impl PortableOperator {
    /// Takes an operator of Kiln's own apart; `None` for any other.
    #[must_use]
    pub fn try_from_operator(operator: &dyn ExecutionPlan) -> Option<Self> {
        if let Some(series) = operator.downcast_ref::<ProjectSetExec>() {
            return Some(Self::ProjectSet { columns: series.columns().to_vec(), schema: operator.schema() });
        }
        let ranks = operator.downcast_ref::<RankLimitExec>()?;
        let (parts, order, most) = ranks.parameters();
        Some(Self::RankLimit { parts: parts.to_vec(), order: order.to_vec(), most })
    }

    /// Rebuilds the operator over `input`, to whose columns its expressions refer.
    #[must_use]
    pub fn with_input(self, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        match self {
            Self::ProjectSet { columns, schema } => Arc::new(ProjectSetExec::new(input, columns, schema)),
            Self::RankLimit { parts, order, most } => Arc::new(RankLimitExec::new(input, parts, order, most)),
        }
    }
}
