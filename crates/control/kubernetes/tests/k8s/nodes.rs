//! Tests of the simulated node itself.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service, ServiceAccount};
use kube::api::{DeleteParams, PostParams};
use serde_json::json;
use types::{Clock, SystemClock};

use crate::client::ServiceAddress;
use crate::node::{Node, Site};
use crate::plane::{Cluster, is_ready};

const PATIENCE: Duration = Duration::from_secs(30);

/// Creates a pod `dw-0` that serves SQL, with a volume and a service, but without an operator.
async fn make(cluster: &Cluster) {
    let account: ServiceAccount = serde_json::from_value(json!({ "metadata": { "name": "dw" } })).expect("it is one");
    cluster.all().create(&PostParams::default(), &account).await.expect("an administrator may");
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": { "name": "data-dw-0" },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "512Mi" } } },
    }))
    .expect("it is a claim");
    cluster.all().create(&PostParams::default(), &claim).await.expect("an administrator may");
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": "dw" },
        "spec": { "selector": { "app": "dw" }, "ports": [{ "name": "postgres", "port": 5432, "targetPort": 5433 }] },
    }))
    .expect("it is a service");
    cluster.all().create(&PostParams::default(), &service).await.expect("an administrator may");
    let probe = json!({ "httpGet": { "path": "/readyz", "port": 8433 }, "periodSeconds": 1, "failureThreshold": 2 });
    let pod: Pod = serde_json::from_value(json!({
        "metadata": { "name": "dw-0", "labels": { "app": "dw" } },
        "spec": {
            "serviceAccountName": "dw",
            "securityContext": { "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532 },
            "terminationGracePeriodSeconds": 30,
            "volumes": [
                { "name": "data", "persistentVolumeClaim": { "claimName": "data-dw-0" } },
                { "name": "tmp", "emptyDir": {} },
            ],
            "containers": [{
                "name": "kiln",
                "image": "registry.example/kiln:1",
                "command": ["kiln"],
                "args": [
                    "serve", "--data", "/var/lib/kiln/data", "--listen", "0.0.0.0:5433", "--http", "0.0.0.0:8433",
                    "--memory-mb", "256", "--disk-reserve-mb", "16",
                ],
                "volumeMounts": [
                    { "name": "data", "mountPath": "/var/lib/kiln" },
                    { "name": "tmp", "mountPath": "/tmp" },
                ],
                "securityContext": { "readOnlyRootFilesystem": true },
                "readinessProbe": probe,
            }],
        },
    }))
    .expect("it is a pod");
    cluster.all().create(&PostParams::default(), &pod).await.expect("an administrator may");
}

async fn is(cluster: &Cluster, ready: bool) {
    cluster.until("dw-0", move |pod: Option<&Pod>| pod.is_some_and(|pod| is_ready(pod) == ready)).await;
}

/// Waits until the service accepts connections, or no longer does. It learns of changes later than other observers.
async fn takes_connections(door: &ServiceAddress, taken: bool) {
    let clock = SystemClock::new();
    while door.connect().await.is_ok() != taken {
        assert!(clock.monotonic() < PATIENCE, "it comes to be in time");
        clock.sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_does_to_pods_what_happens_to_them() {
    let Some(cluster) = Cluster::bare("nodes").await else { return };
    let Some(site) = Site::open(&cluster).await else { return };
    let node = Node::join(&site, "a").await;
    make(&cluster).await;
    is(&cluster, true).await;
    let door = ServiceAddress::with_password_set_in(&cluster, &node).await;
    takes_connections(&door, true).await;

    // A frozen pod fails its probes and gets no connections.
    node.signal("dw-0", "STOP");
    is(&cluster, false).await;
    takes_connections(&door, false).await;
    node.signal("dw-0", "CONT");
    is(&cluster, true).await;
    takes_connections(&door, true).await;

    // So does a pod that is cut off, and its open connections get no answers.
    let client = door.connect().await.expect("it takes them");
    node.cut_pod("dw-0");
    let answered = tokio::time::timeout(Duration::from_secs(2), client.batch_execute("SELECT 1")).await;
    assert!(answered.is_err(), "nobody is told: {answered:?}");
    is(&cluster, false).await;
    node.heal();
    is(&cluster, true).await;
    takes_connections(&door, true).await;
    client.batch_execute("SELECT 1").await.expect("what was sent again has arrived");

    // The disk has the claimed size.
    let disk = site.disk("data-dw-0").await;
    assert!((1..512 << 20).contains(&disk.free()), "{}", disk.free());
    disk.fill(0);
    assert_eq!(disk.free(), 0);
    disk.make_room();
    assert!(64 << 20 < disk.free(), "{}", disk.free());

    // A killed process is restarted in the same pod.
    let uid = cluster.all::<Pod>().get("dw-0").await.expect("it runs").metadata.uid;
    node.signal("dw-0", "KILL");
    is(&cluster, false).await;
    is(&cluster, true).await;
    assert_eq!(cluster.all::<Pod>().get("dw-0").await.expect("it runs").metadata.uid, uid);

    // A pod that is deleted while its node is cut off ends when the node is reconnected.
    node.cut();
    cluster.all::<Pod>().delete("dw-0", &DeleteParams::default().grace_period(0)).await.expect("it is there");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_none()).await;
    assert!(node.runs("dw-0"), "nobody has told it");
    node.heal();
    let clock = SystemClock::new();
    while node.runs("dw-0") {
        assert!(clock.monotonic() < PATIENCE, "it ends in time");
        clock.sleep(Duration::from_millis(50)).await;
    }
    node.die().await;
}
