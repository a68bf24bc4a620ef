//! Data definition: CREATE, ALTER, DROP and the like.

use std::collections::BTreeSet;
use std::sync::Arc;

use binder::{DefinePlan, Password};
use catalog::{CatalogState, Change, ConstraintKind};
use row_locks::{AttemptOutcome, lock_tables};
use storage_error::from_transaction;
use types::{Condition, Oid, SqlError, SqlResult};

use crate::retry_reason::{AttemptError, AttemptResult, RetryReason};
use crate::running_statement::Statement;
use crate::session::Session;
use crate::started_statement::StartedStatement;

impl Session {
    /// Runs a definition: locks the tables, checks the existing rows against new constraints, then stages the changes.
    pub(crate) async fn define(
        &mut self,
        mut plan: DefinePlan,
        statement: &Statement,
    ) -> AttemptResult<StartedStatement> {
        self.transaction_block.check_writable(&plan.command_tag)?;
        if let Some(command) = plan.forbidden_in_transaction_block {
            self.refuse_in_block(command)?;
        }
        self.refuse_cluster_owners(&plan.changes)?;
        let (context, _hold) = self.run_context(statement);
        let dml = Arc::clone(self.instance.execution.dml());
        let view = self.transaction_block.view().state;
        let changed =
            plan.changes.iter().filter_map(changed_table).filter(|table| view.table(*table).is_some()).collect();
        let referred = newly_referenced_tables(&plan.changes, &view);
        let is_checked = !plan.checks.is_empty() || plan.backfill.is_some();
        if lock_tables(&changed, &referred, is_checked, self.transaction_block.transaction(), &context).await? {
            return Err(RetryReason::Conflict.into());
        }
        for check in &plan.checks {
            let mut rows = self.open_query(&check.query, statement).await?;
            if rows.skip(Some(1)).await?.rows > 0 {
                return Err(check.violation.clone().into());
            }
        }
        for password in &plan.passwords {
            self.replace_password(&mut plan.changes, password)?;
        }
        plan.snapshot_pins.into_iter().for_each(|pin| self.transaction_block.transaction().hold_guard(pin));
        self.transaction_block.transaction().stage(plan.changes).map_err(from_transaction)?;
        if let Some(fill) = &plan.backfill {
            let filled = dml.modify(fill, self.transaction_block.transaction(), &context).await;
            let filled = filled.map_err(|error| AttemptError::from_run(error, &context, statement))?;
            if filled == AttemptOutcome::Conflict {
                return Err(
                    SqlError::internal("rows of a locked table changed while ALTER TABLE filled a new column").into()
                );
            }
        }
        self.add_notices(plan.notices);
        self.record_outcome(&plan.command_tag, 0, false, None);
        Ok(StartedStatement::Done(plan.command_tag))
    }

    /// Refuses to drop roles that own clusters (`2BP01`), which the catalog does not know of.
    fn refuse_cluster_owners(&self, changes: &[Change]) -> SqlResult<()> {
        for change in changes {
            let Change::DropRole(role) = change else { continue };
            let owned = self.instance.clusters.owned_by(*role);
            if !owned.is_empty() {
                let view = self.transaction_block.view();
                let name = view.state.role(*role).map_or("", |role| role.name.as_str());
                let message = format!("role \"{name}\" cannot be dropped because some objects depend on it");
                let detail: Vec<String> = owned.iter().map(|cluster| format!("owner of cluster {cluster}")).collect();
                return Err(
                    SqlError::new(Condition::DependentObjectsStillExist, message).with_detail(detail.join("\n"))
                );
            }
        }
        Ok(())
    }

    /// Replaces a password by the verifier that the catalog stores; the password itself is stored nowhere.
    fn replace_password(&mut self, changes: &mut [Change], password: &Password) -> SqlResult<()> {
        let verifier = match password.text.as_deref() {
            None => None,
            Some("") => {
                let notice = "empty string is not a valid password, clearing password";
                self.add_notices(vec![SqlError::new(Condition::InvalidPassword, notice)]);
                None
            }
            Some(text) => Some(authentication::create_verifier(text, &*self.instance.random)),
        };
        for change in changes {
            if let Change::PutRole(role) = change
                && role.oid == password.role
            {
                if let Some(file) = self.instance.credentials.superuser_password() {
                    file.refuse_change(role)?;
                }
                Arc::make_mut(role).scram = verifier.clone();
            }
        }
        Ok(())
    }
}

/// Returns the tables that foreign keys refer to which are enforced from these changes on.
fn newly_referenced_tables(changes: &[Change], view: &CatalogState) -> BTreeSet<Oid> {
    let tables = changes.iter().filter_map(|change| match change {
        Change::PutTable(table) => Some(table),
        _ => None,
    });
    let mut referenced = BTreeSet::new();
    for table in tables {
        let old_constraints = view.table(table.oid).map_or(&[][..], |table| table.constraints.as_slice());
        for constraint in table.constraints.iter().filter(|constraint| constraint.enforced) {
            let was_enforced = old_constraints.iter().any(|known| known.oid == constraint.oid && known.enforced);
            if let ConstraintKind::ForeignKey { references, .. } = &constraint.kind
                && !was_enforced
                && view.table(*references).is_some()
            {
                referenced.insert(*references);
            }
        }
    }
    referenced
}

/// Returns the table that a change is about.
fn changed_table(change: &Change) -> Option<Oid> {
    match change {
        Change::PutTable(table) => Some(table.oid),
        Change::DropTable(table) | Change::RemoveAllRows { table } | Change::AddShards { table, .. } => Some(*table),
        _ => None,
    }
}
