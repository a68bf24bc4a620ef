//! Makes tasks that DataFusion's operators spawn part of their query.

use std::any::Any;

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;

/// Installs the hook that makes tasks of all operators run in turns.
pub(super) fn install_tracer() {
    // Fails if another server in this process has installed it already.
    let _ = set_join_set_tracer(&SPAWNED_TASKS);
}

static SPAWNED_TASKS: SpawnedTasks = SpawnedTasks;

struct SpawnedTasks;

type Outcome = Box<dyn Any + Send>;

impl JoinSetTracer for SpawnedTasks {
    fn trace_future(&self, future: BoxFuture<'static, Outcome>) -> BoxFuture<'static, Outcome> {
        super::in_same_query(future).boxed()
    }

    fn trace_block(&self, block: Box<dyn FnOnce() -> Outcome + Send>) -> Box<dyn FnOnce() -> Outcome + Send> {
        block
    }
}
