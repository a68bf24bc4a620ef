//! Cuts pipelines into stages at joins whose build sides are partitioned on disk.

use std::sync::Arc;

use engine::join::JoinSpec;
use engine::pipeline::{Pipeline, Sink, Step};

/// A section of a pipeline that rows pass through without interruption. All rows reach its end before the next stage
/// begins with a join on disk; they are written there in the same partitions as the build side.
pub(super) struct PipelineStage {
    /// Pipeline with the steps of this stage only; its source is that of the original pipeline.
    pub(super) pipeline: Arc<Pipeline>,
    /// Index of the first step in the original pipeline.
    pub(super) first: usize,
    /// Join that follows the stage, if there is one.
    pub(super) next_join: Option<Arc<JoinSpec>>,
}

impl PipelineStage {
    /// Returns the stages of a pipeline. `is_in_parts` returns whether the build side of a pipeline is partitioned on
    /// disk.
    pub(super) fn split(pipeline: &Pipeline, is_build_side_spilled: impl Fn(usize) -> bool) -> Vec<Self> {
        let cut = |(place, step): (usize, &Step)| match step {
            Step::Probe { build_pipeline: built_by, spec, .. } if is_build_side_spilled(*built_by) => {
                Some((place, Arc::clone(spec)))
            }
            _ => None,
        };
        let cuts: Vec<(usize, Arc<JoinSpec>)> = pipeline.steps.iter().enumerate().filter_map(cut).collect();
        let firsts = std::iter::once(0).chain(cuts.iter().map(|(place, _)| *place));
        let ends = cuts.iter().map(|(place, spec)| (*place, Some(spec))).chain([(pipeline.steps.len(), None)]);
        let stage = |(first, (end, next)): (usize, (usize, Option<&Arc<JoinSpec>>))| {
            let steps = pipeline.steps[first..end].to_vec();
            let sink = if next.is_some() { Sink::Output } else { pipeline.sink.clone() };
            let pipeline = Arc::new(Pipeline { steps, sink, ..Pipeline::clone(pipeline) });
            Self { pipeline, first, next_join: next.cloned() }
        };
        firsts.zip(ends).map(stage).collect()
    }

    /// Returns whether this stage counts the rows that arrive at `step`: at its steps or its end, except those of a
    /// join on disk at its start, which the previous stage has counted.
    pub(super) fn counts_rows_at(&self, step: usize, is_joined: bool) -> bool {
        let begins = if is_joined { self.first < step } else { self.first <= step };
        begins && step <= self.first + self.pipeline.steps.len()
    }

    /// Returns the joins that output build rows once all rows have arrived, including those of other pipelines that
    /// probe the same hash table. A join on disk has done so for each partition.
    pub(super) fn unmatched_output_steps(&self, is_joined: bool, is_last: impl Fn(usize) -> bool) -> Vec<usize> {
        let gives_rest = |step: &Step| match step {
            Step::Probe { spec, build_pipeline: built_by, .. } => spec.kind.outputs_build_rows() && is_last(*built_by),
            _ => false,
        };
        let steps = self.pipeline.steps.iter().enumerate().skip(usize::from(is_joined));
        steps.filter(|(_, step)| gives_rest(step)).map(|(place, _)| place).collect()
    }
}
