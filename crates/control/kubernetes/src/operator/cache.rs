//! What there is, as watches tell it: a look asks the API server for nothing that it has told already.

use std::fmt::Debug;

use futures::Stream;
use kube::core::{ApiResource, NamespaceResourceScope};
use kube::runtime::reflector::{self, Store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::apply::Found;

/// Kinds of objects that can be watched here.
pub(super) trait Kind:
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

impl<K> Kind for K where
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

/// All of a kind in a namespace, with this label where one is named; and the stream that has to be polled for them to be there.
pub(super) fn watch<K: Kind>(
    client: &Client,
    namespace: &str,
    label: Option<&str>,
) -> (Store<K>, impl Stream<Item = Result<K, watcher::Error>> + Send + 'static) {
    let (store, writer) = reflector::store();
    let config = label.map_or_else(watcher::Config::default, |label| watcher::Config::default().labels(label));
    let seen = watcher(Api::namespaced(client.clone(), namespace), config)
        // Nobody asks here who owns which field, and that is the larger part of many objects.
        .modify(|object: &mut K| object.managed_fields_mut().clear())
        .default_backoff()
        .reflect(writer)
        .touched_objects();
    (store, seen)
}

/// Finds the objects of one kind that a label gives to somebody.
pub(super) type Finder = Box<dyn Fn(&str) -> Vec<Found> + Send + Sync>;

/// Finds them in a store.
pub(super) fn finder<K: Kind>(store: Store<K>, label: &'static str) -> Finder {
    let resource = ApiResource::erase::<K>(&());
    Box::new(move |whose| {
        let own = store.state_filter(|object: &K| object.labels().get(label).is_some_and(|value| value == whose));
        own.iter().map(|object| Found::new(&**object, &resource)).collect()
    })
}
