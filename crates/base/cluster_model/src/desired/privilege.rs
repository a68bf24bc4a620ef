//! Who asks, and what they may do with a cluster.

use std::fmt;

use serde::{Deserialize, Serialize};
use types::Oid;

use super::{ClusterState, DEFAULT, DesiredState, Error, Result};

/// What can be granted on a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// Run statements on it.
    Usage,
    /// Suspend and resume it.
    Operate,
}

/// A role, by its identity and the name that it has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleRef {
    pub oid: Oid,
    pub name: String,
}

/// A role that asks for something, with what the catalog says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub role: RoleRef,
    pub superuser: bool,
    /// It may make clusters.
    pub create_cluster: bool,
    /// It may say which clusters another role's statements run on.
    pub create_role: bool,
}

/// Who makes a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Author {
    Role(Actor),
    /// The instance itself: it suspends what is idle and wakes what is needed.
    Instance,
}

/// Whom a privilege is granted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grantee {
    Public,
    Role(RoleRef),
}

/// A privilege that somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Grant {
    /// Everybody where `None`.
    pub role: Option<Oid>,
    pub privilege: Privilege,
}

impl Author {
    /// The name for the record; `None` is the instance itself.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Role(actor) => Some(&actor.role.name),
            Self::Instance => None,
        }
    }
}

impl Grantee {
    pub(super) fn oid(&self) -> Option<Oid> {
        match self {
            Self::Public => None,
            Self::Role(role) => Some(role.oid),
        }
    }
}

impl ClusterState {
    /// Whether the role may do with the cluster what `privilege` allows: it is a superuser, its owner, or was granted it. The cluster
    /// `default` can be used by all.
    #[must_use]
    pub fn allows(&self, actor: &Actor, privilege: Privilege) -> bool {
        let has = |role| self.grants.contains(&Grant { role, privilege });
        self.is_owned_by(actor)
            || (privilege == Privilege::Usage && self.is_default())
            || has(None)
            || has(Some(actor.role.oid))
    }

    pub(super) fn require_owner(&self, author: &Author) -> Result<()> {
        match author {
            Author::Role(actor) if !self.is_owned_by(actor) => Err(Error::NotOwner { name: self.spec.name.clone() }),
            Author::Role(_) | Author::Instance => Ok(()),
        }
    }

    pub(super) fn require(&self, author: &Author, privilege: Privilege) -> Result<()> {
        match author {
            Author::Role(actor) if !self.allows(actor, privilege) => {
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
    /// The clusters that a role's statements may run on, the preferred first: the one that its session has chosen with USE CLUSTER, or
    /// those of its list that it may use, or `default` where it has no list.
    ///
    /// # Errors
    /// [`Error::UndefinedCluster`] or [`Error::NoPrivilege`] for the one that was chosen; the latter where it may use none of its list.
    pub fn usable(&self, actor: &Actor, chosen: Option<&str>) -> Result<Vec<&ClusterState>> {
        let require = |cluster: &ClusterState| {
            if cluster.allows(actor, Privilege::Usage) {
                return Ok(());
            }
            Err(Error::NoPrivilege { name: cluster.spec.name.clone() })
        };
        if let Some(name) = chosen {
            let cluster = self.named(name)?;
            require(cluster)?;
            return Ok(vec![cluster]);
        }
        let listed: Vec<&ClusterState> = self.default_clusters(actor.role.oid).collect();
        let Some(first) = listed.first() else {
            return Ok(vec![self.named(DEFAULT).expect("the cluster that every instance has is never dropped")]);
        };
        let first = require(first);
        let usable: Vec<&ClusterState> =
            listed.into_iter().filter(|cluster| cluster.allows(actor, Privilege::Usage)).collect();
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
