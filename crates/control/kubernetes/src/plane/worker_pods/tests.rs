//! Observed workers and actions, from pods and the workers that have joined.

use std::slice::from_ref;
use std::sync::Arc;

use cluster_model::{Resources, WorkerOptions};

use super::*;

const ID: ClusterId = ClusterId(4);

fn settings() -> ReconcileSettings {
    ReconcileSettings::new("1", Resources { millicores: 1_000, memory_bytes: 1 << 30 })
}

fn plan() -> DesiredWorkers {
    let share = Resources { millicores: 8_000, memory_bytes: 1 << 34 };
    let spec = WorkerSpec { hardware_instance: "small".to_owned(), share, options: WorkerOptions::default() };
    DesiredWorkers { id: ID, spec, slots: 1 }
}

fn pod(slot: u32, uid: &str) -> WorkerPod {
    WorkerPod {
        name: format!("etl-workers-{slot}"),
        uid: uid.to_owned(),
        cluster: "etl".to_owned(),
        slot,
        is_deleting: false,
        has_ended: false,
        reason: None,
        since: Duration::ZERO,
    }
}

/// Returns a worker that has joined from that pod and responds.
fn guest(of: &WorkerPod, state: WorkerState) -> JoinedWorker {
    let worker = Worker { id: WorkerId(u64::from(of.slot) + 1), state, ..expected_worker(of, &plan()) };
    JoinedWorker { worker: Worker { last_heartbeat: NOW, ..worker }, pod_uid: Some(of.uid.clone()) }
}

const NOW: Duration = Duration::from_secs(1_000);

fn looked(pods: &[WorkerPod], joined: Vec<JoinedWorker>) -> PodObservation {
    let pods: Vec<Arc<WorkerPod>> = pods.iter().cloned().map(Arc::new).collect();
    observe(&pods, true, joined, &HashMap::from([("etl".to_owned(), plan())]), NOW, &settings())
}

#[test]
fn a_pod_is_a_worker_before_it_has_come_in() {
    let mut waiting = pod(0, "a");
    waiting.reason = Some("Unschedulable: no node".to_owned());
    let look = looked(from_ref(&waiting), Vec::new());
    assert_eq!(look.actions, []);
    let seen = &look.workers[0];
    assert_eq!((seen.state, seen.slot, seen.cluster), (WorkerState::Starting, 0, ID));
    assert_eq!(seen.detail.as_deref(), Some("Unschedulable: no node"));
    let come = guest(&waiting, WorkerState::Ready);
    let look = looked(&[waiting], vec![come.clone()]);
    assert_eq!((look.workers, look.actions), (vec![come.worker], vec![]));
}

#[test]
fn who_is_to_go_ends_what_it_does_first() {
    let going = WorkerPod { is_deleting: true, ..pod(0, "a") };
    let mut ready = guest(&going, WorkerState::Ready);
    ready.worker.running = 2;
    let id = ready.worker.id;
    assert_eq!(looked(from_ref(&going), vec![ready.clone()]).actions, [WorkerAction::Drain { worker: id }]);
    ready.worker.state = WorkerState::Draining;
    ready.worker.state_since = NOW;
    assert_eq!(looked(from_ref(&going), vec![ready.clone()]).actions, []);
    ready.worker.running = 0;
    ready.worker.is_handing_over = true;
    assert_eq!(looked(from_ref(&going), vec![ready.clone()]).actions, [], "others take over what is hot");
    ready.worker.is_handing_over = false;
    let drained = WorkerAction::Stop { worker: id, reason: StopReason::Drained };
    assert_eq!(looked(from_ref(&going), vec![ready.clone()]).actions, [drained]);
    (ready.worker.running, ready.worker.state_since) = (1, Duration::ZERO);
    let over = WorkerAction::Stop { worker: id, reason: StopReason::GracePeriodExceeded };
    assert_eq!(looked(&[going], vec![ready]).actions, [over]);
}

#[test]
fn who_has_lost_its_pod_is_lost_once_all_pods_are_known() {
    let gone = guest(&pod(0, "a"), WorkerState::Ready);
    let id = gone.worker.id;
    let deeds = looked(&[], vec![gone.clone()]).actions;
    assert!(matches!(&deeds[..], [WorkerAction::MarkLost { worker, .. }] if *worker == id), "{deeds:?}");
    let none: [Arc<WorkerPod>; 0] = [];
    let unknown = observe(&none, false, vec![gone.clone()], &HashMap::new(), NOW, &settings());
    assert_eq!(unknown.actions, [], "it answers, and the API server does not");
    let failed = WorkerPod { has_ended: true, reason: Some("Evicted: disk".to_owned()), ..pod(0, "a") };
    let deeds = looked(&[failed, pod(0, "b")], vec![gone]).actions;
    let detail = "its pod has ended: Evicted: disk".to_owned();
    assert_eq!(deeds, [WorkerAction::MarkLost { worker: id, detail }]);
}

#[test]
fn who_does_not_answer_is_marked_and_its_pod_replaced() {
    let at = pod(0, "a");
    let mut silent = guest(&at, WorkerState::Ready);
    let id = silent.worker.id;
    silent.worker.last_heartbeat = NOW - settings().hung_after;
    assert_eq!(looked(from_ref(&at), vec![silent.clone()]).actions, [WorkerAction::MarkHung { worker: id }]);
    (silent.worker.hung, silent.worker.last_heartbeat) = (true, NOW - settings().replace_hung_after);
    let deleted = WorkerAction::DeletePod { name: at.name.clone(), uid: at.uid.clone() };
    assert_eq!(looked(from_ref(&at), vec![silent.clone()]).actions, [deleted]);
    let going = WorkerPod { is_deleting: true, ..at };
    assert_eq!(looked(&[going], vec![silent]).actions, [], "it is killed when its time is over");
}

#[test]
fn other_means_are_told_and_who_is_long_gone_is_forgotten() {
    let at = pod(0, "a");
    let mut outdated = guest(&at, WorkerState::Ready);
    outdated.worker.spec.options.max_spill_pct = Some(7);
    let id = outdated.worker.id;
    let configure = WorkerAction::Configure { worker: id, spec: plan().spec };
    assert_eq!(looked(from_ref(&at), vec![outdated.clone()]).actions, [configure]);
    outdated.worker.state = WorkerState::Gone;
    assert_eq!(looked(&[at], vec![outdated]).actions, [WorkerAction::Forget { worker: id }]);
}

#[test]
fn pods_say_why_they_do_not_run() {
    let of = |status: serde_json::Value| {
        let object = serde_json::json!({
            "metadata": { "name": "etl-workers-3", "uid": "u", "labels": { "kiln.dev/cluster": "etl" } },
            "status": status,
        });
        let pod: Pod = serde_json::from_value(object).expect("it is a pod");
        WorkerPod::from_pod(&pod, &types::SystemClock::new()).expect("it is a worker's")
    };
    let waiting = of(serde_json::json!({ "containerStatuses": [{
        "name": "worker", "image": "", "imageID": "", "ready": false, "restartCount": 0,
        "state": { "waiting": { "reason": "ImagePullBackOff" } },
    }] }));
    assert_eq!((waiting.slot, waiting.reason.as_deref()), (3, Some("ImagePullBackOff")));
    let unscheduled = of(serde_json::json!({ "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node",
    }] }));
    assert_eq!(unscheduled.reason.as_deref(), Some("Unschedulable: no node"));
    let evicted = of(serde_json::json!({ "phase": "Failed", "reason": "Evicted" }));
    assert_eq!((evicted.has_ended, evicted.reason.as_deref()), (true, Some("Evicted")));
}
