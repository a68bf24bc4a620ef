//! Stack for work whose depth a statement decides: parsing, binding, optimizing, running and dropping of plans.
//!
//! Every thread that does such work has [`PLAN_STACK`]; where less is left, planning borrows another one ([`with_planning_stack`],
//! [`PlanningStack`]). Kiln's recursions measure what is left of it ([`check`]). Those of libraries do not, so that a plan whose
//! [levels](PLAN_LEVELS) would not fit is refused before one of them sees it. Memory is taken for the pages that are touched, not for the size.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::{Condition, SqlError, SqlResult};

/// Stack of threads that parse, plan, run, hold or drop plans, in bytes.
pub const PLAN_STACK: usize = 320 << 20;

/// Planning borrows a stack where less than this is left, in bytes: to map one for each short statement would take longer than to plan it.
const PLAN_STACK_MIN: usize = 256 << 20;

/// Stack that a level of a plan takes at most, in bytes: DataFusion's SQL planner, without optimization, needs most.
const LEVEL_STACK: usize = 64 << 10;

/// Levels of a plan and of the expressions in it, one below the other, that a plan has at most.
pub const PLAN_LEVELS: usize = PLAN_STACK_MIN / LEVEL_STACK;

/// What must be left for a step without recursion, in bytes.
const STEP: usize = 1 << 20;

/// Calls `work` on a stack for planning: this one where enough of it is left, else a new one.
pub fn with_planning_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(PLAN_STACK_MIN, PLAN_STACK, work)
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
        assert!(outer > PLAN_STACK_MIN, "{outer}");
        assert!(outer - inner < 64 << 10, "{outer} and {inner} are of one stack");
    }

    #[test]
    fn threads_that_plan_borrow_none() {
        let thread = std::thread::Builder::new().stack_size(PLAN_STACK);
        let inside = || {
            let left = || stacker::remaining_stack().expect("Linux tells");
            (left(), with_planning_stack(left))
        };
        let (outer, inner) = thread.spawn(inside).expect("a thread can be made").join().expect("it ends");
        assert!(outer - inner < 64 << 10, "{outer} and {inner} are of one stack");
    }

    #[tokio::test]
    async fn futures_are_polled_on_it() {
        let left = PlanningStack::new(async {
            tokio::task::yield_now().await;
            stacker::remaining_stack()
        });
        assert!(left.await.is_some_and(|left| left > PLAN_STACK / 2));
    }
}
