//! Announcements of uploads: recorded durably before an object's first byte, removed when the object is committed.
//!
//! An object that is announced and never committed is deleted by the cleaner (`cleaner/`).

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use kv::{Batch, Space};
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::Failpoint;

use crate::{Error, Result, Transactions};

/// Announcer of a transaction's uploads, shared by the tasks that write its objects in parallel. Each task holds a
/// clone while it writes: after a rollback the objects are deleted once the last clone is dropped.
#[derive(Debug, Clone)]
pub struct UploadAnnouncer {
    shared: Arc<SharedAnnouncements>,
}

#[derive(Debug)]
struct SharedAnnouncements {
    transactions: Arc<Transactions>,
    announced_objects: Mutex<AnnouncedObjects>,
}

#[derive(Debug, Default)]
struct AnnouncedObjects {
    objects: Vec<String>,
    has_ended: bool,
}

impl UploadAnnouncer {
    pub(crate) fn new(transactions: Arc<Transactions>) -> Self {
        Self { shared: Arc::new(SharedAnnouncements { transactions, announced_objects: Mutex::default() }) }
    }

    /// Records durably that `object` is about to be written, so that it is deleted if it is never committed. Its first
    /// byte may be written only after this has returned.
    ///
    /// # Errors
    /// [`Error::TransactionEnded`] if the transaction has ended; otherwise those of a commit.
    pub async fn announce(&self, object: &str) -> Result<()> {
        let transactions = &self.shared.transactions;
        {
            let mut announced = self.shared.announced_objects.lock();
            if announced.has_ended {
                return Err(Error::TransactionEnded { object: object.to_owned() });
            }
            announced.objects.push(object.to_owned());
            transactions.core.uploads.add_running(object);
        }
        transactions.announce(object.to_owned()).await?;
        Failpoint::UploadAnnounced.pass();
        Ok(())
    }

    /// Rejects all further announcements.
    pub(crate) fn end(&self) {
        self.shared.announced_objects.lock().has_ended = true;
    }

    /// Rejects all further announcements and returns the announced objects, which the caller is responsible for from
    /// now on.
    pub(crate) fn take(&self) -> Vec<String> {
        self.end();
        std::mem::take(&mut self.shared.announced_objects.lock().objects)
    }
}

/// Objects that nobody has taken were not committed, and with the last clone gone no task writes them any more: marks
/// them for deletion.
impl Drop for SharedAnnouncements {
    fn drop(&mut self) {
        let objects = std::mem::take(&mut self.announced_objects.get_mut().objects);
        if !objects.is_empty() {
            self.transactions.core.uploads.mark_failed(objects);
        }
    }
}

/// Announced objects, divided into those of running transactions and those of failed ones.
#[derive(Debug, Default)]
pub(crate) struct UploadRegistry {
    state: Mutex<UploadStates>,
    failure_notify: Notify,
}

#[derive(Debug, Default)]
struct UploadStates {
    running_objects: HashSet<String>,
    /// Objects of failed transactions, to be deleted; their announcements are still in the store.
    failed_objects: BTreeSet<String>,
}

impl UploadRegistry {
    /// Creates the state after a restart, where every announcement belongs to a failed transaction.
    pub(crate) fn with_failed(dead: BTreeSet<String>) -> Self {
        Self {
            state: Mutex::new(UploadStates { running_objects: HashSet::new(), failed_objects: dead }),
            failure_notify: Notify::new(),
        }
    }

    /// Waits until a transaction that had announced objects fails.
    pub(crate) async fn wait_for_failure(&self) {
        self.failure_notify.notified().await;
    }

    pub(crate) fn add_running(&self, object: &str) {
        self.state.lock().running_objects.insert(object.to_owned());
    }

    /// Forgets objects that are committed, or that the store lists as garbage.
    pub(crate) fn remove_committed(&self, objects: &[String]) {
        let mut state = self.state.lock();
        for object in objects {
            state.running_objects.remove(object);
        }
    }

    /// Marks the objects of a failed transaction for deletion.
    pub(crate) fn mark_failed(&self, objects: Vec<String>) {
        let mut state = self.state.lock();
        for object in objects {
            state.running_objects.remove(&object);
            state.failed_objects.insert(object);
        }
        self.failure_notify.notify_one();
    }

    /// Returns the objects to be deleted, sorted by name.
    pub(crate) fn failed_objects(&self) -> Vec<String> {
        self.state.lock().failed_objects.iter().cloned().collect()
    }

    /// Forgets objects that are deleted together with their announcements.
    pub(crate) fn remove_deleted(&self, objects: &[String]) {
        let mut state = self.state.lock();
        for object in objects {
            state.failed_objects.remove(object);
        }
    }

    /// Returns all announced objects.
    pub(crate) fn announced_objects(&self) -> HashSet<String> {
        let state = self.state.lock();
        state.running_objects.iter().chain(&state.failed_objects).cloned().collect()
    }
}

/// Adds the announcement of an object to the batch.
pub(crate) fn put_announcement(batch: &mut Batch, object: &str) {
    batch.put(Space::PendingUploads, object.as_bytes().to_vec(), Vec::new());
}

/// Adds the removal of an announcement to the batch.
pub(crate) fn delete_announcement(batch: &mut Batch, object: &str) {
    batch.delete(Space::PendingUploads, object.as_bytes().to_vec());
}
