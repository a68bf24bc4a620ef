//! Caches of observed objects, filled by watches, so that a reconciliation need not read from the API server.

use std::fmt::Debug;

use futures::Stream;
use kube::core::{ApiResource, NamespaceResourceScope};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::apply_objects::ObservedObject;

/// Kind of namespaced objects that can be watched.
pub(super) trait WatchedKind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> WatchedKind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Watches the objects of a kind in a namespace, only those with `label` if it is given. Returns the cache, and the
/// stream of changed objects that must be polled to fill the cache.
pub(super) fn watch<K: WatchedKind>(
    client: &Client,
    namespace: &str,
    label: Option<&str>,
) -> (Store<K>, impl Stream<Item = Result<K, watcher::Error>> + Send + 'static) {
    let (store, writer) = reflector::store();
    let config = label.map_or_else(watcher::Config::default, |label| watcher::Config::default().labels(label));
    let seen = watcher(Api::namespaced(client.clone(), namespace), config)
        // Managed fields are not used here and make up most of the size of many objects.
        .modify(|object: &mut K| object.managed_fields_mut().clear())
        .default_backoff()
        .reflect(writer)
        .touched_objects();
    (store, seen)
}

/// Function that returns the objects of one kind whose label has the given value.
pub(super) type Finder = Box<dyn Fn(&str) -> Vec<ObservedObject> + Send + Sync>;

/// Returns a [`Finder`] over a cache, by the label `label`.
pub(super) fn finder_by_label<K: WatchedKind>(store: Store<K>, label: &'static str) -> Finder {
    let resource = ApiResource::erase::<K>(&());
    Box::new(move |whose| {
        let own = store.state_filter(|object: &K| object.labels().get(label).is_some_and(|value| value == whose));
        own.iter().map(|object| ObservedObject::new(&**object, &resource)).collect()
    })
}
