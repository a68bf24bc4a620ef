//! Status of a pod, as the node reports it.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

/// Observed state of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) container: String,
    pub(super) image: String,
    pub(super) address: Ipv4Addr,
    pub(super) is_running: bool,
    pub(super) is_started: bool,
    pub(super) is_ready: bool,
    pub(super) restarts: i32,
}

impl Seen {
    /// Returns the merge patch of the pod's status. `now` is a time as text.
    pub(super) fn status(&self, now: &str) -> Value {
        let is_ready = self.is_running && self.is_ready;
        let condition = |kind: &str, holds: bool| json!({ "type": kind, "status": if holds { "True" } else { "False" }, "lastTransitionTime": now });
        let state = if self.is_running {
            json!({ "running": { "startedAt": now } })
        } else {
            json!({ "waiting": { "reason": "CrashLoopBackOff" } })
        };
        json!({
            "status": {
                "phase": "Running",
                "podIP": self.address,
                "podIPs": [{ "ip": self.address }],
                "conditions": [
                    condition("PodScheduled", true),
                    condition("Initialized", true),
                    condition("ContainersReady", is_ready),
                    condition("Ready", is_ready),
                ],
                "containerStatuses": [{
                    "name": self.container,
                    "image": self.image,
                    "imageID": "",
                    "ready": is_ready,
                    "started": self.is_running && self.is_started,
                    "restartCount": self.restarts,
                    "state": state,
                }],
            },
        })
    }
}
