//! UNION ALL: pipelines that end in one sink.

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;

use super::{Builder, Chain};

impl Builder<'_> {
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
        // A value may be of any input: none says anything of the others.
        let sources = vec![None; schema.fields().len()];
        Some(Chain { branches, schema, sources, padded: Vec::new(), is_ordered: false })
    }
}
