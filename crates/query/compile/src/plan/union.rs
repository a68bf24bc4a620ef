//! Compiles UNION ALL: pipelines that end in one sink.

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;

use super::{Builder, Chain};

impl Builder<'_> {
    /// Compiles a UNION ALL whose inputs have the column types of the result.
    pub(super) fn union(&mut self, union: &UnionExec) -> Option<Chain> {
        let schema = union.schema();
        let mut branches = Vec::new();
        for input in union.inputs() {
            let chain = self.below(input)?;
            let types = |schema: &arrow::datatypes::Schema| {
                schema.fields().iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
            };
            if types(&chain.schema) != types(&schema) {
                return None;
            }
            branches.extend(chain.branches);
        }
        // A value may come from any input, so it determines no other column.
        let sources = vec![None; schema.fields().len()];
        Some(Chain { branches, schema, sources, padded: Vec::new(), is_ordered: false })
    }
}
