//! Changes of the clusters by statements and by the server itself.

use std::sync::Arc;

use cluster_model::{
    Author, Change, ClusterEvent, ClusterId, DesiredState, HardwareInstance, HardwareKind, OptionValue,
};
use control_plane::ControlPlaneError;
use futures::future::BoxFuture;
use types::{SqlError, SqlResult};

use crate::clusters::Clusters;

impl Clusters {
    /// Applies the changes in order and returns the events of each; applies none of them if one is refused.
    pub fn apply<'a>(
        self: &'a Arc<Self>,
        changes: Vec<Change>,
        author: Author,
    ) -> BoxFuture<'a, SqlResult<Vec<Vec<ClusterEvent>>>> {
        Box::pin(self.apply_unboxed(changes, author))
    }

    async fn apply_unboxed(
        self: &Arc<Self>,
        changes: Vec<Change>,
        author: Author,
    ) -> SqlResult<Vec<Vec<ClusterEvent>>> {
        self.check_changes(&changes, &author)?;
        let clusters = Arc::clone(self);
        // The control plane writes to disk.
        let applied = tokio::task::spawn_blocking(move || {
            let applied: Result<Vec<_>, ControlPlaneError> =
                changes.iter().map(|change| clusters.plane.apply(change, &author)).collect();
            clusters.update_ownership();
            clusters.update_admission();
            applied
        });
        let applied = applied.await.map_err(|error| {
            SqlError::internal(format!("the task that applies a change of clusters failed: {error}"))
        })?;
        applied.map_err(|error| control_plane_error(&error))
    }

    /// Resumes a cluster for a statement.
    pub fn resume_cluster<'a>(self: &'a Arc<Self>, cluster: ClusterId, author: Author) -> BoxFuture<'a, SqlResult<()>> {
        Box::pin(self.resume_cluster_unboxed(cluster, author))
    }

    async fn resume_cluster_unboxed(self: &Arc<Self>, cluster: ClusterId, author: Author) -> SqlResult<()> {
        let desired = self.plane.desired();
        // A dropped cluster: the next choice of a cluster reports it.
        let Some(cluster) = desired.cluster(cluster) else { return Ok(()) };
        self.apply(vec![Change::AutoResume { name: cluster.spec.name.clone() }], author).await.map(drop)
    }

    /// Checks the changes on a copy of the desired state.
    fn check_changes(&self, changes: &[Change], author: &Author) -> SqlResult<()> {
        let mut state = self.plane.desired().as_ref().clone();
        for change in changes {
            let tried = state.change(&self.plane.inventory(), change, author, self.clock.now_us());
            state = tried.map_err(|error| cluster_error(&error))?.0;
            self.check_hardware_support(&state)?;
        }
        Ok(())
    }

    /// Refuses options that a cluster's hardware does not support.
    fn check_hardware_support(&self, state: &DesiredState) -> SqlResult<()> {
        let inventory = self.plane.inventory();
        for spec in state.clusters().map(|cluster| &cluster.spec) {
            // Hardware that only an earlier version offered starts no workers.
            let Ok(HardwareInstance { kind: HardwareKind::Embedded, name, .. }) =
                inventory.hardware(&spec.hardware_instance)
            else {
                continue;
            };
            let refused = spec.options().find(|(option, value)| option.own_process && *value != OptionValue::Null);
            if let Some((option, _)) = refused {
                let hint = "Workers in the server's process share its disk.";
                let what = format!("{} on hardware instance \"{name}\"", option.sql_name);
                return Err(SqlError::unsupported(what).with_hint(hint));
            }
        }
        Ok(())
    }
}

/// Converts the refusal of a change to an error for clients.
pub(crate) fn cluster_error(error: &cluster_model::Error) -> SqlError {
    let told = SqlError::new(error.condition(), error.to_string());
    match error.hint() {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}

/// Converts a control plane's error to one for clients.
fn control_plane_error(error: &ControlPlaneError) -> SqlError {
    match error {
        ControlPlaneError::Refused(error) => cluster_error(error),
        ControlPlaneError::Store { source, .. } => {
            SqlError::new(error.condition(), error.to_string()).with_detail(source.to_string())
        }
        ControlPlaneError::ExternalStore(source) => {
            let why = std::iter::successors(Some(&**source as &dyn std::error::Error), |error| error.source()).last();
            let told = SqlError::new(error.condition(), error.to_string());
            told.with_detail(why.map_or_else(|| source.to_string(), ToString::to_string))
        }
        ControlPlaneError::DamagedState(_) => SqlError::new(error.condition(), error.to_string()),
    }
}
