//! Statements about clusters: resolves the roles; everything else is checked by the cluster service, which knows the
//! clusters.

use binder::ClusterCommand;
use cluster_model::{Change, Grantee, RoleRef};
use session_context::StatementContext;
use syntax::statement::{AlterClusterAction, ClusterStatement, GranteeSpec, RoleSpec};
use types::SqlResult;

use super::name_resolution;

/// Converts a cluster statement into changes.
///
/// # Errors
/// `42704` for an unknown role, `42501` for an owner that the statement's role may not choose.
pub fn cluster(context: &StatementContext, statement: &ClusterStatement) -> SqlResult<ClusterCommand> {
    let (changes, tag) = match statement.clone() {
        ClusterStatement::Use(name) => return Ok(ClusterCommand::Use(name)),
        ClusterStatement::Create { name, options, if_exists } => {
            (vec![Change::Create { name, options, if_exists }], "CREATE CLUSTER")
        }
        ClusterStatement::Alter { name, action } => {
            let change = match action {
                AlterClusterAction::Set(options) => Change::Alter { name, options },
                AlterClusterAction::RenameTo(to) => Change::Rename { name, to },
                AlterClusterAction::OwnerTo(role) => {
                    let owner = name_resolution::resolve_new_owner(context, &role)?;
                    Change::SetOwner { name, owner: RoleRef { oid: owner.oid, name: owner.name.clone() } }
                }
                AlterClusterAction::Suspend => Change::Suspend { name },
                AlterClusterAction::Resume => Change::Resume { name },
            };
            (vec![change], "ALTER CLUSTER")
        }
        ClusterStatement::Drop { names, if_exists } => {
            let mut unique: Vec<String> = Vec::new();
            for name in names {
                if !unique.contains(&name) {
                    unique.push(name);
                }
            }
            (unique.into_iter().map(|name| Change::Drop { name, if_exists }).collect(), "DROP CLUSTER")
        }
        ClusterStatement::Grant { privileges, clusters, to, revoke } => {
            let roles = to.iter().map(|role| grantee(context, role)).collect::<SqlResult<_>>()?;
            if revoke {
                (vec![Change::Revoke { clusters, privileges, from: roles }], "REVOKE")
            } else {
                (vec![Change::Grant { clusters, privileges, to: roles }], "GRANT")
            }
        }
        ClusterStatement::SetDefault { role, clusters } => {
            (vec![Change::SetDefaultClusters { role: role_ref(context, &role)?, clusters }], "ALTER ROLE")
        }
    };
    Ok(ClusterCommand::Change { changes, tag })
}

fn grantee(context: &StatementContext, named: &GranteeSpec) -> SqlResult<Grantee> {
    match named {
        GranteeSpec::Public => Ok(Grantee::Public),
        GranteeSpec::Role(role) => role_ref(context, role).map(Grantee::Role),
    }
}

fn role_ref(context: &StatementContext, named: &RoleSpec) -> SqlResult<RoleRef> {
    let role = name_resolution::resolve_role(context, named)?;
    Ok(RoleRef { oid: role.oid, name: role.name.clone() })
}
