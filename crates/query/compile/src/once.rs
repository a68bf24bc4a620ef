//! What of a plan can be read only once: rows of other processes, which are sent as they are made.
//!
//! Where the engine does not decide, the operators that a program stands for begin again. Beside rows of others they cannot, and the whole query has to:
//! in the instance, where whatever is to be said about it is said.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::common::tree_node::TreeNode;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_distributed::NetworkBoundaryExt;
use functions::error::to_datafusion;
use types::{Condition, SqlError};

/// What a part that cannot begin again says.
const UNDECIDED: &str = "a part of a query on several workers has to be run by operators";

/// Whether a plan reads rows of other processes.
pub(crate) fn reads_once(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.exists(|operator| Ok(operator.is_network_boundary())).expect("nothing fails on the way")
}

/// The error of a part that cannot begin again, for this reason.
pub(crate) fn undecided(reason: &engine::Error) -> DataFusionError {
    let condition = match reason {
        engine::Error::Memory(_) => Condition::OutOfMemory,
        _ => Condition::InternalError,
    };
    let error = SqlError::new(condition, UNDECIDED).with_detail(reason.to_string());
    to_datafusion(error.with_hint("SET kiln.engine = off runs the query by operators alone."))
}

/// Why a part could not begin again, where that is how a query failed.
pub fn undecided_why(error: &SqlError) -> Option<String> {
    (error.message == UNDECIDED).then(|| error.detail.clone().unwrap_or_default())
}
