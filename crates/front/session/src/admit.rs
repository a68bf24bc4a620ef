//! Admission: a statement's cluster is chosen, it waits its turn there, and gets a worker.
//!
//! What an index answers, and what reads system tables alone, needs no worker and never comes here.

use std::sync::Arc;

use binder::{Planned, Step};
use cluster_model::{Actor, Author, Choice};
use types::{Condition, SqlError, SqlResult};
use workload::Refusal;
use workload::admission::Request;

use crate::life::State;
use crate::retry::{AttemptResult, Retry};
use crate::session::Session;
use crate::statement::Statement;
use crate::turn::{Admitted, Turn};

/// What `pg_stat_activity` shows of who waits for a cluster.
const WAIT_EVENT: &str = "ClusterAdmission";

impl Session {
    /// Waits until the plan may run, if it needs a worker. An open statement's turn counts for it too.
    ///
    /// # Errors
    /// [`Retry::Waited`] where it had to wait and may run now: what it was planned on is old. Else why no cluster takes it.
    pub(crate) async fn admit(&mut self, planned: &Planned, statement: &Statement) -> AttemptResult<()> {
        // It was admitted, and is planned again.
        if self.admitted.is_some() || !planned.needs_worker() {
            return Ok(());
        }
        let step = Step::Admit.span();
        let (admitted, has_waited) = self.wait_for_turn(statement).await?;
        drop(step);
        if matches!(planned, Planned::Write(_) | Planned::Modify(_) | Planned::CopyFrom(_)) {
            self.block.note_written_on(admitted.turn.cluster);
        }
        self.turn = Arc::downgrade(&admitted.turn);
        statement.runs_on(&admitted.lease);
        self.admitted = Some(admitted);
        // What it would see is as old as its wait was long.
        if has_waited { Err(Retry::Waited.into()) } else { Ok(()) }
    }

    /// Chooses a cluster and gets a worker there; `true` if the statement had to wait.
    async fn wait_for_turn(&mut self, statement: &Statement) -> SqlResult<(Admitted, bool)> {
        let clusters = Arc::clone(&self.instance.clusters);
        let actor = self.actor();
        let mut shown = None;
        loop {
            let seen = clusters.revision();
            let open = self.turn.upgrade();
            let chosen = self.block.held().cluster.as_deref();
            let choice =
                clusters.choose(&actor, chosen, self.block.written_on(), open.as_ref().map(|turn| turn.cluster))?;
            let cluster = match choice {
                Choice::Run(cluster) => cluster,
                Choice::Wake(cluster) => {
                    shown.get_or_insert_with(|| self.seat.backend.waiting(WAIT_EVENT));
                    statement.enter(State::AcquireResources);
                    clusters.wake(cluster, Author::Role(actor.clone())).await?;
                    continue;
                }
            };
            statement.goes_to(clusters.name(cluster));
            let turn = match open.filter(|turn| turn.cluster == cluster) {
                Some(turn) => turn,
                None => {
                    let Some(gate) = clusters.gate(cluster) else {
                        // Dropped just now, or not known to all yet.
                        tokio::task::yield_now().await;
                        continue;
                    };
                    let user = self.block.held().session_role.oid;
                    let is_superuser = actor.superuser;
                    let request = Request { statement: statement.query_id, user, weight: 1, is_superuser };
                    let permit = match gate.try_admit(&request) {
                        Some(permit) => Some(permit),
                        // Whoever has a turn may wait for what it has locked: then its own would never come.
                        None if self.block.holds_locks() => None,
                        None => {
                            shown.get_or_insert_with(|| self.seat.backend.waiting(WAIT_EVENT));
                            statement.enter(State::AcquireResources);
                            tokio::select! {
                                biased;
                                admitted = gate.admit(request) => match admitted {
                                    Ok(permit) => Some(permit),
                                    Err(Refusal::Closed) => {
                                        tokio::task::yield_now().await;
                                        continue;
                                    }
                                    Err(refusal) => return Err(refused(refusal)),
                                },
                                // Another one may do, or this one has to be woken.
                                () = clusters.leaves(cluster) => continue,
                            }
                        }
                    };
                    Arc::new(Turn { cluster, permit })
                }
            };
            if let Some(lease) = clusters.lease(cluster) {
                statement.enter(State::Run);
                return Ok((Admitted { turn, lease }, shown.is_some()));
            }
            // Its workers are about to come, or have just gone: others wait behind it no longer than for those.
            drop(turn);
            shown.get_or_insert_with(|| self.seat.backend.waiting(WAIT_EVENT));
            statement.enter(State::AcquireResources);
            clusters.changed_since(seen).await;
        }
    }

    /// Who asks for something of a cluster, by what the catalog says now.
    pub(crate) fn actor(&self) -> Actor {
        let view = self.block.view();
        let held = self.block.held();
        let role = view.state.role(held.role.oid).unwrap_or(&held.role);
        Actor {
            role: cluster_model::RoleRef { oid: role.oid, name: role.name.clone() },
            superuser: role.superuser,
            // There is no attribute of roles for it.
            create_cluster: false,
            create_role: role.create_role,
        }
    }
}

fn refused(refusal: Refusal) -> SqlError {
    let condition = match refusal {
        Refusal::Cancelled => Condition::QueryCanceled,
        Refusal::QueueFull { .. } => Condition::ConfigurationLimitExceeded,
        Refusal::Closed => Condition::ObjectNotInPrerequisiteState,
    };
    SqlError::new(condition, refusal.to_string())
}
