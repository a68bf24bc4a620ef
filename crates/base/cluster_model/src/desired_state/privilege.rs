//! Privileges on clusters, and the roles that have them.

use std::fmt;

use serde::{Deserialize, Serialize};
use types::Oid;

use super::{ClusterState, DEFAULT_CLUSTER_NAME, DesiredState, Error, Result};

/// Privilege that can be granted on a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// Run statements on it.
    Usage,
    /// Suspend and resume it.
    Operate,
}

/// Reference to a role: its oid and its present name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRef {
    pub oid: Oid,
    pub name: String,
}

/// Role on whose behalf a request is made, with its attributes from the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub role: RoleRef,
    pub superuser: bool,
    /// True if it may create clusters.
    pub create_cluster: bool,
    /// True if it may set the default clusters of other roles.
    pub create_role: bool,
}

/// Author of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    Role(Actor),
    /// The instance itself, for example when it suspends an idle cluster.
    Instance,
}

/// Recipient of a privilege.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grantee {
    Public,
    Role(RoleRef),
}

/// Privilege granted to a role or to PUBLIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// Role; `None` for PUBLIC.
    pub role: Option<Oid>,
    pub privilege: Privilege,
}

impl Author {
    /// Returns the name for the history; `None` for the instance itself.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Role(actor) => Some(&actor.role.name),
            Self::Instance => None,
        }
    }
}

impl Grantee {
    /// Returns the role's oid; `None` for PUBLIC.
    pub(super) fn oid(&self) -> Option<Oid> {
        match self {
            Self::Public => None,
            Self::Role(role) => Some(role.oid),
        }
    }
}

impl ClusterState {
    /// Whether the role has a privilege on the cluster: as a superuser, as its owner, or by a grant. All roles have
    /// USAGE on the cluster `default`.
    #[must_use]
    pub fn has_privilege(&self, actor: &Actor, privilege: Privilege) -> bool {
        let has = |role| self.grants.contains(&Grant { role, privilege });
        self.is_owned_by(actor)
            || (privilege == Privilege::Usage && self.is_default())
            || has(None)
            || has(Some(actor.role.oid))
    }

    /// Fails unless the author owns the cluster or is a superuser or the instance.
    pub(super) fn require_owner(&self, author: &Author) -> Result<()> {
        match author {
            Author::Role(actor) if !self.is_owned_by(actor) => Err(Error::NotOwner { name: self.spec.name.clone() }),
            Author::Role(_) | Author::Instance => Ok(()),
        }
    }

    /// Fails unless the author has the privilege or is the instance.
    pub(super) fn require_privilege(&self, author: &Author, privilege: Privilege) -> Result<()> {
        match author {
            Author::Role(actor) if !self.has_privilege(actor, privilege) => {
                Err(Error::NoPrivilege { name: self.spec.name.clone() })
            }
            Author::Role(_) | Author::Instance => Ok(()),
        }
    }

    fn is_owned_by(&self, actor: &Actor) -> bool {
        actor.superuser || self.spec.owner == actor.role.oid
    }
}

impl DesiredState {
    /// Returns the clusters that a role's statements may run on, in order of preference: the one that its session has
    /// chosen with USE CLUSTER, otherwise those of its default clusters that it may use, otherwise `default`.
    ///
    /// # Errors
    /// [`Error::UndefinedCluster`] or [`Error::NoPrivilege`] for the chosen cluster; [`Error::NoPrivilege`] if the role
    /// may use none of its default clusters.
    pub fn usable_clusters(&self, actor: &Actor, chosen: Option<&str>) -> Result<Vec<&ClusterState>> {
        let require = |cluster: &ClusterState| {
            if cluster.has_privilege(actor, Privilege::Usage) {
                return Ok(());
            }
            Err(Error::NoPrivilege { name: cluster.spec.name.clone() })
        };
        if let Some(name) = chosen {
            let cluster = self.cluster_named(name)?;
            require(cluster)?;
            return Ok(vec![cluster]);
        }
        let listed: Vec<&ClusterState> = self.default_clusters(actor.role.oid).collect();
        let Some(first) = listed.first() else {
            return Ok(vec![
                self.cluster_named(DEFAULT_CLUSTER_NAME).expect("the cluster \"default\" is never dropped"),
            ]);
        };
        let first = require(first);
        let usable: Vec<&ClusterState> =
            listed.into_iter().filter(|cluster| cluster.has_privilege(actor, Privilege::Usage)).collect();
        if usable.is_empty() {
            first?;
        }
        Ok(usable)
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Usage => "USAGE",
            Self::Operate => "OPERATE",
        })
    }
}

impl fmt::Display for Grantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => f.write_str("PUBLIC"),
            Self::Role(role) => f.write_str(&role.name),
        }
    }
}
