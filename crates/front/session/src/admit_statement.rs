//! Admission: chooses the cluster of a statement, waits for a slot there, and leases a worker.
//!
//! Key lookups and queries of system tables alone need no worker and never come here.

use std::sync::Arc;

use binder::{StatementPlan, Step};
use cluster_model::{Actor, Author, Choice};
use types::{Condition, SqlError, SqlResult};
use workload::Refusal;
use workload::admission::Request;

use crate::cluster_slot::{AdmissionGrant, ClusterSlot};
use crate::retry_reason::{AttemptResult, RetryReason};
use crate::running_statement::Statement;
use crate::session::Session;
use crate::statement_timer::StatementState;

/// Wait event in `pg_stat_activity` of a statement that waits for a cluster.
const WAIT_EVENT: &str = "ClusterAdmission";

impl Session {
    /// Waits until the plan may run, if it needs a worker. Statements that the session has open share one slot.
    ///
    /// # Errors
    /// [`RetryReason::WaitedForCluster`] if it had to wait and is admitted now: its plan and snapshot are as old as the
    /// wait. Otherwise the error of the cluster that refuses it.
    pub(crate) async fn admit(&mut self, planned: &StatementPlan, statement: &Statement) -> AttemptResult<()> {
        // Admitted by an earlier attempt.
        if self.admission.is_some() || !planned.needs_worker() {
            return Ok(());
        }
        let step = Step::Admit.span();
        let (admitted, has_waited) = self.acquire_slot(statement).await?;
        drop(step);
        if matches!(planned, StatementPlan::Write(_) | StatementPlan::Modify(_) | StatementPlan::CopyFrom(_)) {
            self.transaction_block.set_writing_cluster(admitted.slot.cluster);
        }
        self.slot = Arc::downgrade(&admitted.slot);
        statement.set_lease(&admitted.lease);
        self.admission = Some(admitted);
        // The snapshot is as old as the wait was long.
        if has_waited { Err(RetryReason::WaitedForCluster.into()) } else { Ok(()) }
    }

    /// Chooses a cluster, takes a slot and a lease there; returns `true` if the statement had to wait.
    async fn acquire_slot(&mut self, statement: &Statement) -> SqlResult<(AdmissionGrant, bool)> {
        let clusters = Arc::clone(&self.instance.clusters);
        let actor = self.actor();
        let mut wait_event = None;
        loop {
            let seen = clusters.revision();
            let open = self.slot.upgrade();
            let chosen = self.transaction_block.session_state().cluster.as_deref();
            let choice = clusters.choose(
                &actor,
                chosen,
                self.transaction_block.writing_cluster(),
                open.as_ref().map(|turn| turn.cluster),
            )?;
            let cluster = match choice {
                Choice::Run(cluster) => cluster,
                Choice::Resume(cluster) => {
                    wait_event.get_or_insert_with(|| self.backend_guard.backend.show_wait(WAIT_EVENT));
                    statement.enter_state(StatementState::AcquireResources);
                    clusters.resume_cluster(cluster, Author::Role(actor.clone())).await?;
                    continue;
                }
            };
            statement.set_cluster(clusters.name(cluster));
            let turn = match open.filter(|turn| turn.cluster == cluster) {
                Some(turn) => turn,
                None => {
                    let Some(gate) = clusters.admission(cluster) else {
                        // Just dropped, or just created and not fully registered yet.
                        tokio::task::yield_now().await;
                        continue;
                    };
                    let user = self.transaction_block.session_state().session_role.oid;
                    let is_superuser = actor.superuser;
                    let request = Request { statement: statement.query_id, user, weight: 1, is_superuser };
                    let permit = match gate.try_admit(&request) {
                        Some(permit) => Some(permit),
                        // Statements with a slot may wait for locks of this transaction, which would then wait for a
                        // slot for ever.
                        None if self.transaction_block.holds_locks() => None,
                        None => {
                            wait_event.get_or_insert_with(|| self.backend_guard.backend.show_wait(WAIT_EVENT));
                            statement.enter_state(StatementState::AcquireResources);
                            tokio::select! {
                                biased;
                                admitted = gate.admit(request) => match admitted {
                                    Ok(permit) => Some(permit),
                                    Err(Refusal::Closed) => {
                                        tokio::task::yield_now().await;
                                        continue;
                                    }
                                    Err(refusal) => return Err(refusal_error(refusal)),
                                },
                                // The cluster no longer takes statements: another one may be chosen, or this one has to
                                // be resumed.
                                () = clusters.wait_until_unavailable(cluster) => continue,
                            }
                        }
                    };
                    Arc::new(ClusterSlot { cluster, permit })
                }
            };
            if let Some(lease) = clusters.lease(cluster) {
                statement.enter_state(StatementState::Run);
                return Ok((AdmissionGrant { slot: turn, lease }, wait_event.is_some()));
            }
            // No worker is ready: the slot is released while the statement waits for a change of the cluster.
            drop(turn);
            wait_event.get_or_insert_with(|| self.backend_guard.backend.show_wait(WAIT_EVENT));
            statement.enter_state(StatementState::AcquireResources);
            clusters.wait_for_change(seen).await;
        }
    }

    /// Returns the current role as the actor of cluster commands, with its attributes in the present catalog.
    pub(crate) fn actor(&self) -> Actor {
        let view = self.transaction_block.view();
        let held = self.transaction_block.session_state();
        let role = view.state.role(held.role.oid).unwrap_or(&held.role);
        Actor {
            role: cluster_model::RoleRef { oid: role.oid, name: role.name.clone() },
            superuser: role.superuser,
            // Roles have no such attribute.
            create_cluster: false,
            create_role: role.create_role,
        }
    }
}

fn refusal_error(refusal: Refusal) -> SqlError {
    let condition = match refusal {
        Refusal::Cancelled => Condition::QueryCanceled,
        Refusal::QueueFull { .. } => Condition::ConfigurationLimitExceeded,
        Refusal::Closed => Condition::ObjectNotInPrerequisiteState,
    };
    SqlError::new(condition, refusal.to_string())
}
