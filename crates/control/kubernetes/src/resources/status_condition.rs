//! Conditions in the status of a resource, with the time of their last transition.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Condition type: whether all objects that the resource requires have been applied.
pub const RECONCILED: &str = "Reconciled";

/// Current value of a condition, with its reason and message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionState {
    /// Whether the condition's status is True.
    pub is_true: bool,
    /// Machine-readable reason, in CamelCase.
    pub reason: &'static str,
    /// Human-readable explanation.
    pub message: String,
}

/// Returns the condition of type `kind` for `report`. If the status is the same as in `before`, the transition time
/// stays the same. The message is truncated to 4,096 bytes.
#[must_use]
pub fn updated_condition(
    before: &[Condition],
    kind: &str,
    report: ConditionState,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let status = if report.is_true { "True" } else { "False" };
    let same = before.iter().find(|condition| condition.type_ == kind && condition.status == status);
    let mut message = report.message;
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    Condition {
        last_transition_time: same.map_or(Time(now), |condition| condition.last_transition_time.clone()),
        message,
        observed_generation: generation,
        reason: report.reason.to_owned(),
        status: status.to_owned(),
        type_: kind.to_owned(),
    }
}

/// Longest message of a condition, in bytes; longer ones are truncated.
const MESSAGE_BYTES_MAX: usize = 4_096;
