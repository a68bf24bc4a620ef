//! The workers of clusters in pods: of the pods that there are and of those who have come in from them, who is there and what is to be done. Pure.
//!
//! Kubernetes starts and ends pods. What is left to do here is what only the instance knows: that a worker which is to go has nothing more to do, and that
//! one does not answer any more.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use cluster::control_plane::StopReason;
use cluster::{ClusterId, Resources, Settings, Worker, WorkerId, WorkerSpec, WorkerState};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use types::Clock;
use xxhash_rust::xxh3::xxh3_64;

use super::resource::cluster_of;
use crate::compute::slot;

/// What of a worker's pod concerns its instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WorkerPod {
    pub(super) name: String,
    pub(super) uid: String,
    /// The name of its cluster's object.
    pub(super) cluster: String,
    pub(super) slot: u32,
    /// It has been told to go.
    pub(super) is_going: bool,
    /// It has ended and does not start again.
    pub(super) has_ended: bool,
    /// Why it does not run, where that is said.
    pub(super) why: Option<String>,
    /// When it was made, by the clock of workers' times.
    pub(super) since: Duration,
}

impl WorkerPod {
    /// Of a pod that is a worker's; `None` for any other.
    pub(super) fn of(pod: &Pod, clock: &dyn Clock) -> Option<WorkerPod> {
        let name = pod.name_any();
        let made = pod.metadata.creation_timestamp.as_ref().map(|made| made.0.as_microsecond());
        let age = clock.now_us().saturating_sub(made.unwrap_or_else(|| clock.now_us()));
        let age = Duration::from_micros(u64::try_from(age).unwrap_or(0));
        let cluster = cluster_of(pod.labels())?.clone();
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        Some(WorkerPod {
            slot: slot(&cluster, &name)?,
            uid: pod.uid()?,
            is_going: pod.metadata.deletion_timestamp.is_some(),
            has_ended: matches!(phase, Some("Failed" | "Succeeded")),
            why: why(pod),
            since: clock.monotonic().saturating_sub(age),
            name,
            cluster,
        })
    }
}

/// Why a pod does not run, in Kubernetes' words.
fn why(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let said = |reason: Option<&String>, message: Option<&String>| match (reason, message) {
        (Some(reason), Some(message)) => Some(format!("{reason}: {message}")),
        (one, other) => one.or(other).cloned(),
    };
    let container = status.container_statuses.iter().flatten().find_map(|container| {
        let waiting = container.state.as_ref()?.waiting.as_ref()?;
        said(waiting.reason.as_ref(), waiting.message.as_ref())
    });
    let condition = || {
        let unscheduled = |kind: &str, status: &str| kind == "PodScheduled" && status == "False";
        let conditions = status.conditions.iter().flatten();
        let found = conditions.into_iter().find(|condition| unscheduled(&condition.type_, &condition.status))?;
        said(found.reason.as_ref(), found.message.as_ref())
    };
    said(status.reason.as_ref(), status.message.as_ref()).or(container).or_else(condition)
}

/// Somebody who has come in, and the uid of the pod that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Guest {
    pub(super) worker: Worker,
    pub(super) life: Option<String>,
}

/// What a cluster's workers are to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) id: ClusterId,
    pub(super) spec: WorkerSpec,
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Deed {
    Configure {
        worker: WorkerId,
        spec: WorkerSpec,
    },
    Drain {
        worker: WorkerId,
    },
    Stop {
        worker: WorkerId,
        reason: StopReason,
    },
    MarkHung {
        worker: WorkerId,
    },
    /// What it lived in is gone.
    Lost {
        worker: WorkerId,
        how: String,
    },
    Forget {
        worker: WorkerId,
    },
    /// Kubernetes makes another one.
    DeletePod {
        name: String,
        uid: String,
    },
}

/// Who is there, and what is to be done about them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Look {
    pub(super) workers: Vec<Worker>,
    pub(super) deeds: Vec<Deed>,
}

/// Looks at what there is. Only where `are_all` pods are known is one that is not among them gone.
pub(super) fn look(
    pods: &[impl AsRef<WorkerPod>],
    are_all: bool,
    guests: Vec<Guest>,
    plans: &HashMap<String, Plan>,
    now: Duration,
    settings: &Settings,
) -> Look {
    let by_uid: HashMap<&str, &WorkerPod> = pods.iter().map(|pod| (pod.as_ref().uid.as_str(), pod.as_ref())).collect();
    let by_id: HashMap<ClusterId, &Plan> = plans.values().map(|plan| (plan.id, plan)).collect();
    let (mut living, mut known): (HashSet<String>, HashSet<String>) = Default::default();
    let mut look = Look::default();
    for Guest { worker, life } in guests {
        let pod = life.as_deref().and_then(|life| by_uid.get(life).copied());
        if worker.state != WorkerState::Gone {
            living.extend(life.clone());
        }
        known.extend(life);
        let wanted = by_id.get(&worker.cluster).map(|plan| &plan.spec);
        decide(&worker, pod, are_all, wanted, now, settings, &mut look.deeds);
        look.workers.push(worker);
    }
    let is_told = |pod: &WorkerPod| living.contains(&pod.uid) || (pod.has_ended && known.contains(&pod.uid));
    for pod in pods.iter().map(AsRef::as_ref).filter(|pod| !is_told(pod)) {
        // Of a cluster that is dropped nobody waits for workers.
        if let Some(plan) = plans.get(&pod.cluster) {
            look.workers.push(expected(pod, plan));
        }
    }
    look
}

/// What is to be done about one who has come in.
fn decide(
    worker: &Worker,
    pod: Option<&WorkerPod>,
    are_all: bool,
    wanted: Option<&WorkerSpec>,
    now: Duration,
    settings: &Settings,
    deeds: &mut Vec<Deed>,
) {
    let id = worker.id;
    let age = now.saturating_sub(worker.since);
    if worker.state == WorkerState::Gone {
        if settings.keep_gone <= age {
            deeds.push(Deed::Forget { worker: id });
        }
        return;
    }
    match pod {
        None if are_all => return deeds.push(Deed::Lost { worker: id, how: "its pod is gone".to_owned() }),
        Some(pod) if pod.has_ended => {
            let why = pod.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
            return deeds.push(Deed::Lost { worker: id, how: format!("its pod has ended{why}") });
        }
        _ => {}
    }
    let silent = now.saturating_sub(worker.heard);
    if settings.hung_after <= silent && !worker.hung {
        deeds.push(Deed::MarkHung { worker: id });
    }
    let is_draining = worker.state == WorkerState::Draining;
    let is_going = pod.is_some_and(|pod| pod.is_going);
    if settings.replace_hung_after <= silent {
        // One that is told to go is killed when its time is over.
        if let Some(pod) = pod.filter(|pod| !pod.is_going) {
            deeds.push(Deed::DeletePod { name: pod.name.clone(), uid: pod.uid.clone() });
        }
    } else if is_draining && worker.running == 0 && !worker.hands_over {
        deeds.push(Deed::Stop { worker: id, reason: StopReason::Drained });
    } else if is_draining && settings.drain_grace <= age {
        deeds.push(Deed::Stop { worker: id, reason: StopReason::GraceOver });
    } else if is_going && !is_draining {
        deeds.push(Deed::Drain { worker: id });
    } else if let Some(spec) = wanted.filter(|spec| **spec != worker.spec && !is_draining) {
        deeds.push(Deed::Configure { worker: id, spec: spec.clone() });
    }
}

/// The worker that a pod is to be when it has come in. It has another id then: until then nobody dials it.
fn expected(pod: &WorkerPod, plan: &Plan) -> Worker {
    Worker {
        id: WorkerId(xxh3_64(pod.uid.as_bytes())),
        cluster: plan.id,
        slot: pod.slot,
        spec: plan.spec.clone(),
        state: match (pod.has_ended, pod.is_going) {
            (true, _) => WorkerState::Gone,
            (false, true) => WorkerState::Draining,
            (false, false) => WorkerState::Starting,
        },
        since: pod.since,
        heard: pod.since,
        hung: false,
        failed: pod.has_ended,
        hands_over: false,
        version: None,
        address: None,
        running: 0,
        cache_bytes: 0,
        detail: pod.why.clone(),
    }
}

/// What a worker on this hardware has.
pub(super) fn worker_spec(cluster: &cluster::ClusterSpec, share: Resources) -> WorkerSpec {
    WorkerSpec {
        hardware_instance: cluster.hardware_instance.clone(),
        share,
        max_spill_pct: cluster.max_spill_pct,
        max_cache_pct: cluster.max_cache_pct,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const ID: ClusterId = ClusterId(4);

    fn settings() -> Settings {
        Settings::new("1", Resources { millicores: 1_000, memory_bytes: 1 << 30 })
    }

    fn plan() -> Plan {
        let share = Resources { millicores: 8_000, memory_bytes: 1 << 34 };
        let spec =
            WorkerSpec { hardware_instance: "small".to_owned(), share, max_spill_pct: None, max_cache_pct: None };
        Plan { id: ID, spec }
    }

    fn pod(slot: u32, uid: &str) -> WorkerPod {
        WorkerPod {
            name: format!("etl-workers-{slot}"),
            uid: uid.to_owned(),
            cluster: "etl".to_owned(),
            slot,
            is_going: false,
            has_ended: false,
            why: None,
            since: Duration::ZERO,
        }
    }

    /// One who has come in from that pod, and answers.
    fn guest(of: &WorkerPod, state: WorkerState) -> Guest {
        let worker = Worker { id: WorkerId(u64::from(of.slot) + 1), state, ..expected(of, &plan()) };
        Guest { worker: Worker { heard: NOW, ..worker }, life: Some(of.uid.clone()) }
    }

    const NOW: Duration = Duration::from_secs(1_000);

    fn looked(pods: &[WorkerPod], guests: Vec<Guest>) -> Look {
        let pods: Vec<Arc<WorkerPod>> = pods.iter().cloned().map(Arc::new).collect();
        look(&pods, true, guests, &HashMap::from([("etl".to_owned(), plan())]), NOW, &settings())
    }

    #[test]
    fn a_pod_is_a_worker_before_it_has_come_in() {
        let mut waiting = pod(0, "a");
        waiting.why = Some("Unschedulable: no node".to_owned());
        let look = looked(&[waiting.clone()], Vec::new());
        assert_eq!(look.deeds, []);
        let seen = &look.workers[0];
        assert_eq!((seen.state, seen.slot, seen.cluster), (WorkerState::Starting, 0, ID));
        assert_eq!(seen.detail.as_deref(), Some("Unschedulable: no node"));
        let come = guest(&waiting, WorkerState::Ready);
        let look = looked(&[waiting], vec![come.clone()]);
        assert_eq!((look.workers, look.deeds), (vec![come.worker], vec![]));
    }

    #[test]
    fn who_is_to_go_ends_what_it_does_first() {
        let going = WorkerPod { is_going: true, ..pod(0, "a") };
        let mut ready = guest(&going, WorkerState::Ready);
        ready.worker.running = 2;
        let id = ready.worker.id;
        assert_eq!(looked(&[going.clone()], vec![ready.clone()]).deeds, [Deed::Drain { worker: id }]);
        ready.worker.state = WorkerState::Draining;
        ready.worker.since = NOW;
        assert_eq!(looked(&[going.clone()], vec![ready.clone()]).deeds, []);
        ready.worker.running = 0;
        ready.worker.hands_over = true;
        assert_eq!(looked(&[going.clone()], vec![ready.clone()]).deeds, [], "others take over what is hot");
        ready.worker.hands_over = false;
        let drained = Deed::Stop { worker: id, reason: StopReason::Drained };
        assert_eq!(looked(&[going.clone()], vec![ready.clone()]).deeds, [drained]);
        (ready.worker.running, ready.worker.since) = (1, Duration::ZERO);
        let over = Deed::Stop { worker: id, reason: StopReason::GraceOver };
        assert_eq!(looked(&[going], vec![ready]).deeds, [over]);
    }

    #[test]
    fn who_has_lost_its_pod_is_lost_once_all_pods_are_known() {
        let gone = guest(&pod(0, "a"), WorkerState::Ready);
        let id = gone.worker.id;
        let deeds = looked(&[], vec![gone.clone()]).deeds;
        assert!(matches!(&deeds[..], [Deed::Lost { worker, .. }] if *worker == id), "{deeds:?}");
        let none: [Arc<WorkerPod>; 0] = [];
        let unknown = look(&none, false, vec![gone.clone()], &HashMap::new(), NOW, &settings());
        assert_eq!(unknown.deeds, [], "it answers, and the API server does not");
        let failed = WorkerPod { has_ended: true, why: Some("Evicted: disk".to_owned()), ..pod(0, "a") };
        let deeds = looked(&[failed, pod(0, "b")], vec![gone]).deeds;
        let how = "its pod has ended: Evicted: disk".to_owned();
        assert_eq!(deeds, [Deed::Lost { worker: id, how }]);
    }

    #[test]
    fn who_does_not_answer_is_marked_and_its_pod_replaced() {
        let at = pod(0, "a");
        let mut silent = guest(&at, WorkerState::Ready);
        let id = silent.worker.id;
        silent.worker.heard = NOW - settings().hung_after;
        assert_eq!(looked(&[at.clone()], vec![silent.clone()]).deeds, [Deed::MarkHung { worker: id }]);
        (silent.worker.hung, silent.worker.heard) = (true, NOW - settings().replace_hung_after);
        let deleted = Deed::DeletePod { name: at.name.clone(), uid: at.uid.clone() };
        assert_eq!(looked(&[at.clone()], vec![silent.clone()]).deeds, [deleted]);
        let going = WorkerPod { is_going: true, ..at };
        assert_eq!(looked(&[going], vec![silent]).deeds, [], "it is killed when its time is over");
    }

    #[test]
    fn other_means_are_told_and_who_is_long_gone_is_forgotten() {
        let at = pod(0, "a");
        let mut outdated = guest(&at, WorkerState::Ready);
        outdated.worker.spec.max_spill_pct = Some(7);
        let id = outdated.worker.id;
        let configure = Deed::Configure { worker: id, spec: plan().spec };
        assert_eq!(looked(&[at.clone()], vec![outdated.clone()]).deeds, [configure]);
        outdated.worker.state = WorkerState::Gone;
        assert_eq!(looked(&[at], vec![outdated]).deeds, [Deed::Forget { worker: id }]);
    }

    #[test]
    fn pods_say_why_they_do_not_run() {
        let of = |status: serde_json::Value| {
            let object = serde_json::json!({
                "metadata": { "name": "etl-workers-3", "uid": "u", "labels": { "kiln.dev/cluster": "etl" } },
                "status": status,
            });
            let pod: Pod = serde_json::from_value(object).expect("it is a pod");
            WorkerPod::of(&pod, &types::SystemClock::new()).expect("it is a worker's")
        };
        let waiting = of(serde_json::json!({ "containerStatuses": [{
            "name": "worker", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "waiting": { "reason": "ImagePullBackOff" } },
        }] }));
        assert_eq!((waiting.slot, waiting.why.as_deref()), (3, Some("ImagePullBackOff")));
        let unscheduled = of(serde_json::json!({ "conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node",
        }] }));
        assert_eq!(unscheduled.why.as_deref(), Some("Unschedulable: no node"));
        let evicted = of(serde_json::json!({ "phase": "Failed", "reason": "Evicted" }));
        assert_eq!((evicted.has_ended, evicted.why.as_deref()), (true, Some("Evicted")));
    }
}
