//! Life cycle of a pod on a node: starts its process, probes it, restarts it when it exits, and ends it when the pod is
//! deleted.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use types::Clock;

use super::container::{self, Process};
use super::network::Network;
use super::probe::{Finding, ask};
use super::site::Ground;
use super::status::Seen;
use super::{Living, Shared};

/// Delay before a process that has exited is restarted.
const RESTART_AFTER: Duration = Duration::from_secs(1);
/// Polling interval while waiting for a process to install its signal handlers.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Grace period for the end of a pod, once it is being deleted.
pub(super) type Orders = watch::Receiver<Option<Duration>>;

/// Cause of the end of a process.
enum Ended {
    ByItself,
    Ordered,
}

/// Runs a pod until it is deleted, and then deletes its object.
pub(super) async fn live(node: Arc<Shared>, pod: Pod, mut orders: Orders) {
    let (name, uid) = (pod.name_any(), pod.uid().expect("it is there"));
    let ground = &node.ground;
    let pods: Api<Pod> = Api::namespaced(ground.client.clone(), &ground.namespace);
    let spec = pod.spec.as_ref().expect("a pod has a spec");
    let network = ground.bridge.join();
    if let (Some(host), Some(domain)) = (&spec.hostname, &spec.subdomain) {
        ground.hosts.add(&format!("{host}.{domain}.{}.svc", ground.namespace), network.address);
    }
    node.living.lock().insert(uid.clone(), Living { name: name.clone(), link: network.link.clone(), process: None });
    let mut seen = Seen {
        container: spec.containers[0].name.clone(),
        image: spec.containers[0].image.clone().unwrap_or_default(),
        address: network.address,
        is_running: false,
        is_started: false,
        is_ready: false,
        restarts: 0,
    };
    let [main] = &spec.containers[..] else { panic!("one container is known here, not {}", spec.containers.len()) };
    let mut is_prepared = false;
    loop {
        // The start waits for the pod's volumes, which may never exist.
        let (mut child, process, _keepers) = tokio::select! {
            started = async {
                if !is_prepared {
                    prepare(ground, &pod, &network).await;
                }
                container::start(ground, &pod, main, &network).await
            } => started,
            () = ordered(&mut orders) => break,
        };
        is_prepared = true;
        node.runs(&uid, Some(process.clone()));
        (seen.is_running, seen.is_started, seen.is_ready) = (true, false, false);
        say(&node, &pods, &name, &seen).await;
        let (find, mut findings) = mpsc::channel(1);
        let asking = tokio::spawn(ask(spec.containers[0].clone(), network.address, find));
        let ended = loop {
            tokio::select! {
                _ = child.wait() => break Ended::ByItself,
                () = ordered(&mut orders) => {
                    end(&node, &mut child, &process, &mut orders).await;
                    break Ended::Ordered;
                }
                Some(finding) = findings.recv() => match finding {
                    Finding::Started => seen.is_started = true,
                    Finding::Ready(is_ready) => {
                        seen.is_ready = is_ready;
                        say(&node, &pods, &name, &seen).await;
                    }
                    Finding::Dead => process.signal("KILL"),
                },
            }
        };
        asking.abort();
        node.runs(&uid, None);
        if matches!(ended, Ended::Ordered) {
            break;
        }
        (seen.is_running, seen.restarts) = (false, seen.restarts + 1);
        say(&node, &pods, &name, &seen).await;
        tokio::select! {
            () = ground.clock.sleep(RESTART_AFTER) => {}
            () = ordered(&mut orders) => break,
        }
    }
    node.living.lock().remove(&uid);
    node.connected().await;
    let this = Preconditions { uid: Some(uid), resource_version: None };
    let at_once = DeleteParams::default().grace_period(0).preconditions(this);
    // Fails if the pod was deleted by force.
    let _ = pods.delete(&name, &at_once).await;
}

/// Runs the pod's init containers in turn, each until it has succeeded.
async fn prepare(ground: &Ground, pod: &Pod, network: &Network) {
    for container in pod.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten()) {
        loop {
            let (mut child, ..) = container::start(ground, pod, container, network).await;
            if child.wait().await.expect("it was started").success() {
                break;
            }
            ground.clock.sleep(RESTART_AFTER).await;
        }
    }
}

/// Waits until the pod is being deleted.
async fn ordered(orders: &mut Orders) {
    if orders.wait_for(Option::is_some).await.is_err() {
        // The node is gone, and nobody ends the pod.
        std::future::pending::<()>().await;
    }
}

/// Ends a process by SIGTERM, and by SIGKILL when its grace period is over. The grace period may be shortened
/// meanwhile.
async fn end(node: &Shared, child: &mut Child, process: &Process, orders: &mut Orders) {
    let clock = &node.ground.clock;
    // Without a grace period no SIGTERM is sent.
    let has_time = orders.borrow().is_some_and(|grace| !grace.is_zero());
    let told = async {
        // The first process of a PID namespace receives only signals that it handles, and SIGKILL.
        while !has_time || !process.listens() {
            clock.sleep(LOOK_EVERY).await;
        }
        process.signal("TERM");
        std::future::pending::<()>().await;
    };
    let since = clock.monotonic();
    let over = async {
        loop {
            let grace = orders.borrow_and_update().unwrap_or_default();
            tokio::select! {
                () = clock.sleep(grace.saturating_sub(clock.monotonic() - since)) => return,
                changed = orders.changed() => if changed.is_err() { return },
            }
        }
    };
    tokio::select! {
        _ = child.wait() => {}
        () = told => {}
        () = over => {
            process.signal("KILL");
            child.wait().await.expect("it was killed");
        }
    }
}

/// Writes the status of a pod as soon as the API server can be reached.
async fn say(node: &Shared, pods: &Api<Pod>, name: &str, seen: &Seen) {
    node.connected().await;
    let now = Timestamp::from_microsecond(node.ground.clock.now_us()).expect("it is a time");
    let status = seen.status(&format!("{now:.0}"));
    // Fails if the pod was deleted by force.
    let _ = pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await;
}
