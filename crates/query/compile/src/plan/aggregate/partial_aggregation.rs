//! Partial and final aggregation that run in different processes.
//!
//! States have the format of DataFusion's operators, so either phase may run in DataFusion.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use engine::aggregate::{AggregateSpec, StateSpec};
use engine::arrow_convert::{is_comparable, physical_type};
use engine::expression::Expression;
use engine::pipeline::{Sink, Source, Step};

use super::super::{OpenPipeline, OpenPipelines, ProgramBuilder};
use super::AggregateFunction;
use super::aggregate_functions::StateInput;
use super::aggregate_states::AggregateStates;
use crate::expression;

impl ProgramBuilder<'_> {
    /// Compiles the partial phase, which outputs states.
    pub(super) fn lower_partial(&mut self, first: &AggregateExec) -> Option<OpenPipelines> {
        let states = |states: &mut AggregateStates, aggregate: &Arc<AggregateFunctionExpr>, filter: Option<&_>| {
            let given = states.add_states(aggregate, filter)?;
            (given.len() == aggregate.state_fields().ok()?.len()).then_some(given)
        };
        self.add_grouping(first, first, states)
    }

    /// Compiles the final phase, which merges states.
    pub(super) fn lower_final(&mut self, last: &AggregateExec) -> Option<OpenPipelines> {
        let groups = last.group_expr();
        if last.limit_options().is_some() || groups.has_grouping_set() {
            return None;
        }
        let chain = self.lower_input(last.input())?;
        let key_count = groups.expr().len();
        let mut columns =
            groups.expr().iter().map(|(key, _)| expression::lower(key, &chain.schema)).collect::<Option<Vec<_>>>()?;
        let schema = last.schema();
        if super::KEYS_MAX < key_count || !schema.fields()[..key_count].iter().all(|key| is_comparable(key.data_type()))
        {
            return None;
        }
        let mut states: Vec<StateSpec> = Vec::new();
        let mut output: Vec<Expression> = (0..key_count).map(Expression::Column).collect();
        for aggregate in last.aggr_expr() {
            if aggregate.is_distinct() {
                return None;
            }
            let kind = AggregateFunction::from_call(aggregate, &last.input_schema())?;
            let kept = kind.clone().states()?;
            let first = states.len();
            if kept.len() != aggregate.state_fields().ok()?.len() {
                return None;
            }
            for (kept, _) in &kept {
                let column = columns.len();
                columns.push(Expression::Column(column));
                states.push(StateSpec { kind: *kept, column: None, filter: None }.merge_spec(column));
            }
            output.push(kind.final_value(aggregate, |wanted, of| {
                let place = kept.iter().position(|known| *known == (wanted, of)).expect("a known state");
                Expression::Column(key_count + first + place)
            }));
        }
        if columns.len() != chain.schema.fields().len() {
            return None;
        }
        self.has_work = true;
        let padded = chain.null_padded_inputs.clone();
        let chain = chain.project(columns, Arc::new(Schema::empty()));
        let key_types = schema.fields()[..key_count].iter().filter_map(|key| physical_type(key.data_type())).collect();
        let spec = AggregateSpec { keys: (0..key_count).collect(), key_types, states, ..AggregateSpec::default() };
        let nothing = vec![None; output.len()];
        let pipeline = self.end_pipelines(chain, &Sink::Aggregate(Arc::new(spec)));
        let branch = OpenPipeline::new(Source::Groups(pipeline), vec![Step::Project(output)], nothing.clone());
        Some(OpenPipelines {
            branches: vec![branch],
            schema,
            value_sources: nothing,
            null_padded_inputs: padded,
            is_ordered: false,
        })
    }
}

impl AggregateFunction {
    /// Returns the states of the aggregate in DataFusion's order; `None` if DataFusion's states differ.
    pub(super) fn states(self) -> Option<Vec<(engine::aggregate::AggregateKind, StateInput)>> {
        use engine::aggregate::AggregateKind;
        Some(match self {
            Self::CountRows => vec![(AggregateKind::Count, StateInput::Rows)],
            Self::Count => vec![(AggregateKind::Count, StateInput::Values)],
            Self::Min(form) => vec![(AggregateKind::Min(form), StateInput::Values)],
            Self::Max(form) => vec![(AggregateKind::Max(form), StateInput::Values)],
            Self::Total { sum, .. } => vec![(sum, StateInput::Values), (AggregateKind::Count, StateInput::Values)],
            Self::Variance { .. } | Self::FloatVariance => return None,
        })
    }
}
