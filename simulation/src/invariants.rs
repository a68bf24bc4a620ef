//! Invariant checks, during a run and at its end.

use std::borrow::Cow;
use std::collections::BTreeSet;

use kv::key::KeyReader;
use kv::{Direction, KeyRange, Space, TxKv};
use txn::Snapshot;

use super::simulated_world::{SimulatedServer, TABLE_ID};

impl SimulatedServer {
    /// Checks that the newest commit holds the acknowledged rows, and returns its snapshot.
    pub(super) async fn check_newest_snapshot(&self) -> Snapshot {
        let snapshot = self.current_snapshot();
        let seen = self.world.state_reader.rows(&self.table, snapshot.state.rows(TABLE_ID)).await;
        let expected = self.world.reference_model.lock().rows_at(snapshot.ts);
        assert_eq!(expected, seen, "the newest commit, {}", snapshot.ts.0);
        snapshot
    }

    /// Checks that every referenced object exists, and that every existing one is referenced, announced as an upload,
    /// or garbage.
    pub(super) async fn check_objects(&self) {
        let there = self.list_objects().await;
        let referenced = self.referenced_objects();
        let missing: Vec<_> = referenced.difference(&there).collect();
        assert!(missing.is_empty(), "objects are gone that the catalog names: {missing:?}");
        let mut known = self.accounted_objects();
        known.extend(self.world.orphaned_objects.lock().iter().cloned());
        let unknown: Vec<_> = there.difference(&known).collect();
        assert!(unknown.is_empty(), "objects that nothing knows of: {unknown:?}");
    }

    /// Returns the objects that the catalog references, that are announced as uploads, or that are recorded as
    /// garbage.
    fn accounted_objects(&self) -> BTreeSet<String> {
        let mut known = self.referenced_objects();
        known.extend(self.scan_names(Space::PendingUploads, |key| String::from_utf8(key.to_vec()).expect("a name")));
        known.extend(self.scan_names(Space::GarbageObjects, |key| {
            let mut reader = KeyReader::new(key);
            reader.u64().expect("a commit");
            reader.str().expect("a name")
        }));
        known
    }

    /// Records the unreferenced objects after a lost disk: commits that no longer exist have written them.
    pub(super) async fn record_orphaned_objects(&self) {
        let left: Vec<String> = self.list_objects().await.difference(&self.accounted_objects()).cloned().collect();
        self.world.orphaned_objects.lock().extend(left);
    }

    /// Checks after the final cleaning that only objects and rows of the newest commit remain, and no expired tokens.
    pub(super) async fn check_no_garbage_remains(&self) {
        assert!(self.tokens().is_empty(), "tokens are forgotten in time: {:?}", self.tokens());
        assert_eq!(self.list_objects().await, self.referenced_objects(), "the objects after all is cleaned up");
        let rows = self.scan_names(Space::UnflushedRows, |_| String::new()).len();
        let (fresh, state) = (self.current_snapshot(), self.current_snapshot());
        let fresh = &fresh.state.rows(TABLE_ID).fresh;
        let sealed = fresh.sealed.as_ref().map_or(0, |sealed| sealed.rows.len());
        // A deleted row of the sealed layer leaves an empty record in the active layer.
        let gone = fresh.active.hidden().filter(|id| fresh.active.get(*id).is_none()).count();
        assert_eq!(rows, fresh.active.len() + sealed + gone, "records of rows at commit {}", state.ts.0);
    }

    pub(super) async fn list_objects(&self) -> BTreeSet<String> {
        let listed = self.world.bucket.list("tables").await.expect("memory does not fail");
        listed.into_iter().map(|object| object.name).collect()
    }

    fn referenced_objects(&self) -> BTreeSet<String> {
        let snapshot = self.current_snapshot();
        snapshot.state.shards(TABLE_ID).shards.objects().map(Cow::into_owned).collect()
    }

    fn scan_names(&self, space: Space, name: impl Fn(&[u8]) -> String) -> Vec<String> {
        let Ok(entries) = self.store.scan(space, KeyRange::all(), Direction::Forward) else { return Vec::new() };
        entries.map(|entry| name(&entry.expect("memory does not fail").0)).collect()
    }
}
