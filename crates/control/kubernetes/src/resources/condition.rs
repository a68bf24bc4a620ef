//! Conditions of a resource's status, which remember since when they are so.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// The condition that says whether all that a resource asks for has been applied.
pub const RECONCILED: &str = "Reconciled";

/// What is said about a condition now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub holds: bool,
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
}

/// The condition `kind` as it is now: where it held before as well, or did not, it does so since then. The message is cut at the length that
/// the API server takes.
#[must_use]
pub fn condition(
    before: &[Condition],
    kind: &str,
    report: Report,
    generation: Option<i64>,
    now: Timestamp,
) -> Condition {
    let status = if report.holds { "True" } else { "False" };
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

/// More of a message is not kept.
const MESSAGE_BYTES_MAX: usize = 4_096;
