//! Finds pipelines that can read groups before all groups are complete.

use engine::pipeline::{Program, Sink, Source, Step};

/// Returns, for each pipeline whose groups become complete while it runs, the pipeline that reads them, unless that
/// needs a hash table that is built later.
pub(super) fn early_readers(program: &Program) -> Vec<Option<usize>> {
    let reader = |number: usize| {
        let is_reader = |pipeline: &engine::pipeline::Pipeline| pipeline.source == Source::Groups(number);
        let reader = program.pipelines.iter().position(is_reader)?;
        let is_shared =
            |number: usize| program.pipelines.get(number).is_some_and(|pipeline| pipeline.continues_in_next);
        if [Some(number), Some(reader), number.checked_sub(1), reader.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(is_shared)
        {
            // The workers of union inputs share sink states with other pipelines.
            return None;
        }
        let is_there = |step: &Step| !matches!(step, Step::Probe { build_pipeline, .. } if number <= *build_pipeline);
        program.pipelines[reader].steps.iter().all(is_there).then_some(reader)
    };
    let of = |(number, pipeline): (usize, &engine::pipeline::Pipeline)| match &pipeline.sink {
        Sink::Aggregate(spec) if spec.clustered.is_some() => reader(number),
        _ => None,
    };
    program.pipelines.iter().enumerate().map(of).collect()
}
