//! Announcements of uploads: recorded durably before an object's first byte, removed when the object is committed.
//!
//! An object that is announced and never committed is deleted by the cleaner (`clean/`).

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
pub struct Uploads {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    transactions: Arc<Transactions>,
    announced: Mutex<Announced>,
}

#[derive(Debug, Default)]
struct Announced {
    objects: Vec<String>,
    ended: bool,
}

impl Uploads {
    pub(crate) fn new(transactions: Arc<Transactions>) -> Self {
        Self { shared: Arc::new(Shared { transactions, announced: Mutex::default() }) }
    }

    /// Records durably that `object` is about to be written, so that it is deleted if it is never committed. Its first
    /// byte may be written only after this has returned.
    ///
    /// # Errors
    /// [`Error::Ended`] if the transaction has ended; otherwise those of a commit.
    pub async fn announce(&self, object: &str) -> Result<()> {
        let transactions = &self.shared.transactions;
        {
            let mut announced = self.shared.announced.lock();
            if announced.ended {
                return Err(Error::Ended { object: object.to_owned() });
            }
            announced.objects.push(object.to_owned());
            transactions.core.in_flight.start(object);
        }
        transactions.announce(object.to_owned()).await?;
        Failpoint::UploadAnnounced.pass();
        Ok(())
    }

    /// Rejects all further announcements.
    pub(crate) fn end(&self) {
        self.shared.announced.lock().ended = true;
    }

    /// Rejects all further announcements and returns the announced objects, which the caller is responsible for from
    /// now on.
    pub(crate) fn take(&self) -> Vec<String> {
        self.end();
        std::mem::take(&mut self.shared.announced.lock().objects)
    }
}

/// Objects that nobody has taken were not committed, and with the last clone gone no task writes them any more: marks
/// them for deletion.
impl Drop for Shared {
    fn drop(&mut self) {
        let objects = std::mem::take(&mut self.announced.get_mut().objects);
        if !objects.is_empty() {
            self.transactions.core.in_flight.fail(objects);
        }
    }
}

/// Announced objects, divided into those of running transactions and those of failed ones.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    state: Mutex<State>,
    failed: Notify,
}

#[derive(Debug, Default)]
struct State {
    live: HashSet<String>,
    /// Objects of failed transactions, to be deleted; their announcements are still in the store.
    dead: BTreeSet<String>,
}

impl InFlight {
    /// Creates the state after a restart, where every announcement belongs to a failed transaction.
    pub(crate) fn recovered(dead: BTreeSet<String>) -> Self {
        Self { state: Mutex::new(State { live: HashSet::new(), dead }), failed: Notify::new() }
    }

    /// Waits until a transaction that had announced objects fails.
    pub(crate) async fn failed(&self) {
        self.failed.notified().await;
    }

    pub(crate) fn start(&self, object: &str) {
        self.state.lock().live.insert(object.to_owned());
    }

    /// Forgets objects that are committed, or that the store lists as garbage.
    pub(crate) fn settle(&self, objects: &[String]) {
        let mut state = self.state.lock();
        for object in objects {
            state.live.remove(object);
        }
    }

    /// Marks the objects of a failed transaction for deletion.
    pub(crate) fn fail(&self, objects: Vec<String>) {
        let mut state = self.state.lock();
        for object in objects {
            state.live.remove(&object);
            state.dead.insert(object);
        }
        self.failed.notify_one();
    }

    /// Returns the objects to be deleted, sorted by name.
    pub(crate) fn dead(&self) -> Vec<String> {
        self.state.lock().dead.iter().cloned().collect()
    }

    /// Forgets objects that are deleted together with their announcements.
    pub(crate) fn forget(&self, objects: &[String]) {
        let mut state = self.state.lock();
        for object in objects {
            state.dead.remove(object);
        }
    }

    /// Returns all announced objects.
    pub(crate) fn all(&self) -> HashSet<String> {
        let state = self.state.lock();
        state.live.iter().chain(&state.dead).cloned().collect()
    }
}

/// Adds the announcement of an object to the batch.
pub(crate) fn put(batch: &mut Batch, object: &str) {
    batch.put(Space::Uploads, object.as_bytes().to_vec(), Vec::new());
}

/// Adds the removal of an announcement to the batch.
pub(crate) fn delete(batch: &mut Batch, object: &str) {
    batch.delete(Space::Uploads, object.as_bytes().to_vec());
}
