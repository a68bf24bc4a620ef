//! Group commit: drains the queue of requests, writes them as one batch, publishes the new state and answers.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use tokio::sync::oneshot;
use types::{CommitTs, Failpoint};

use crate::group::{Group, Held, Proposal, ROW_BYTES_MAX};
use crate::holder::Holder;
use crate::transactions::Core;
use crate::{Error, Result};

/// Maximum number of requests that share one write.
const GROUP_MAX: usize = 256;

/// Request to the committer.
#[derive(Debug)]
pub(crate) enum Request {
    Commit { proposal: Box<Proposal>, holder: Holder, answer: oneshot::Sender<Result<CommitTs>> },
    Announce { object: String, answer: oneshot::Sender<Result<()>> },
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
            self.serve_group(first);
        }
    }

    /// Serves all queued requests as one round; returns whether there were any.
    pub fn serve_waiting(&self) -> bool {
        self.requests.try_recv().map(|first| self.serve_group(first)).is_ok()
    }

    fn serve_group(&self, first: Request) {
        let mut waiting = vec![first];
        waiting.extend(self.requests.try_iter().take(GROUP_MAX - 1));
        if self.core.is_poisoned() {
            waiting.into_iter().for_each(refuse);
        } else {
            in_groups(waiting).into_iter().for_each(|group| serve(&self.core, group));
        }
    }
}

/// Splits the requests into groups: before each commit that must be the first of its group, and where the rows would
/// exceed the size of one write.
fn in_groups(requests: Vec<Request>) -> Vec<Vec<Request>> {
    let mut groups: Vec<Vec<Request>> = vec![Vec::new()];
    let mut group_bytes = 0;
    for request in requests {
        let (has_to_begin, bytes) = match &request {
            Request::Commit { proposal, .. } => (proposal.begins_a_group(), proposal.row_bytes()),
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
enum Outcome {
    Committed {
        ts: CommitTs,
        is_named: bool,
        uploads: Vec<String>,
        held: Vec<Held>,
        holder: Holder,
        answer: oneshot::Sender<Result<CommitTs>>,
    },
    Refused {
        error: Error,
        uploads: Vec<String>,
        holder: Holder,
        answer: oneshot::Sender<Result<CommitTs>>,
    },
    Announced {
        answer: oneshot::Sender<Result<()>>,
    },
}

fn serve(core: &Core, requests: Vec<Request>) {
    let newest = core.visible.current();
    let mut group = Group::after(newest.ts, Arc::clone(&newest.state), core.clock.now_us());
    let outcomes: Vec<Outcome> = requests.into_iter().map(|request| admit(core, &mut group, request)).collect();
    let Group { ts, state, batch, .. } = group;
    Failpoint::CommitAdmitted.pass();
    let written = if batch.is_empty() { Ok(core.clock.now_us()) } else { core.write_commits(batch) };
    let written_us = match written {
        Ok(written_us) => written_us,
        Err(error) => {
            // Nothing is published and nothing is deleted: only the next start finds out what the store holds.
            let error = Arc::new(error);
            core.poison(&error);
            outcomes.into_iter().for_each(|outcome| outcome.fail(&error));
            return;
        }
    };
    Failpoint::CommitDurable.pass();
    // The order matters: durable before visible, visible before answered, and visible before the uploads are removed
    // from the list, so that whoever reads the uploads first and the newest commit second finds every object in one of
    // the two.
    if newest.ts < ts {
        if core.history.is_some() {
            core.recent.add(ts, Arc::clone(&state), written_us);
        }
        core.visible.publish(ts, state);
    }
    Failpoint::CommitVisible.pass();
    // Released before the answers: otherwise this thread's snapshot would pin what a client removed and cleans up.
    drop(newest);
    outcomes.into_iter().for_each(|outcome| outcome.conclude(core));
}

fn admit(core: &Core, group: &mut Group, request: Request) -> Outcome {
    match request {
        Request::Commit { proposal, holder, answer } => {
            let listed = core.listed(&proposal);
            match group.admit(&proposal, &core.moves, &core.writes, &listed) {
                Ok(ts) => {
                    let Proposal { uploads, held, named, .. } = *proposal;
                    Outcome::Committed { ts, is_named: named.is_some(), uploads, held, holder, answer }
                }
                // The other transaction may be in this same group, so the refusal waits until the group is durable.
                Err(error) => Outcome::Refused { error, uploads: proposal.uploads, holder, answer },
            }
        }
        Request::Announce { object, answer } => {
            group.announce(&object);
            Outcome::Announced { answer }
        }
    }
}

fn refuse(request: Request) {
    // The client may have gone; sending to a dropped receiver is no error, here and below.
    match request {
        Request::Commit { answer, .. } => drop(answer.send(Err(Error::Poisoned))),
        Request::Announce { answer, .. } => drop(answer.send(Err(Error::Poisoned))),
    }
}

impl Outcome {
    fn conclude(self, core: &Core) {
        match self {
            Self::Committed { ts, is_named, uploads, held, holder, answer } => {
                core.in_flight.settle(&uploads);
                if is_named {
                    core.outcomes.note_committed();
                }
                // The committed state references the objects that the transaction copied; no need to hold them any
                // longer.
                drop((held, holder));
                drop(answer.send(Ok(ts)));
            }
            Self::Refused { error, uploads, holder, answer } => {
                core.in_flight.fail(uploads);
                drop(holder);
                drop(answer.send(Err(error)));
            }
            Self::Announced { answer } => drop(answer.send(Ok(()))),
        }
    }

    fn fail(self, error: &Arc<kv::Error>) {
        let in_doubt = || Error::InDoubt(Arc::clone(error));
        match self {
            Self::Committed { answer, .. } => drop(answer.send(Err(in_doubt()))),
            Self::Refused { error: refusal, answer, .. } => drop(answer.send(Err(refusal))),
            Self::Announced { answer } => drop(answer.send(Err(in_doubt()))),
        }
    }
}
