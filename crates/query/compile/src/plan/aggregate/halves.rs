//! Partial and final aggregation that run in different processes.
//!
//! States have the format of DataFusion's operators, so either phase may run in DataFusion.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use engine::aggregate::{AggregateSpec, StateSpec};
use engine::arrow_form::{form, is_compared};
use engine::expression::Expression;
use engine::pipeline::{Sink, Source, Step};

use super::super::{Branch, Builder, Chain};
use super::Aggregate;
use super::kept::Of;
use super::states::States;
use crate::expression;

impl Builder<'_> {
    /// Compiles the partial phase, which outputs states.
    pub(super) fn first_half(&mut self, first: &AggregateExec) -> Option<Chain> {
        let states = |states: &mut States, aggregate: &Arc<AggregateFunctionExpr>, filter: Option<&_>| {
            let given = states.given(aggregate, filter)?;
            (given.len() == aggregate.state_fields().ok()?.len()).then_some(given)
        };
        self.grouped(first, first, states)
    }

    /// Compiles the final phase, which merges states.
    pub(super) fn second_half(&mut self, last: &AggregateExec) -> Option<Chain> {
        let groups = last.group_expr();
        if last.limit_options().is_some() || groups.has_grouping_set() {
            return None;
        }
        let chain = self.below(last.input())?;
        let key_count = groups.expr().len();
        let mut columns =
            groups.expr().iter().map(|(key, _)| expression::lower(key, &chain.schema)).collect::<Option<Vec<_>>>()?;
        let schema = last.schema();
        if super::KEYS_MAX < key_count || !schema.fields()[..key_count].iter().all(|key| is_compared(key.data_type())) {
            return None;
        }
        let mut states: Vec<StateSpec> = Vec::new();
        let mut output: Vec<Expression> = (0..key_count).map(Expression::Column).collect();
        for aggregate in last.aggr_expr() {
            if aggregate.is_distinct() {
                return None;
            }
            let kind = Aggregate::of(aggregate, &last.input_schema())?;
            let kept = kind.clone().kept()?;
            let first = states.len();
            if kept.len() != aggregate.state_fields().ok()?.len() {
                return None;
            }
            for (kept, _) in &kept {
                let column = columns.len();
                columns.push(Expression::Column(column));
                states.push(StateSpec { kept: *kept, column: None, filter: None }.of_partial(column));
            }
            output.push(kind.finished(aggregate, |wanted, of| {
                let place = kept.iter().position(|known| *known == (wanted, of)).expect("a known state");
                Expression::Column(key_count + first + place)
            }));
        }
        if columns.len() != chain.schema.fields().len() {
            return None;
        }
        self.has_work = true;
        let padded = chain.padded.clone();
        let chain = chain.projected(columns, Arc::new(Schema::empty()));
        let key_forms = schema.fields()[..key_count].iter().filter_map(|key| form(key.data_type())).collect();
        let spec = AggregateSpec { keys: (0..key_count).collect(), key_forms, states, ..AggregateSpec::default() };
        let nothing = vec![None; output.len()];
        let pipeline = self.end(chain, &Sink::Groups(Arc::new(spec)));
        let branch = Branch::new(Source::Groups(pipeline), vec![Step::Project(output)], nothing.clone());
        Some(Chain { branches: vec![branch], schema, sources: nothing, padded, is_ordered: false })
    }
}

impl Aggregate {
    /// Returns the states of the aggregate in DataFusion's order; `None` if DataFusion's states differ.
    pub(super) fn kept(self) -> Option<Vec<(engine::aggregate::Kept, Of)>> {
        use engine::aggregate::Kept;
        Some(match self {
            Self::CountRows => vec![(Kept::Count, Of::Rows)],
            Self::Count => vec![(Kept::Count, Of::Values)],
            Self::Min(form) => vec![(Kept::Min(form), Of::Values)],
            Self::Max(form) => vec![(Kept::Max(form), Of::Values)],
            Self::Total { sum, .. } => vec![(sum, Of::Values), (Kept::Count, Of::Values)],
            Self::Spread { .. } | Self::FloatSpread => return None,
        })
    }
}
