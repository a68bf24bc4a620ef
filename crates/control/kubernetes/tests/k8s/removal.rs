//! Repeated installation, waiting for readiness, and removal.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ServiceAccount};
use kube::{Api, ResourceExt};
use kubernetes::{InstallError, InstallProgress, Installation, Instance, Removal, install, uninstall};
use serde_json::json;
use types::{Clock, SystemClock};

use crate::plane::{Cluster, instance};

const PATIENCE: Duration = Duration::from_secs(50);

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

/// Installs, and returns the outcome with the progress that was reported.
async fn installed(
    cluster: &Cluster,
    what: &Installation,
    patience: Duration,
) -> (Result<(), InstallError>, Vec<InstallProgress>) {
    let mut told = Vec::new();
    let done = install(&cluster.client, what, patience, &clock(), |progress| told.push(progress.clone())).await;
    (done, told)
}

async fn removed(cluster: &Cluster, volumes: bool) -> Vec<InstallProgress> {
    let what = Removal { namespace: cluster.namespace.clone(), delete_volumes: volumes, delete_definitions: false };
    let mut told = Vec::new();
    let done = uninstall(&cluster.client, &what, PATIENCE, &clock(), |progress| told.push(progress.clone())).await;
    done.expect("everything may go");
    told
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_is_there_when_its_instance_takes_queries() {
    let Some(cluster) = Cluster::with_kiln("removal-installed").await else { return };
    let operator = cluster.operator("a").await;
    let what = cluster.installation(Some(instance("dw", json!({}))));
    let running = async {
        cluster.until("dw-0", |pod: Option<&Pod>| pod.is_some()).await;
        cluster.say_ready("dw-0", true).await;
    };
    let ((done, told), ()) = tokio::join!(installed(&cluster, &what, PATIENCE), running);
    done.expect("it is there in time");
    let says: Vec<&str> = told
        .iter()
        .filter_map(|progress| match progress {
            InstallProgress::InstanceStatus { status, .. } => Some(status.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(says.last(), Some(&"running"), "{says:?}");
    let kinds = told.iter().filter(|progress| matches!(progress, InstallProgress::Applied { .. })).count();
    assert_eq!(kinds, what.objects().len());

    // A second installation changes nothing.
    let before = cluster.all::<StatefulSet>().get("dw").await.expect("it is there").metadata.generation;
    installed(&cluster, &what, PATIENCE).await.0.expect("it is there already");
    assert_eq!(cluster.all::<StatefulSet>().get("dw").await.expect("it is there").metadata.generation, before);

    let told = removed(&cluster, false).await;
    let kept: Vec<&InstallProgress> =
        told.iter().filter(|progress| matches!(progress, InstallProgress::Retained { .. })).collect();
    assert_eq!(kept.len(), 1, "{told:?}");
    let claims: Api<PersistentVolumeClaim> = cluster.all();
    assert!(claims.get_opt("data-dw-0").await.expect("it can be asked").is_some(), "data stays");
    assert!(cluster.all::<Instance>().get_opt("dw").await.expect("it can be asked").is_none());
    cluster.until("kiln-operator", |operator: Option<&Deployment>| operator.is_none()).await;
    cluster.until("kiln-operator", |account: Option<&ServiceAccount>| account.is_none()).await;
    // Not stopped cleanly, because its permissions are gone.
    drop(operator);
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_go_where_that_is_said() {
    let Some(cluster) = Cluster::with_kiln("removal-volumes").await else { return };
    let operator = cluster.operator("a").await;
    cluster.create(json!({})).await.expect("it is an instance");
    cluster.until("data-dw-0", |claim: Option<&PersistentVolumeClaim>| claim.is_some()).await;
    removed(&cluster, true).await;
    cluster.until("data-dw-0", |claim: Option<&PersistentVolumeClaim>| claim.is_none()).await;
    let again = removed(&cluster, true).await;
    assert!(
        !again.iter().any(|progress| matches!(progress, InstallProgress::Retained { .. })),
        "nothing is left: {again:?}"
    );
    // Not stopped cleanly, because its permissions are gone.
    drop(operator);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_too_long_is_told_what_for() {
    let Some(cluster) = Cluster::with_kiln("removal-late").await else { return };
    let what = cluster.installation(Some(instance("dw", json!({}))));
    let (done, _) = installed(&cluster, &what, Duration::from_millis(300)).await;
    let Err(InstallError::NotReadyInTime { status: says, .. }) = done else { panic!("nobody made it: {done:?}") };
    assert_eq!(says, "no operator has seen it");
    let held = json!({ "metadata": { "finalizers": ["test.kiln.dev/stays"] } });
    let instances: Api<Instance> = cluster.all();
    let merge = kube::api::Patch::Merge(&held);
    instances.patch("dw", &kube::api::PatchParams::default(), &merge).await.expect("it is there");
    let what = Removal { namespace: cluster.namespace.clone(), delete_volumes: true, delete_definitions: false };
    let stays = uninstall(&cluster.client, &what, Duration::from_millis(300), &clock(), |_| {}).await;
    assert!(matches!(stays, Err(InstallError::NotDeletedInTime { .. })), "{stays:?}");
    let accounts: Api<ServiceAccount> = cluster.all();
    assert_eq!(accounts.get("kiln-operator").await.expect("nothing else has gone").name_any(), "kiln-operator");
}

#[tokio::test(flavor = "multi_thread")]
async fn definitions_stay_where_others_have_instances() {
    let Some(cluster) = Cluster::with_kiln("removal-definitions").await else { return };
    let Some(other) = Cluster::with_kiln("removal-definitions-other").await else { return };
    other.create(json!({})).await.expect("it is an instance");
    let what = Removal { namespace: cluster.namespace.clone(), delete_volumes: false, delete_definitions: true };
    let refused = uninstall(&cluster.client, &what, PATIENCE, &clock(), |_| {}).await;
    let Err(InstallError::DefinitionsInUse { namespaces }) = refused else { panic!("they went: {refused:?}") };
    assert!(namespaces.contains(&other.namespace), "{namespaces:?}");
    cluster.all::<ServiceAccount>().get("kiln-operator").await.expect("nothing has gone");
}
