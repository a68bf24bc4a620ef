//! Changes of grants, default clusters of roles, and dropped roles.

use types::Oid;

use super::Transition;
use crate::cluster_events::{ClusterEvent, EventKind};
use crate::desired_state::{Author, ClusterId, ClusterState, Error, Grant, Grantee, Privilege, Result, RoleRef};

impl Transition<'_> {
    /// Grants privileges if `give` is true, otherwise revokes them.
    pub(super) fn grant(
        &mut self,
        names: &[String],
        privileges: &[Privilege],
        roles: &[Grantee],
        give: bool,
    ) -> Result<()> {
        for name in names {
            let cluster = self.state.cluster_named(name)?;
            cluster.require_owner(self.author)?;
            let id = cluster.id;
            let mut grants = cluster.grants.clone();
            for grantee in roles {
                let wanted = privileges.iter().map(|&privilege| Grant { role: grantee.oid(), privilege });
                if give {
                    grants.extend(wanted);
                } else {
                    let taken: Vec<Grant> = wanted.collect();
                    grants.retain(|grant| !taken.contains(grant));
                }
            }
            if grants == cluster.grants {
                continue;
            }
            self.mark_changed(id).grants = grants;
            let (kind, word) = if give { (EventKind::Granted, "to") } else { (EventKind::Revoked, "from") };
            self.record(id, kind, format!("{} {word} {}", comma_separated(privileges), comma_separated(roles)));
        }
        Ok(())
    }

    pub(super) fn set_default_clusters(&mut self, role: &RoleRef, names: &[String]) -> Result<()> {
        if let Author::Role(actor) = self.author
            && !(actor.superuser || actor.create_role || actor.role.oid == role.oid)
        {
            return Err(Error::NoAlterRolePrivilege { role: role.name.clone() });
        }
        let mut clusters = Vec::new();
        for name in names {
            let id = self.state.cluster_named(name)?.id;
            if !clusters.contains(&id) {
                clusters.push(id);
            }
        }
        let before = self.state.default_clusters.get(&role.oid).map_or(&[][..], Vec::as_slice);
        if before == clusters {
            return Ok(());
        }
        if clusters.is_empty() {
            self.state.default_clusters.remove(&role.oid);
        } else {
            self.state.default_clusters.insert(role.oid, clusters);
        }
        let detail = format!(
            "role {}: {}",
            role.name,
            if names.is_empty() { "none".to_owned() } else { comma_separated(names) }
        );
        self.record_role_event(EventKind::DefaultClustersSet, detail);
        Ok(())
    }

    pub(super) fn forget_role(&mut self, role: Oid) -> Result<()> {
        let owned = self.state.clusters.values().filter(|cluster| cluster.spec.owner == role);
        let clusters: Vec<String> = owned.map(|cluster| cluster.spec.name.clone()).collect();
        if !clusters.is_empty() {
            return Err(Error::OwnsClusters { role, clusters });
        }
        let had_list = self.state.default_clusters.remove(&role).is_some();
        let holds = |cluster: &ClusterState| cluster.grants.iter().any(|grant| grant.role == Some(role));
        let granted: Vec<ClusterId> =
            self.state.clusters.values().filter(|cluster| holds(cluster)).map(|cluster| cluster.id).collect();
        for id in &granted {
            self.mark_changed(*id).grants.retain(|grant| grant.role != Some(role));
        }
        if had_list || !granted.is_empty() {
            self.record_role_event(EventKind::RoleForgotten, format!("role with id {role}"));
        }
        Ok(())
    }

    /// Records an event that concerns no single cluster.
    fn record_role_event(&mut self, kind: EventKind, detail: String) {
        let author = self.author.name().map(str::to_owned);
        self.events.push(ClusterEvent { at: self.at, cluster: None, author, kind, detail });
    }
}

fn comma_separated<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    items.join(", ")
}
