//! Stack limits for recursion whose depth depends on a statement: parsing, binding, optimizing, running and dropping
//! plans.
//!
//! Threads that do such work have a stack of [`PLAN_STACK_BYTES`]; if too little of it is left, planning switches to a new
//! stack ([`with_planning_stack`], [`PlanningStackFuture`]). Kiln's recursive functions measure the remaining stack
//! ([`check`]). Libraries do not, so plans with more than [`PLAN_DEPTH_MAX`] levels are rejected before a library sees
//! them. A stack uses memory only for the pages that were touched.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::{Condition, SqlError, SqlResult};

/// Stack size of threads that parse, plan, run, hold or drop plans, in bytes.
pub const PLAN_STACK_BYTES: usize = 320 << 20;

/// Remaining stack below which planning switches to a new stack, in bytes. Mapping a stack takes longer than planning a
/// short statement, so it is not done for each one.
const PLAN_STACK_BYTES_MIN: usize = 256 << 20;

/// Maximum stack per level of a plan, in bytes; DataFusion's SQL planner in an unoptimized build needs most.
const PLAN_LEVEL_STACK_BYTES_MAX: usize = 64 << 10;

/// Maximum nesting depth of a plan, including its expressions.
pub const PLAN_DEPTH_MAX: usize = PLAN_STACK_BYTES_MIN / PLAN_LEVEL_STACK_BYTES_MAX;

/// Minimum remaining stack for a step without recursion, in bytes.
const REMAINING_STACK_BYTES_MIN: usize = 1 << 20;

/// Runs `work` on the current stack if enough of it is left, else on a new planning stack.
pub fn with_planning_stack<T>(work: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(PLAN_STACK_BYTES_MIN, PLAN_STACK_BYTES, work)
}

/// Checks that enough stack is left for one more level of recursion.
///
/// # Errors
/// `54001` if it is not.
pub fn check() -> SqlResult<()> {
    if stacker::remaining_stack().is_some_and(|left| left < REMAINING_STACK_BYTES_MIN) {
        Err(too_complex_error())
    } else {
        Ok(())
    }
}

/// Returns the error `54001` for a statement that is nested too deeply.
#[must_use]
pub fn too_complex_error() -> SqlError {
    SqlError::new(Condition::StatementTooComplex, "stack depth limit exceeded")
        .with_hint("Split the statement: it nests expressions or subqueries too deeply.")
}

/// Future that is polled and dropped on a planning stack.
#[derive(Debug)]
pub struct PlanningStackFuture<F> {
    /// The future, boxed so that it can be dropped on the planning stack; `None` after that.
    work: Option<Pin<Box<F>>>,
}

impl<F: Future> PlanningStackFuture<F> {
    /// Wraps `work`.
    pub fn new(work: F) -> Self {
        Self { work: Some(Box::pin(work)) }
    }
}

impl<F: Future> Future for PlanningStackFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let work = self.work.as_mut().expect("the future is only taken by drop");
        with_planning_stack(|| work.as_mut().poll(context))
    }
}

impl<F> Drop for PlanningStackFuture<F> {
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
        let left = || stacker::remaining_stack().expect("the remaining stack is known on Linux");
        let (outer, inner) = with_planning_stack(|| (left(), with_planning_stack(left)));
        assert!(outer > PLAN_STACK_BYTES_MIN, "{outer}");
        assert!(outer - inner < 64 << 10, "{outer} and {inner} are of one stack");
    }

    #[test]
    fn threads_that_plan_borrow_none() {
        let thread = std::thread::Builder::new().stack_size(PLAN_STACK_BYTES);
        let inside = || {
            let left = || stacker::remaining_stack().expect("the remaining stack is known on Linux");
            (left(), with_planning_stack(left))
        };
        let (outer, inner) = thread.spawn(inside).expect("a thread can be made").join().expect("it ends");
        assert!(outer - inner < 64 << 10, "{outer} and {inner} are of one stack");
    }

    #[tokio::test]
    async fn futures_are_polled_on_it() {
        let left = PlanningStackFuture::new(async {
            tokio::task::yield_now().await;
            stacker::remaining_stack()
        });
        assert!(left.await.is_some_and(|left| left > PLAN_STACK_BYTES / 2));
    }
}
