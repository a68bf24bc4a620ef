//! Where pipelines are cut: at joins whose build sides are in parts on disk.

use std::sync::Arc;

use engine::join::JoinSpec;
use engine::pipeline::{Pipeline, Sink, Step};

/// Steps that a pipeline's rows go through at a stretch. All rows come to the end of a stage before the next begins, whose first step is
/// a join with parts: they go there in parts as well.
pub(super) struct Stage {
    /// With these steps alone; its source is the whole pipeline's.
    pub(super) pipeline: Arc<Pipeline>,
    /// The place of its first step among all.
    pub(super) first: usize,
    /// The join that comes next, if there is one.
    pub(super) next: Option<Arc<JoinSpec>>,
}

impl Stage {
    /// The stages of a pipeline; `is_in_parts` says so of the build side that a pipeline made.
    pub(super) fn all(pipeline: &Pipeline, is_in_parts: impl Fn(usize) -> bool) -> Vec<Self> {
        let cut = |(place, step): (usize, &Step)| match step {
            Step::Probe { built_by, spec, .. } if is_in_parts(*built_by) => Some((place, Arc::clone(spec))),
            _ => None,
        };
        let cuts: Vec<(usize, Arc<JoinSpec>)> = pipeline.steps.iter().enumerate().filter_map(cut).collect();
        let firsts = std::iter::once(0).chain(cuts.iter().map(|(place, _)| *place));
        let ends = cuts.iter().map(|(place, spec)| (*place, Some(spec))).chain([(pipeline.steps.len(), None)]);
        let stage = |(first, (end, next)): (usize, (usize, Option<&Arc<JoinSpec>>))| {
            let steps = pipeline.steps[first..end].to_vec();
            let sink = if next.is_some() { Sink::Rows } else { pipeline.sink.clone() };
            let pipeline = Arc::new(Pipeline { steps, sink, ..Pipeline::clone(pipeline) });
            Self { pipeline, first, next: next.cloned() }
        };
        firsts.zip(ends).map(stage).collect()
    }

    /// Returns whether the rows that come to a step are counted in this stage: at its steps or its end, but for those that a join in parts begins with, which
    /// the stage before has counted.
    pub(super) fn counts(&self, step: usize, is_joined: bool) -> bool {
        let begins = if is_joined { self.first < step } else { self.first <= step };
        begins && step <= self.first + self.pipeline.steps.len()
    }

    /// The steps that have more to give once all rows have come, also those of other pipelines to the same table. A join in parts has done so
    /// with each part.
    pub(super) fn rests(&self, is_joined: bool, is_last: impl Fn(usize) -> bool) -> Vec<usize> {
        let gives_rest = |step: &Step| match step {
            Step::Probe { spec, built_by, .. } => spec.kind.gives_rest() && is_last(*built_by),
            _ => false,
        };
        let steps = self.pipeline.steps.iter().enumerate().skip(usize::from(is_joined));
        steps.filter(|(_, step)| gives_rest(step)).map(|(place, _)| place).collect()
    }
}
