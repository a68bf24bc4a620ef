//! Cluster commands: CREATE, ALTER, DROP and USE CLUSTER.

use std::sync::Arc;

use binder::ClusterCommand;
use cluster_model::{Author, Change, IfExists};
use types::{Condition, SqlError, SqlResult};

use crate::session::Session;
use crate::started_statement::StartedStatement;

impl Session {
    /// Runs a cluster command. Clusters are not transactional: all but USE are refused in a block and take effect at
    /// once.
    pub(crate) async fn cluster_command(&mut self, command: ClusterCommand) -> SqlResult<StartedStatement> {
        match command {
            ClusterCommand::Use(name) => {
                self.use_cluster(name.as_deref())?;
                Ok(StartedStatement::Done("USE CLUSTER".to_owned()))
            }
            ClusterCommand::Change { changes, tag } => {
                self.transaction_block.check_writable(tag)?;
                self.refuse_in_block(tag)?;
                if self.token_request.is_some() {
                    // Cluster changes are not part of the commit that records the outcome of a token.
                    return Err(SqlError::unsupported(format!("{tag} under a token"))
                        .with_hint("RESET kiln.statement_token first."));
                }
                if self.transaction_block.has_written() {
                    // The statements of one string are one transaction: a role created by an earlier one might not be
                    // committed.
                    let message = format!("{tag} cannot run in a transaction that has written");
                    return Err(SqlError::new(Condition::ActiveTransaction, message));
                }
                let author = Author::Role(self.actor());
                let events = self.instance.clusters.apply(changes.clone(), author).await?;
                for (change, events) in changes.iter().zip(events) {
                    if events.is_empty() {
                        self.add_notices(skipped(change).into_iter().collect());
                    }
                }
                Ok(StartedStatement::Done(tag.to_owned()))
            }
        }
    }

    fn use_cluster(&mut self, name: Option<&str>) -> SqlResult<()> {
        let chosen = match name {
            Some(name) => Some(Arc::new(self.instance.clusters.find_usable_cluster(&self.actor(), name)?)),
            None => None,
        };
        if self.transaction_block.writing_cluster().is_some() {
            let message = "USE CLUSTER must be called before the transaction writes";
            return Err(SqlError::new(Condition::ActiveTransaction, message));
        }
        self.transaction_block.change(false, |held| {
            held.cluster.clone_from(&chosen);
            Ok(())
        })
    }
}

/// Returns the notice of a change that IF EXISTS or IF NOT EXISTS has skipped.
fn skipped(change: &Change) -> Option<SqlError> {
    let message = match change {
        Change::Create { name, if_exists: IfExists::Keep, .. } => {
            format!("cluster \"{name}\" already exists, skipping")
        }
        Change::Drop { name, if_exists: true } => format!("cluster \"{name}\" does not exist, skipping"),
        _ => return None,
    };
    Some(SqlError::new(Condition::SuccessfulCompletion, message))
}
