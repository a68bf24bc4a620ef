//! Maps steps and sinks of a program to the operators that they were compiled from, for EXPLAIN.

use engine::expression::{ArrowFunction, Expression};
use engine::pipeline::{Pipeline, Sink, Source, Step};

use super::{CompiledFragment, Input, OperatorId};

impl CompiledFragment {
    /// Returns the operator of a step: the first whose output follows it, else that of the sink.
    pub(crate) fn operator_of_step(&self, number: usize, step: usize) -> Option<OperatorId> {
        let later = self.operator_outputs[number].iter().filter(|mark| step < mark.step);
        let next = later.min_by_key(|mark| mark.step).map(|mark| mark.operator);
        next.or_else(|| self.operator_of_sink(number))
    }

    /// Returns the operator of a pipeline's sink.
    pub(crate) fn operator_of_sink(&self, number: usize) -> Option<OperatorId> {
        let pipelines = &self.program.pipelines;
        let last = (number..pipelines.len()).find(|number| !pipelines[*number].continues_in_next)?;
        let reads = |source: Source| pipelines.iter().position(|pipeline| pipeline.source == source);
        let first_mark =
            |reader: usize| self.operator_outputs[reader].iter().min_by_key(|mark| mark.step).map(|mark| mark.operator);
        match &pipelines[last].sink {
            Sink::Output => None,
            // The first step of its reader finalizes aggregates, or groups the groups again.
            Sink::Aggregate(_) => {
                let reader = reads(Source::Groups(last))?;
                first_mark(reader).or_else(|| self.operator_of_sink(reader))
            }
            Sink::Sort(_) => first_mark(reads(Source::Sorted(last))?),
            Sink::Build(_) => pipelines.iter().enumerate().find_map(|(number, pipeline)| {
                let probes =
                    |step: &Step| matches!(step, Step::Probe { build_pipeline, .. } if *build_pipeline == last);
                self.operator_of_step(number, pipeline.steps.iter().position(probes)?)
            }),
        }
    }

    /// Returns the operators with expressions that are evaluated over Arrow arrays, with these expressions as SQL.
    pub(crate) fn arrow_expressions(&self) -> Vec<(OperatorId, String)> {
        let mut all = Vec::new();
        for (number, pipeline) in self.program.pipelines.iter().enumerate() {
            if let Some((scan, filters)) = self.filters(pipeline) {
                all.extend(filters.flat_map(called_arrow_functions).map(|function| (scan, function.sql())));
            }
            for (place, step) in pipeline.steps.iter().enumerate() {
                let Some(operator) = self.operator_of_step(number, place) else { continue };
                let called = expressions(step).into_iter().flat_map(called_arrow_functions);
                all.extend(called.map(|function| (operator, function.sql())));
            }
        }
        all
    }

    /// Returns the scan that a pipeline reads and its filter conditions.
    fn filters(&self, pipeline: &Pipeline) -> Option<(OperatorId, impl Iterator<Item = &Expression>)> {
        let Source::Input(input) = pipeline.source else { return None };
        let Input::Scan(input) = &self.inputs[input] else { return None };
        Some((OperatorId::new(input.scan.as_ref()), input.filters.iter().map(|filter| &filter.condition)))
    }
}

/// Returns the expressions of a step.
fn expressions(step: &Step) -> Vec<&Expression> {
    match step {
        Step::Filter(expressions) | Step::Project(expressions) => expressions.iter().collect(),
        Step::Expand(lists) => lists.iter().flatten().collect(),
        Step::Probe { spec, .. } => spec.residual.iter().map(|residual| &residual.condition).collect(),
        Step::Limit { .. } => Vec::new(),
    }
}

/// Returns the functions in an expression that are evaluated over Arrow arrays.
fn called_arrow_functions(expression: &Expression) -> Vec<&dyn ArrowFunction> {
    let mut functions = Vec::new();
    expression.collect_arrow_functions(&mut functions);
    functions
}
