//! Group commit: drains the queue of requests, writes them as one batch, publishes the new state and answers.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use tokio::sync::oneshot;
use types::{CommitTs, Failpoint};

use crate::commit_group::{CommitGroup, DeletionGuard, Proposal, ROW_BYTES_MAX};
use crate::transaction_locks::TransactionLocks;
use crate::transactions::Core;
use crate::{Error, Result};

/// Maximum number of requests that share one write.
const REQUESTS_PER_WRITE_MAX: usize = 256;

/// Request to the committer.
#[derive(Debug)]
pub(crate) enum Request {
    Commit { proposal: Box<Proposal>, locks: TransactionLocks, reply_sender: oneshot::Sender<Result<CommitTs>> },
    Announce { object: String, reply_sender: oneshot::Sender<Result<()>> },
}

/// Group committer. A server runs it on a thread of its own; a simulation drives it step by step.
#[derive(Debug)]
pub struct Committer {
    core: Arc<Core>,
    requests: Receiver<Request>,
}

impl Committer {
    pub(crate) fn new(core: Arc<Core>, requests: Receiver<Request>) -> Self {
        Self { core, requests }
    }

    /// Serves requests until all senders are dropped.
    pub(crate) fn run(&self) {
        while let Ok(first) = self.requests.recv() {
            self.commit_queued_requests(first);
        }
    }

    /// Serves all queued requests as one round; returns whether there were any.
    pub fn serve_queued(&self) -> bool {
        self.requests.try_recv().map(|first| self.commit_queued_requests(first)).is_ok()
    }

    fn commit_queued_requests(&self, first: Request) {
        let mut waiting = vec![first];
        waiting.extend(self.requests.try_iter().take(REQUESTS_PER_WRITE_MAX - 1));
        if self.core.is_poisoned() {
            waiting.into_iter().for_each(reject_poisoned);
        } else {
            split_into_groups(waiting).into_iter().for_each(|group| commit_group(&self.core, group));
        }
    }
}

/// Splits the requests into groups: before each commit that must be the first of its group, and where the rows would
/// exceed the size of one write.
fn split_into_groups(requests: Vec<Request>) -> Vec<Vec<Request>> {
    let mut groups: Vec<Vec<Request>> = vec![Vec::new()];
    let mut group_bytes = 0;
    for request in requests {
        let (has_to_begin, bytes) = match &request {
            Request::Commit { proposal, .. } => (proposal.must_begin_group(), proposal.max_stored_bytes()),
            Request::Announce { .. } => (false, 0),
        };
        let begins = has_to_begin || ROW_BYTES_MAX < group_bytes + bytes;
        group_bytes = if begins { bytes } else { group_bytes + bytes };
        match groups.last_mut().filter(|group| group.is_empty() || !begins) {
            Some(group) => group.push(request),
            None => groups.push(vec![request]),
        }
    }
    groups
}

/// Answer to a request, sent once its group is durable.
enum Reply {
    Committed {
        ts: CommitTs,
        has_token: bool,
        uploads: Vec<String>,
        deletion_guards: Vec<DeletionGuard>,
        locks: TransactionLocks,
        reply_sender: oneshot::Sender<Result<CommitTs>>,
    },
    Refused {
        error: Error,
        uploads: Vec<String>,
        locks: TransactionLocks,
        reply_sender: oneshot::Sender<Result<CommitTs>>,
    },
    Announced {
        reply_sender: oneshot::Sender<Result<()>>,
    },
}

fn commit_group(core: &Core, requests: Vec<Request>) {
    let newest = core.snapshots.pin_newest();
    let mut group = CommitGroup::new(newest.ts, Arc::clone(&newest.state), core.clock.now_us());
    let outcomes: Vec<Reply> = requests.into_iter().map(|request| admit(core, &mut group, request)).collect();
    let CommitGroup { ts, state, batch, .. } = group;
    Failpoint::CommitAdmitted.pass();
    let written = if batch.is_empty() { Ok(core.clock.now_us()) } else { core.write_commits(batch) };
    let written_us = match written {
        Ok(written_us) => written_us,
        Err(error) => {
            // Nothing is published and nothing is deleted: only the next start finds out what the store holds.
            let error = Arc::new(error);
            core.poison(&error);
            outcomes.into_iter().for_each(|outcome| outcome.send_failure(&error));
            return;
        }
    };
    Failpoint::CommitDurable.pass();
    // The order matters: durable before visible, visible before answered, and visible before the uploads are removed
    // from the list, so that whoever reads the uploads first and the newest commit second finds every object in one of
    // the two.
    if newest.ts < ts {
        if core.history.is_some() {
            core.recent_states.add(ts, Arc::clone(&state), written_us);
        }
        core.snapshots.publish(ts, state);
    }
    Failpoint::CommitVisible.pass();
    // Released before the answers: otherwise this thread's snapshot would pin what a client removed and cleans up.
    drop(newest);
    outcomes.into_iter().for_each(|outcome| outcome.send(core));
}

fn admit(core: &Core, group: &mut CommitGroup, request: Request) -> Reply {
    match request {
        Request::Commit { proposal, locks, reply_sender } => {
            let listed = core.garbage_for_clone(&proposal);
            match group.admit(&proposal, &core.moves, &core.write_log, &listed) {
                Ok(ts) => {
                    let Proposal { uploads, guards: deletion_guards, token_writes: named, .. } = *proposal;
                    Reply::Committed { ts, has_token: named.is_some(), uploads, deletion_guards, locks, reply_sender }
                }
                // The other transaction may be in this same group, so the refusal waits until the group is durable.
                Err(error) => Reply::Refused { error, uploads: proposal.uploads, locks, reply_sender },
            }
        }
        Request::Announce { object, reply_sender } => {
            group.announce(&object);
            Reply::Announced { reply_sender }
        }
    }
}

fn reject_poisoned(request: Request) {
    // The client may have gone; sending to a dropped receiver is no error, here and below.
    match request {
        Request::Commit { reply_sender, .. } => drop(reply_sender.send(Err(Error::Poisoned))),
        Request::Announce { reply_sender, .. } => drop(reply_sender.send(Err(Error::Poisoned))),
    }
}

impl Reply {
    fn send(self, core: &Core) {
        match self {
            Self::Committed { ts, has_token, uploads, deletion_guards, locks, reply_sender } => {
                core.uploads.remove_committed(&uploads);
                if has_token {
                    core.outcomes.count_committed();
                }
                // The committed state references the objects that the transaction copied; no need to hold them any
                // longer.
                drop((deletion_guards, locks));
                drop(reply_sender.send(Ok(ts)));
            }
            Self::Refused { error, uploads, locks, reply_sender } => {
                core.uploads.mark_failed(uploads);
                drop(locks);
                drop(reply_sender.send(Err(error)));
            }
            Self::Announced { reply_sender } => drop(reply_sender.send(Ok(()))),
        }
    }

    fn send_failure(self, error: &Arc<kv::Error>) {
        let in_doubt = || Error::InDoubt(Arc::clone(error));
        match self {
            Self::Committed { reply_sender, .. } => drop(reply_sender.send(Err(in_doubt()))),
            Self::Refused { error: refusal, reply_sender, .. } => drop(reply_sender.send(Err(refusal))),
            Self::Announced { reply_sender } => drop(reply_sender.send(Err(in_doubt()))),
        }
    }
}
