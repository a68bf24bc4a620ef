//! Certificates and passwords of a warehouse: secrets that the operator or users create, and sessions when they change.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use kubernetes::Instance;
use kubernetes::credentials::{AUTHORITY_NAME, CA_CERTIFICATE_KEY, CERTIFICATE_KEY};
use kubernetes::resources::RECONCILED;
use serde_json::{Value, json};
use types::{Clock, SystemClock};

use crate::client::{ServiceAddress, value};
use crate::node::Node;
use crate::plane::{Cluster, is_ready};

const PATIENCE: Duration = Duration::from_secs(60);

async fn change(cluster: &Cluster, secret: &str, patch: Value) {
    let secrets: Api<Secret> = cluster.all();
    secrets.patch(secret, &PatchParams::default(), &Patch::Merge(&patch)).await.expect("an administrator may");
}

/// Returns the names and versions of all secrets.
async fn secrets(cluster: &Cluster) -> BTreeMap<String, Option<String>> {
    let all = cluster.all::<Secret>().list(&kube::api::ListParams::default()).await.expect("an administrator may");
    all.into_iter().map(|secret| (secret.name_any(), secret.resource_version())).collect()
}

fn certificate(secret: &Secret) -> Option<Vec<u8>> {
    Some(secret.data.as_ref()?.get(CERTIFICATE_KEY)?.0.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_gets_what_it_needs_and_keeps_it() {
    let Some(cluster) = Cluster::with_kiln("credentials-made").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    cluster.until("dw", |set: Option<&StatefulSet>| set.is_some()).await;
    let made = secrets(&cluster).await;
    assert_eq!(made.keys().collect::<Vec<_>>(), ["dw-superuser", "dw-tls", AUTHORITY_NAME]);
    let map = cluster.all::<ConfigMap>().get(AUTHORITY_NAME).await.expect("clients read it");
    let tls = cluster.all::<Secret>().get("dw-tls").await.expect("it was made");
    let in_secret = tls.data.as_ref().expect("it has data")[CA_CERTIFICATE_KEY].0.clone();
    assert_eq!(map.data.expect("it has data")[CA_CERTIFICATE_KEY].as_bytes(), in_secret);

    // A new operator finds everything as the previous one left it.
    operator.stop().await;
    let operator = cluster.operator("b").await;
    let seen = json!({ "metadata": { "annotations": { "somebody.else/note": "look" } } });
    let instances: Api<Instance> = cluster.all();
    instances
        .patch("dw", &PatchParams::default(), &Patch::Merge(&json!({ "spec": { "evictable": true } })))
        .await
        .expect("it may change");
    instances.patch("dw", &PatchParams::default(), &Patch::Merge(&seen)).await.expect("anybody may note something");
    let is_seen = |instance: Option<&Instance>| {
        instance.is_some_and(|instance| {
            let status = instance.status.as_ref();
            status.and_then(|status| status.observed_generation) == instance.metadata.generation
        })
    };
    cluster.until("dw", is_seen).await;
    assert_eq!(secrets(&cluster).await, made, "nothing was written");

    // A deleted certificate is created again by the same authority, which clients trust.
    let before = certificate(&tls);
    cluster.all::<Secret>().delete("dw-tls", &DeleteParams::default()).await.expect("it is there");
    let is_another = move |secret: Option<&Secret>| secret.is_some_and(|secret| certificate(secret) != before);
    let another = cluster.until("dw-tls", is_another).await.expect("it was waited for");
    assert_eq!(another.data.expect("it has data")[CA_CERTIFICATE_KEY].0, in_secret);

    // The secrets are deleted with the instance, and the authority is kept for the next one.
    instances.delete("dw", &DeleteParams::default()).await.expect("it is there");
    cluster.until("dw-superuser", |secret: Option<&Secret>| secret.is_none()).await;
    cluster.until("dw-tls", |secret: Option<&Secret>| secret.is_none()).await;
    assert_eq!(secrets(&cluster).await.get(AUTHORITY_NAME), made.get(AUTHORITY_NAME));
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_that_are_not_there_are_named() {
    let Some(cluster) = Cluster::with_kiln("credentials-named").await else { return };
    let operator = cluster.operator("a").await;
    let named = json!({ "auth": { "secretName": "boss" }, "tls": { "secretName": "cert" } });
    cluster.create(named).await.expect("it is an instance");
    let says = |message: &'static str| {
        move |instance: Option<&Instance>| {
            let status = instance.and_then(|instance| instance.status.as_ref());
            let mut conditions = status.iter().flat_map(|status| &status.conditions);
            conditions.any(|condition| condition.type_ == RECONCILED && condition.message == message)
        }
    };
    cluster.until("dw", says("there is no Secret cert, which spec.tls.secretName names")).await;
    let made: Api<Secret> = cluster.all();
    let secret = |name: &str, data: Value| -> Secret {
        serde_json::from_value(json!({ "metadata": { "name": name }, "stringData": data })).expect("it is a secret")
    };
    let cert = secret("cert", json!({ "tls.crt": "somebody's", "tls.key": "matter" }));
    made.create(&PostParams::default(), &cert).await.expect("an administrator may");
    made.create(&PostParams::default(), &secret("boss", json!({ "pass": "x" }))).await.expect("an administrator may");
    cluster.until("dw", says("the Secret boss, which spec.auth.secretName names, has no password")).await;
    change(&cluster, "boss", json!({ "stringData": { "password": "x" } })).await;
    cluster.until("dw", says("all objects of the instance match its spec")).await;
    let all = secrets(&cluster).await;
    assert_eq!(all.keys().collect::<Vec<_>>(), ["boss", "cert"], "no others are made");

    // A foreign secret with the name of one that the operator would create is left alone.
    made.create(&PostParams::default(), &secret("dw-superuser", json!({}))).await.expect("an administrator may");
    let instances: Api<Instance> = cluster.all();
    let unsaid = json!({ "spec": { "auth": { "secretName": null } } });
    instances.patch("dw", &PatchParams::default(), &Patch::Merge(&unsaid)).await.expect("it may change");
    cluster.until("dw", says("the Secret dw-superuser exists already and does not belong to this instance")).await;
    operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_and_passwords_change_under_sessions_that_go_on() {
    let Some(cluster) = Cluster::with_kiln("credentials-change").await else { return };
    let Some(node) = Node::start(&cluster).await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({ "resources": { "cpu": "1", "memory": "1Gi" } })).await.expect("it is an instance");
    cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some_and(is_ready)).await;
    let pod = cluster.all::<Pod>().get("dw-0").await.expect("it runs");
    let before = ServiceAddress::resolve(&cluster).await;
    let session = before.wait().await;
    let refused = ServiceAddress::without(&cluster).await.connect().await.map(drop).expect_err("it is no password");
    assert_eq!(refused.code.as_deref(), Some("28P01"), "{refused:?}");

    // Inside the pod the password is not needed.
    let asked = node.exec("dw-0", &["kiln", "sql", "--format", "csv", "-c", "SELECT current_user AS u"]).await;
    assert_eq!(String::from_utf8_lossy(&asked.stdout), "u\nkiln\n", "{}", String::from_utf8_lossy(&asked.stderr));

    // Another password in the secret takes effect, and ALTER ROLE cannot set one.
    change(&cluster, "dw-superuser", json!({ "stringData": { "password": "another one" } })).await;
    let clock = SystemClock::new();
    while before.connect().await.is_ok() {
        assert!(clock.monotonic() < PATIENCE, "the old password is refused in time");
        clock.sleep(Duration::from_millis(200)).await;
    }
    let after = ServiceAddress::resolve(&cluster).await;
    let second = after.connect().await.expect("the new one is taken");
    let said = second.batch_execute("ALTER ROLE kiln PASSWORD 'x'").await.expect_err("the secret says it");
    assert_eq!(said.code().map(tokio_postgres::error::SqlState::code), Some("55000"), "{said}");
    second.batch_execute("CREATE ROLE ana LOGIN PASSWORD 'x'").await.expect("of others SQL says it");

    // The certificate is renewed because it is due.
    let first = cluster.all::<Secret>().get("dw-tls").await.expect("it was made");
    let old = json!({ "metadata": { "annotations": { "kiln.dev/renew-after": "2026-01-01T00:00:00Z" } } });
    change(&cluster, "dw-tls", old).await;
    let (was, log) = (certificate(&first), || node.site().log("dw-0"));
    let is_another = move |secret: Option<&Secret>| secret.is_some_and(|secret| certificate(secret) != was);
    cluster.until("dw-tls", is_another).await;
    while !log().contains("reloaded the TLS certificate: new connections get it") {
        assert!(clock.monotonic() < 2 * PATIENCE, "it is shown in time: {}", log());
        clock.sleep(Duration::from_millis(200)).await;
    }
    let third = after.connect().await.expect("the same authority has signed it");
    for session in [session, second, third] {
        assert_eq!(value(&session, "SELECT 1").await, "1", "sessions go on");
    }
    let same = cluster.all::<Pod>().get("dw-0").await.expect("it runs");
    let restarts = same.status.and_then(|status| status.container_statuses).expect("it runs")[0].restart_count;
    assert_eq!((same.metadata.uid, restarts), (pod.metadata.uid, 0), "the pod was not touched");
    operator.stop().await;
}
