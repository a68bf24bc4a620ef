//! Objects on their way: announced durably before their first byte, forgotten when they are committed.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use kv::{Batch, Space};
use parking_lot::Mutex;
use tokio::sync::Notify;
use types::Failpoint;

use crate::{Error, Result, Transactions};

/// A transaction's announcements, for the tasks that write its objects side by side. A task keeps its clone as long as it
/// writes: the objects of a transaction that was rolled back are deleted once the last clone is gone.
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

    /// Makes it known, durably, that `object` is about to be written: should it never be committed, it is deleted. Only after
    /// this returns may its first byte be written.
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

    /// Lets nobody announce any more.
    pub(crate) fn end(&self) {
        self.shared.announced.lock().ended = true;
    }

    /// Ends the announcing and gives what was announced, which from now on is the caller's care.
    pub(crate) fn take(&self) -> Vec<String> {
        self.end();
        std::mem::take(&mut self.shared.announced.lock().objects)
    }
}

/// What nobody took was not committed, and now nobody writes it any more.
impl Drop for Shared {
    fn drop(&mut self) {
        let objects = std::mem::take(&mut self.announced.get_mut().objects);
        if !objects.is_empty() {
            self.transactions.core.in_flight.fail(objects);
        }
    }
}

/// Which announced objects belong to transactions that go on, and which to ones that failed.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    state: Mutex<State>,
    failed: Notify,
}

#[derive(Debug, Default)]
struct State {
    live: HashSet<String>,
    /// To be deleted; their announcements are still in the store.
    dead: BTreeSet<String>,
}

impl InFlight {
    /// After a restart every announcement is one of a transaction that failed.
    pub(crate) fn recovered(dead: BTreeSet<String>) -> Self {
        Self { state: Mutex::new(State { live: HashSet::new(), dead }), failed: Notify::new() }
    }

    /// Completes once a transaction has failed that had announced objects.
    pub(crate) async fn failed(&self) {
        self.failed.notified().await;
    }

    pub(crate) fn start(&self, object: &str) {
        self.state.lock().live.insert(object.to_owned());
    }

    /// The objects are committed, or garbage that the store knows of.
    pub(crate) fn settle(&self, objects: &[String]) {
        let mut state = self.state.lock();
        for object in objects {
            state.live.remove(object);
        }
    }

    /// The transaction failed: the objects are to be deleted.
    pub(crate) fn fail(&self, objects: Vec<String>) {
        let mut state = self.state.lock();
        for object in objects {
            state.live.remove(&object);
            state.dead.insert(object);
        }
        self.failed.notify_one();
    }

    /// The objects to be deleted, in order of their names.
    pub(crate) fn dead(&self) -> Vec<String> {
        self.state.lock().dead.iter().cloned().collect()
    }

    /// The objects are deleted, and so are their announcements.
    pub(crate) fn forget(&self, objects: &[String]) {
        let mut state = self.state.lock();
        for object in objects {
            state.dead.remove(object);
        }
    }

    /// All objects that are announced.
    pub(crate) fn all(&self) -> HashSet<String> {
        let state = self.state.lock();
        state.live.iter().chain(&state.dead).cloned().collect()
    }
}

/// Records that the object is about to be written.
pub(crate) fn put(batch: &mut Batch, object: &str) {
    batch.put(Space::Uploads, object.as_bytes().to_vec(), Vec::new());
}

/// Removes the record.
pub(crate) fn delete(batch: &mut Batch, object: &str) {
    batch.delete(Space::Uploads, object.as_bytes().to_vec());
}
