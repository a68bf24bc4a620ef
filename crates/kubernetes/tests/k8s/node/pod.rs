//! A pod's life on a node: its process is started, asked how it is, started again when it ends by itself, and ended when that is ordered.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use tokio::sync::mpsc;
use types::Clock;

use super::probe::{Finding, ask};
use super::status::Seen;
use super::{Shared, container};

/// Before a process that has ended is started again.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// What a pod is told.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    End { grace: Duration },
}

/// How a process ended.
enum Ended {
    ByItself,
    Ordered,
}

pub(super) async fn live(node: Arc<Shared>, pod: Pod, mut orders: mpsc::Receiver<Order>) {
    let (name, namespace) = (pod.name_any(), pod.namespace().expect("a pod is in a namespace"));
    let pods: Api<Pod> = Api::namespaced(node.client.clone(), &namespace);
    let spec = pod.spec.as_ref().expect("a pod has a spec");
    let network = node.bridge.join();
    if let (Some(host), Some(domain)) = (&spec.hostname, &spec.subdomain) {
        node.hosts.add(&format!("{host}.{domain}.{namespace}.svc"), network.address);
    }
    let mut seen = Seen {
        container: spec.containers[0].name.clone(),
        image: spec.containers[0].image.clone().unwrap_or_default(),
        address: network.address,
        is_running: false,
        is_started: false,
        is_ready: false,
        restarts: 0,
    };
    loop {
        let (mut child, process) = container::start(&node, &pod, &network).await;
        node.processes.lock().insert(name.clone(), process.clone());
        (seen.is_running, seen.is_started, seen.is_ready) = (true, false, false);
        say(&node, &pods, &name, &seen).await;
        let (find, mut findings) = mpsc::channel(1);
        let asking = tokio::spawn(ask(spec.containers[0].clone(), network.address, find));
        let ended = loop {
            tokio::select! {
                _ = child.wait() => break Ended::ByItself,
                Some(Order::End { grace }) = orders.recv() => {
                    process.signal("TERM");
                    if tokio::time::timeout(grace, child.wait()).await.is_err() {
                        process.signal("KILL");
                        child.wait().await.expect("it was killed");
                    }
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
        node.processes.lock().remove(&name);
        if matches!(ended, Ended::Ordered) {
            break;
        }
        (seen.is_running, seen.restarts) = (false, seen.restarts + 1);
        say(&node, &pods, &name, &seen).await;
        tokio::select! {
            () = node.clock.sleep(RESTART_AFTER) => {}
            Some(Order::End { .. }) = orders.recv() => break,
        }
    }
    let this = Preconditions { uid: pod.uid(), resource_version: None };
    let at_once = DeleteParams::default().grace_period(0).preconditions(this);
    // It may have been deleted by force.
    let _ = pods.delete(&name, &at_once).await;
}

async fn say(node: &Shared, pods: &Api<Pod>, name: &str, seen: &Seen) {
    let now = Timestamp::from_microsecond(node.clock.now_us()).expect("it is a time");
    let status = seen.status(&format!("{now:.0}"));
    // It may have been deleted by force.
    let _ = pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await;
}
