//! Compiles UNION ALL: pipelines that end in one sink.

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::union::UnionExec;

use super::{OpenPipelines, ProgramBuilder};

impl ProgramBuilder<'_> {
    /// Compiles a UNION ALL whose inputs have the column types of the result.
    pub(super) fn lower_union(&mut self, union: &UnionExec) -> Option<OpenPipelines> {
        let schema = union.schema();
        let mut branches = Vec::new();
        for input in union.inputs() {
            let chain = self.lower_input(input)?;
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
        Some(OpenPipelines {
            branches,
            schema,
            value_sources: sources,
            null_padded_inputs: Vec::new(),
            is_ordered: false,
        })
    }
}
