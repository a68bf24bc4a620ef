//! Stack for work whose depth a statement decides: parsing, binding, optimizing, running and dropping of plans.
//!
//! Statements are planned on [`PLANNING_STACK`]: threads that only plan have one of that size, others borrow one ([`with_planning_stack`],
//! [`PlanningStack`]). Kiln's recursions measure what is left of it ([`check`]). Those of libraries do not, so that a plan whose
//! [levels](PLAN_LEVELS) would not fit is refused before one of them sees it. Memory is taken for the pages that are touched, not for the size.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::{Condition, SqlError, SqlResult};

/// Stack on which statements are parsed and planned, in bytes.
pub const PLANNING_STACK: usize = 256 << 20;

/// Stack of threads that run, hold and drop plans, in bytes.
pub const RUNNING_STACK: usize = 64 << 20;

/// Planning moves to a stack of its own where less than this is left, in bytes.
const PLANNING_STACK_MIN: usize = 64 << 20;

/// Stack that a level of a plan takes at most while it is planned, in bytes: DataFusion's SQL planner, without optimization, needs most.
const LEVEL_OF_PLANNING: usize = 64 << 10;

/// Levels of a plan and of the expressions in it, one below the other, that a plan has at most. While it runs, each has
/// `RUNNING_STACK / PLAN_LEVELS` = 16 KiB.
pub const PLAN_LEVELS: usize = PLANNING_STACK / LEVEL_OF_PLANNING;

/// What must be left for a step without recursion, in bytes.
const STEP: usize = 1 << 20;

/// Calls `work` on a stack for planning: this one where enough of it is left, else a new one.
pub fn with_planning_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(PLANNING_STACK_MIN, PLANNING_STACK, work)
}

/// Fails when too little stack is left to go one level deeper.
///
/// # Errors
/// `54001`.
pub fn check() -> SqlResult<()> {
    if stacker::remaining_stack().is_some_and(|left| left < STEP) { Err(too_complex()) } else { Ok(()) }
}

/// `54001`: nested too deeply.
#[must_use]
pub fn too_complex() -> SqlError {
    SqlError::new(Condition::StatementTooComplex, "stack depth limit exceeded")
        .with_hint("Split the statement: it nests expressions or subqueries too deeply.")
}

/// Future whose every poll, and whose drop, runs on a stack for planning.
#[derive(Debug)]
pub struct PlanningStack<F> {
    /// Boxed, so that it is dropped where this says. `None` after that.
    work: Option<Pin<Box<F>>>,
}

impl<F: Future> PlanningStack<F> {
    /// Wraps `work`.
    pub fn new(work: F) -> Self {
        Self { work: Some(Box::pin(work)) }
    }
}

impl<F: Future> Future for PlanningStack<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.work.as_mut().expect("a future is not polled after its drop");
        with_planning_stack(|| work.as_mut().poll(context))
    }
}

impl<F> Drop for PlanningStack<F> {
    fn drop(&mut self) {
        let work = self.work.take();
        with_planning_stack(|| drop(work));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(left: usize) -> SqlResult<usize> {
        check()?;
        let frame = std::hint::black_box([left; 64]);
        if left == 0 { Ok(frame[0]) } else { depth(left - 1).map(|below| below + 1) }
    }

    #[test]
    fn recursion_that_measures_ends_with_an_error() {
        let ended = with_planning_stack(|| depth(100_000_000)).expect_err("no stack has room for it");
        assert_eq!(ended.condition, Condition::StatementTooComplex);
        assert_eq!(with_planning_stack(|| depth(10_000)), Ok(10_000));
    }

    #[test]
    fn planning_stays_on_its_stack() {
        let left = || stacker::remaining_stack().expect("Linux tells");
        let (outer, inner) = with_planning_stack(|| (left(), with_planning_stack(left)));
        assert!(outer > PLANNING_STACK / 2, "{outer}");
        assert!(outer - inner < 64 << 10, "{outer} and {inner} are of one stack");
    }

    #[tokio::test]
    async fn futures_are_polled_on_it() {
        let left = PlanningStack::new(async {
            tokio::task::yield_now().await;
            stacker::remaining_stack()
        });
        assert!(left.await.is_some_and(|left| left > PLANNING_STACK / 2));
    }
}
