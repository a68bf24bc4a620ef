//! Tasks that DataFusion's operators start are tasks of their query.

use std::any::Any;

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Has the tasks of all operators take turns, from now on.
pub(super) fn take_turns() {
    // Another warehouse of this process has said so before.
    let _ = set_join_set_tracer(&OPERATORS);
}

static OPERATORS: Operators = Operators;

struct Operators;

type Outcome = Box<dyn Any + Send>;

impl JoinSetTracer for Operators {
    fn trace_future(&self, future: BoxFuture<'static, Outcome>) -> BoxFuture<'static, Outcome> {
        super::beside(future).boxed()
    }

    fn trace_block(&self, block: Box<dyn FnOnce() -> Outcome + Send>) -> Box<dyn FnOnce() -> Outcome + Send> {
        block
    }
}
