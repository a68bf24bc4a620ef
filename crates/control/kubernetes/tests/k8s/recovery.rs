//! Recovery of a warehouse from its bucket after the loss of its volume, following docs/operations/kubernetes.md.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use kubernetes::Instance;
use serde_json::{Value, json};
use tokio_postgres::Client;
use types::{Clock, SystemClock};

use crate::bucket::{Bucket, SECRET};
use crate::client::{ServiceAddress, value};
use crate::node::Node;
use crate::plane::{Cluster, is_ready};

const COUNT: &str = "SELECT count(*) || ' of ' || sum(a) FROM t";

/// Creates the instance over the bucket.
async fn create(cluster: &Cluster, bucket: &Bucket, more: Value) {
    let mut spec = json!({
        "resources": { "cpu": "1", "memory": "1Gi" },
        "storage": { "url": bucket.url("dw"), "secretName": SECRET },
    });
    spec.as_object_mut().expect("it is one").extend(more.as_object().expect("it is one").clone());
    cluster.create(spec).await.expect("it is an instance");
}

/// Creates the instance over the bucket, and connects when it is ready.
async fn make(cluster: &Cluster, bucket: &Bucket, more: Value) -> Client {
    create(cluster, bucket, more).await;
    cluster.until_late("dw-0", |pod: Option<&Pod>| pod.is_some_and(is_ready)).await;
    ServiceAddress::resolve(cluster).await.wait().await
}

/// Deletes the instance and its volume.
async fn lose(cluster: &Cluster) {
    cluster.all::<Instance>().delete("dw", &DeleteParams::default()).await.expect("it is there");
    cluster.until("dw", |instance: Option<&Instance>| instance.is_none()).await;
    cluster.until("dw-superuser", |secret: Option<&k8s_openapi::api::core::v1::Secret>| secret.is_none()).await;
    let claims: Api<PersistentVolumeClaim> = cluster.all();
    claims.delete("data-dw-0", &DeleteParams::default()).await.expect("it stays when its instance goes");
    cluster.until("data-dw-0", |claim: Option<&PersistentVolumeClaim>| claim.is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_volume_comes_back_from_the_bucket() {
    let Some(cluster) = Cluster::with_kiln("recovery").await else { return };
    let Some(node) = Node::start(&cluster).await else { return };
    let Some(bucket) = Bucket::open(&cluster, node.site()).await else { return };
    let operator = cluster.operator("a").await;
    let boss = make(&cluster, &bucket, json!({})).await;
    boss.batch_execute("CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000)")
        .await
        .expect("it is new");
    boss.batch_execute("CREATE ROLE ana LOGIN PASSWORD 'x'; VACUUM t").await.expect("it is new");
    let moment = value(&boss, "SELECT date_trunc('second', now()) + interval '1 second'").await;
    boss.batch_execute("SELECT pg_sleep(2)").await.expect("it waits");
    boss.batch_execute("INSERT INTO t VALUES (1001), (1002)").await.expect("there is room");
    assert_eq!(value(&boss, COUNT).await, "1002 of 502503");
    drop(boss);

    // Without `restore`, an instance does not start over a bucket that has a warehouse.
    lose(&cluster).await;
    create(&cluster, &bucket, json!({})).await;
    let has_failed = |pod: Option<&Pod>| {
        let statuses = pod.and_then(|pod| pod.status.as_ref()?.container_statuses.as_ref());
        statuses.is_some_and(|statuses| 0 < statuses[0].restart_count)
    };
    cluster.until("dw-0", has_failed).await;
    assert!(node.site().log("dw-0").contains("cannot claim the storage"), "{}", node.site().log("dw-0"));

    // Restore of the newest snapshot.
    lose(&cluster).await;
    let boss = make(&cluster, &bucket, json!({ "restore": {} })).await;
    assert_eq!(value(&boss, COUNT).await, "1002 of 502503");
    assert_eq!(value(&boss, "SELECT count(*) FROM pg_roles WHERE rolname = 'ana'").await, "1");
    boss.batch_execute("INSERT INTO t VALUES (1003)").await.expect("it goes on");
    drop(boss);

    // The pod is replaced and leaves the volume unchanged.
    cluster.all::<Pod>().delete("dw-0", &DeleteParams::default()).await.expect("it runs");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_none_or(|pod| !is_ready(pod))).await;
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some_and(is_ready)).await;
    let boss = ServiceAddress::resolve(&cluster).await.wait().await;
    assert_eq!(value(&boss, "SELECT count(*) FROM t").await, "1003");
    assert!(node.site().log("dw-0").contains("nothing is restored"));
    drop(boss);
    let is_restored = |instance: Option<&Instance>| {
        instance.is_some_and(|instance| instance.status.as_ref().is_some_and(|status| status.restored))
    };
    cluster.until("dw", is_restored).await;

    // The volume is lost again: the instance is not restored a second time by itself.
    let claims: Api<PersistentVolumeClaim> = cluster.all();
    let first = claims.get("data-dw-0").await.expect("it is there").metadata.uid;
    claims.delete("data-dw-0", &DeleteParams::default()).await.expect("it is there");
    cluster.all::<Pod>().delete("dw-0", &DeleteParams::default()).await.expect("it runs");
    let is_another =
        move |claim: Option<&PersistentVolumeClaim>| claim.is_some_and(|claim| claim.metadata.uid != first);
    cluster.until("data-dw-0", is_another).await;
    let clock = SystemClock::new();
    while !node.site().log("dw-0").contains("was restored before") {
        assert!(clock.monotonic() < Duration::from_secs(60), "it says so: {}", node.site().log("dw-0"));
        clock.sleep(Duration::from_millis(100)).await;
    }
    lose(&cluster).await;
    let boss = make(&cluster, &bucket, json!({ "restore": {} })).await;
    assert_eq!(value(&boss, "SELECT count(*) FROM t").await, "1003");
    drop(boss);
    let forgotten = json!({ "spec": { "restore": null } });
    cluster.all::<Instance>().patch("dw", &PatchParams::default(), &Patch::Merge(&forgotten)).await.expect("it may");

    // Restore of an earlier point in time.
    lose(&cluster).await;
    let boss = make(&cluster, &bucket, json!({ "restore": { "to": moment } })).await;
    assert_eq!(value(&boss, COUNT).await, "1000 of 500500");
    drop(boss);
    operator.stop().await;
}
