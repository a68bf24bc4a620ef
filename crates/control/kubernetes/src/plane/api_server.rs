//! Access to an instance's objects on the API server: watches that mirror them in memory, and requests that change
//! them.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use control_plane::Revisions;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{NamespaceResourceScope, Resource};
use kube::runtime::watcher::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use parking_lot::RwLock;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use types::Clock;

use super::cluster_conversion::SQL_MANAGER;
use super::object_mirror::ObjectMirror;
use super::worker_pods::WorkerPod;
use crate::compute_cluster::{AUTHORITY_MAP_KEY, COMPONENT_LABEL, WORKER_COMPONENT, authority_config_map_name};
use crate::instance::INSTANCE_LABEL;
use crate::resources::{ComputeCluster, HardwareProfile, Instance};

/// Field manager of changes that the instance makes by itself, not by a statement.
const INSTANCE_MANAGER: &str = "kiln-instance";
/// Time limit of a request. The outcome of a request that exceeds it is unknown.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Failure of a request to the API server.
#[derive(Debug, thiserror::Error)]
pub enum ApiServerError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The request may have been carried out nevertheless; the watch then reports the change.
    #[error("the API server has not answered for {} seconds", REQUEST_TIMEOUT.as_secs())]
    Timeout,
}

/// Observed objects of an instance.
#[derive(Debug, Default)]
pub(super) struct ObservedObjects {
    pub(super) clusters: ObjectMirror<ComputeCluster>,
    pub(super) hardware: ObjectMirror<HardwareProfile>,
    pub(super) pods: ObjectMirror<WorkerPod>,
}

/// Watches of, and requests for, the objects of one instance. Dropping it ends the watches.
pub(super) struct ApiServerClient {
    pub(super) client: Client,
    pub(super) namespace: String,
    pub(super) instance: String,
    pub(super) clock: Arc<dyn Clock>,
    runtime: Handle,
    shared: Arc<WatchState>,
    _watches: JoinSet<()>,
}

/// State that is shared with the tasks that watch.
#[derive(Debug, Default)]
struct WatchState {
    content: RwLock<ObservedObjects>,
    /// Counter that grows when a watch has changed the content.
    changes: Revisions,
}

impl ApiServerClient {
    /// Starts the watches. The content fills as their first listings arrive.
    pub(super) fn new(client: Client, namespace: String, instance: String, clock: Arc<dyn Clock>) -> ApiServerClient {
        let shared = Arc::new(WatchState::default());
        let mut watches = JoinSet::new();
        let all = watcher::Config::default;
        let (seen, own) = (Arc::clone(&shared), instance.clone());
        watches.spawn(run_watch(&client, &namespace, all(), "ComputeClusters", move |event: Event<ComputeCluster>| {
            let Some(event) = filter_event(event, |cluster| cluster.spec.instance == own) else { return };
            seen.apply_event(|content| content.clusters.apply_event(event, |cluster| cluster));
        }));
        let seen = Arc::clone(&shared);
        watches.spawn(run_watch(
            &client,
            &namespace,
            all(),
            "HardwareProfiles",
            move |event: Event<HardwareProfile>| {
                seen.apply_event(|content| content.hardware.apply_event(event, |profile| profile));
            },
        ));
        let (seen, own_clock) = (Arc::clone(&shared), Arc::clone(&clock));
        let workers = all().labels(&format!("{INSTANCE_LABEL}={instance},{COMPONENT_LABEL}={WORKER_COMPONENT}"));
        watches.spawn(run_watch(&client, &namespace, workers, "pods", move |event: Event<Pod>| {
            // Pods with these labels but not the name of a worker belong to someone else.
            let Some(event) = filter_event(event, |pod| WorkerPod::from_pod(pod, &*own_clock).is_some()) else {
                return;
            };
            let keep = |pod: Pod| WorkerPod::from_pod(&pod, &*own_clock).expect("of_instance passed only worker pods");
            seen.apply_event(|content| content.pods.apply_event(event, keep));
        }));
        ApiServerClient { client, namespace, instance, clock, runtime: Handle::current(), shared, _watches: watches }
    }

    /// Calls `look` with the observed objects, under a read lock.
    pub(super) fn read<T>(&self, look: impl FnOnce(&ObservedObjects) -> T) -> T {
        look(&self.shared.content.read())
    }

    /// Returns the counter that grows when the observed objects change.
    pub(super) fn changes(&self) -> &Revisions {
        &self.shared.changes
    }

    /// Blocks the calling thread until the request `asked` completes, at most [`REQUEST_TIMEOUT`]. Other tasks of the
    /// thread continue on other threads.
    pub(super) fn block_on<T>(
        &self,
        request: impl Future<Output = Result<T, ApiServerError>>,
    ) -> Result<T, ApiServerError> {
        let in_time = async {
            tokio::select! {
                biased;
                done = request => done,
                () = self.clock.sleep(REQUEST_TIMEOUT) => Err(ApiServerError::Timeout),
            }
        };
        tokio::task::block_in_place(|| self.runtime.block_on(in_time))
    }

    /// Creates a ComputeCluster for a statement.
    pub(super) async fn create(&self, cluster: &ComputeCluster) -> Result<(), ApiServerError> {
        let parameters = PostParams { field_manager: Some(SQL_MANAGER.to_owned()), ..PostParams::default() };
        let created = match self.clusters().create(&parameters, cluster).await {
            // An earlier attempt created it and its response was lost.
            Err(kube::Error::Api(error)) if error.is_already_exists() => {
                return self.patch(&cluster.name_any(), &json!({ "spec": cluster.spec }), SQL_MANAGER).await;
            }
            created => created?,
        };
        self.shared.content.write().clusters.apply_response(created, |cluster| cluster);
        Ok(())
    }

    /// Patches a ComputeCluster for a statement.
    pub(super) async fn patch_for_statement(&self, name: &str, patch: &Value) -> Result<(), ApiServerError> {
        self.patch(name, patch, SQL_MANAGER).await
    }

    /// Patches a ComputeCluster for the instance itself.
    pub(super) async fn patch_for_instance(&self, name: &str, patch: &Value) -> Result<(), ApiServerError> {
        self.patch(name, patch, INSTANCE_MANAGER).await
    }

    async fn patch(&self, name: &str, patch: &Value, manager: &str) -> Result<(), ApiServerError> {
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let changed = self.clusters().patch(name, &parameters, &Patch::Merge(patch)).await?;
        self.shared.content.write().clusters.apply_response(changed, |cluster| cluster);
        Ok(())
    }

    /// Deletes a ComputeCluster.
    pub(super) async fn delete(&self, name: &str) -> Result<(), ApiServerError> {
        match self.clusters().delete(name, &DeleteParams::background()).await {
            Err(kube::Error::Api(error)) if error.is_not_found() => {}
            deleted => drop(deleted?),
        }
        self.shared.content.write().clusters.apply_delete_response(name);
        Ok(())
    }

    /// Deletes a worker's pod without a grace period, so that Kubernetes replaces it.
    pub(super) async fn delete_pod(&self, name: &str, uid: &str) -> Result<(), ApiServerError> {
        // A hung worker would not react to SIGTERM, so there is no grace period.
        let this = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let parameters = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        match self.api::<Pod>().delete(name, &parameters.preconditions(this)).await {
            Err(kube::Error::Api(error)) if error.is_not_found() || error.is_conflict() => Ok(()),
            deleted => Ok(deleted.map(drop)?),
        }
    }

    /// Reads a worker's pod from the API server. Returns `None` if it does not exist or is not a worker.
    pub(super) async fn pod(&self, name: &str) -> Result<Option<(Pod, WorkerPod)>, kube::Error> {
        let Some(pod) = self.api::<Pod>().get_opt(name).await? else { return Ok(None) };
        let Some(seen) = WorkerPod::from_pod(&pod, &*self.clock) else { return Ok(None) };
        // The worker that joins from this pod must not be taken for lost because the watch has not reported the pod
        // yet.
        let kept = seen.clone();
        self.shared.content.write().pods.apply_response(pod.clone(), |_| kept);
        Ok(Some((pod, seen)))
    }

    /// Writes the config map with the certificate by which workers verify the instance. The instance owns it.
    pub(super) async fn publish_authority(&self, pem: &str) -> Result<(), ApiServerError> {
        let name = authority_config_map_name(&self.instance);
        let owner = self.api::<Instance>().get(&self.instance).await?.owner_ref(&());
        let said = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "labels": { INSTANCE_LABEL: self.instance },
                "ownerReferences": owner.map(|owner| vec![owner]),
            },
            "data": { AUTHORITY_MAP_KEY: pem },
        });
        let parameters = PatchParams::apply(INSTANCE_MANAGER).force();
        self.api::<ConfigMap>().patch(&name, &parameters, &Patch::Apply(&said)).await?;
        Ok(())
    }

    /// Checks that ComputeClusters can be listed.
    pub(super) async fn check(&self) -> Result<(), kube::Error> {
        self.clusters().list_metadata(&ListParams::default().limit(1)).await.map(drop)
    }

    fn clusters(&self) -> Api<ComputeCluster> {
        self.api()
    }

    fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self) -> Api<K> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

impl fmt::Debug for ApiServerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ApiServerClient { namespace, instance, .. } = self;
        f.debug_struct("ApiServerClient")
            .field("namespace", namespace)
            .field("instance", instance)
            .finish_non_exhaustive()
    }
}

impl WatchState {
    /// Applies an event to the content, and advances the counter if that changed something.
    fn apply_event(&self, tell: impl FnOnce(&mut ObservedObjects) -> bool) {
        let is_news = tell(&mut self.content.write());
        if is_news {
            self.changes.advance();
        }
    }
}

/// Returns the event, unless it is about an object that does not satisfy `is_meant`.
fn filter_event<K>(event: Event<K>, is_meant: impl FnOnce(&K) -> bool) -> Option<Event<K>> {
    let is_about_another = match &event {
        Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => !is_meant(object),
        Event::Init | Event::InitDone => false,
    };
    (!is_about_another).then_some(event)
}

/// Watches the objects of a kind and passes each event to `tell`, as long as the future is polled. A broken watch is
/// restarted with exponential backoff. `what` names the kind in log lines.
fn run_watch<K>(
    client: &Client,
    namespace: &str,
    config: watcher::Config,
    what: &'static str,
    on_event: impl Fn(Event<K>) + Send + 'static,
) -> impl Future<Output = ()> + Send + 'static
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + fmt::Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    async move {
        let mut seen = std::pin::pin!(watcher(api, config).default_backoff());
        let mut is_lost = false;
        while let Some(event) = seen.next().await {
            match event {
                Ok(event) => {
                    if std::mem::take(&mut is_lost) {
                        tracing::info!(what, "the watch of the Kubernetes API server works again");
                    }
                    on_event(event);
                }
                Err(error) if !is_lost => {
                    is_lost = true;
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        what,
                        error,
                        "could not watch the Kubernetes API server; changes are not seen meanwhile"
                    );
                }
                Err(_) => {}
            }
        }
    }
}
