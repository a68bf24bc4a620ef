//! In-memory copy of the objects of a kind, updated by a watch and by the responses to the instance's own changes.
//!
//! A response may arrive before the watch reports the same change or older ones. The resource version of each object
//! tells which state is newer, and the uids of deleted objects prevent late events from bringing them back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use kube::runtime::watcher::Event;

/// Objects of a kind by name, each stored as a `T`.
#[derive(Debug)]
pub(super) struct ObjectMirror<T> {
    entries: BTreeMap<String, Entry<T>>,
    /// Number of listings begun. Objects written since the last one began may be missing in it.
    listing_count: u64,
    /// Names that the listing in progress has reported so far.
    listed_names: Option<BTreeSet<String>>,
    is_complete: bool,
    /// Uids of objects that the instance deleted and the watch may still report.
    deleted_uids: BTreeSet<String>,
}

#[derive(Debug)]
struct Entry<T> {
    uid: String,
    /// Resource version.
    version: u64,
    /// Number of listings begun when a response last contained the object; 0 if only the watch has reported it.
    last_response_listing: u64,
    value: Arc<T>,
}

impl<T> Default for ObjectMirror<T> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
            listing_count: 0,
            listed_names: None,
            is_complete: false,
            deleted_uids: BTreeSet::new(),
        }
    }
}

impl<T> ObjectMirror<T> {
    /// Applies an event of the watch, and returns whether the content may have changed.
    pub(super) fn apply_event<K: ResourceExt>(&mut self, event: Event<K>, keep: impl FnOnce(K) -> T) -> bool {
        match event {
            Event::Init => {
                self.listing_count += 1;
                self.listed_names = Some(BTreeSet::new());
                false
            }
            Event::InitApply(object) => {
                if let Some(listed) = &mut self.listed_names {
                    listed.insert(object.name_any());
                }
                self.insert_if_newer(object, keep)
            }
            Event::InitDone => {
                let (listing_count, listed) = (self.listing_count, self.listed_names.take().unwrap_or_default());
                self.entries
                    .retain(|name, entry| listed.contains(name) || entry.last_response_listing == listing_count);
                self.deleted_uids.clear();
                self.is_complete = true;
                true
            }
            Event::Apply(object) => self.insert_if_newer(object, keep),
            Event::Delete(object) => {
                let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
                self.deleted_uids.remove(&uid);
                let is_it = self.entries.get(&name).is_some_and(|entry| entry.uid == uid);
                if is_it {
                    self.entries.remove(&name);
                }
                is_it
            }
        }
    }

    /// Applies the object in a response of the API server.
    pub(super) fn apply_response<K: ResourceExt>(&mut self, object: K, keep: impl FnOnce(K) -> T) {
        let name = object.name_any();
        self.insert_if_newer(object, keep);
        if let Some(entry) = self.entries.get_mut(&name) {
            entry.last_response_listing = self.listing_count;
        }
    }

    /// Removes an object that the instance has deleted.
    pub(super) fn apply_delete_response(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.deleted_uids.insert(entry.uid);
        }
    }

    /// Stores an object, unless a newer version is stored or it was deleted. Returns whether it was stored.
    fn insert_if_newer<K: ResourceExt>(&mut self, object: K, keep: impl FnOnce(K) -> T) -> bool {
        let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
        // Resource versions are compared as numbers, as the API server does.
        let version = object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(u64::MAX);
        let is_old = self.entries.get(&name).is_some_and(|entry| version < entry.version);
        if is_old || self.deleted_uids.contains(&uid) {
            return false;
        }
        let listing = self.entries.get(&name).map_or(0, |entry| entry.last_response_listing);
        self.entries
            .insert(name, Entry { uid, version, last_response_listing: listing, value: Arc::new(keep(object)) });
        true
    }

    /// Returns whether at least one listing has completed.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(super) fn get(&self, name: &str) -> Option<&Arc<T>> {
        self.entries.get(name).map(|entry| &entry.value)
    }

    pub(super) fn values(&self) -> Vec<Arc<T>> {
        self.entries.values().map(|entry| Arc::clone(&entry.value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    fn pod(name: &str, uid: &str, version: u64) -> Pod {
        let mut pod = Pod::default();
        pod.metadata.name = Some(name.to_owned());
        pod.metadata.uid = Some(uid.to_owned());
        pod.metadata.resource_version = Some(version.to_string());
        pod
    }

    /// Maps a pod to its version.
    fn version(pod: Pod) -> String {
        pod.resource_version().expect("it was given")
    }

    fn all(mirror: &ObjectMirror<String>) -> Vec<String> {
        mirror.values().into_iter().map(|version| version.as_str().to_owned()).collect()
    }

    #[test]
    fn what_is_told_late_changes_nothing() {
        let mut mirror = ObjectMirror::default();
        assert!(mirror.apply_event(Event::Apply(pod("a", "1", 5)), version));
        mirror.apply_response(pod("a", "1", 8), version);
        assert!(!mirror.apply_event(Event::Apply(pod("a", "1", 7)), version));
        assert_eq!(all(&mirror), ["8"]);
        mirror.apply_delete_response("a");
        assert!(!mirror.apply_event(Event::Apply(pod("a", "1", 8)), version), "it is gone");
        assert!(!mirror.apply_event(Event::Delete(pod("a", "1", 9)), version));
        assert!(mirror.apply_event(Event::Apply(pod("a", "2", 10)), version), "another of the name");
        assert!(!mirror.apply_event(Event::Delete(pod("a", "1", 9)), version), "which is not the one that went");
        assert_eq!(all(&mirror), ["10"]);
    }

    #[test]
    fn a_listing_tells_what_is_gone_and_not_what_is_quite_new() {
        let mut mirror = ObjectMirror::default();
        mirror.apply_event(Event::Apply(pod("a", "1", 1)), version);
        mirror.apply_response(pod("b", "2", 2), version);
        assert!(!mirror.is_complete());
        mirror.apply_event(Event::<Pod>::Init, version);
        mirror.apply_response(pod("d", "4", 4), version);
        mirror.apply_event(Event::InitApply(pod("c", "3", 3)), version);
        assert!(mirror.apply_event(Event::<Pod>::InitDone, version));
        assert!(mirror.is_complete());
        assert_eq!(all(&mirror), ["3", "4"], "a and b have gone, d came while it listed");
    }
}
