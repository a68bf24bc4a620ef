//! Statements about clusters: CREATE, ALTER and DROP CLUSTER, privileges, USE CLUSTER and a role's default cluster.

mod options;

#[cfg(test)]
mod tests;

use cluster_model::{ClusterOptions, IfExists, Privilege};
use types::SqlResult;

use super::lex::Token;
use super::role::RoleSpec;
use super::statement::Statement;
use super::token_cursor::Cursor;

/// Statement about clusters, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterStatement {
    /// `CREATE CLUSTER name (options)`.
    Create { name: String, options: ClusterOptions, if_exists: IfExists },
    /// `ALTER CLUSTER name …`.
    Alter { name: String, action: AlterClusterAction },
    /// `DROP CLUSTER names`.
    Drop { names: Vec<String>, if_exists: bool },
    /// `USE CLUSTER name`; `None` is DEFAULT.
    Use(Option<String>),
    /// `GRANT … ON CLUSTER … TO …`, or REVOKE … FROM.
    Grant { privileges: Vec<Privilege>, clusters: Vec<String>, to: Vec<GranteeSpec>, revoke: bool },
    /// `ALTER ROLE role SET DEFAULT_CLUSTER`; an empty list is DEFAULT or RESET.
    SetDefault { role: RoleSpec, clusters: Vec<String> },
}

/// Action of ALTER CLUSTER.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterClusterAction {
    Set(ClusterOptions),
    RenameTo(String),
    OwnerTo(RoleSpec),
    Suspend,
    Resume,
}

/// Grantee of GRANT and REVOKE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GranteeSpec {
    Public,
    Role(RoleSpec),
}

impl Cursor<'_> {
    /// Parses CREATE CLUSTER, after CREATE.
    pub(super) fn create_cluster(&mut self, or_replace: bool) -> SqlResult<Statement> {
        self.expect("cluster")?;
        let if_not_exists = !or_replace && self.eat("if not exists");
        let name = self.cluster_name()?;
        let with = self.eat("with");
        let options = if with || self.is_symbol('(') { self.cluster_options()? } else { ClusterOptions::default() };
        let if_exists = match (or_replace, if_not_exists) {
            (true, _) => IfExists::Replace,
            (false, true) => IfExists::Keep,
            (false, false) => IfExists::Refuse,
        };
        Ok(cluster_statement(ClusterStatement::Create { name, options, if_exists }))
    }

    /// Parses ALTER CLUSTER, after ALTER.
    pub(super) fn alter_cluster(&mut self) -> SqlResult<Statement> {
        self.expect("cluster")?;
        let name = self.cluster_name()?;
        let action = if self.eat("set") {
            AlterClusterAction::Set(self.cluster_options()?)
        } else if self.eat("rename to") {
            AlterClusterAction::RenameTo(self.cluster_name()?)
        } else if self.eat("owner to") {
            AlterClusterAction::OwnerTo(self.role_spec()?)
        } else if self.eat("suspend") {
            AlterClusterAction::Suspend
        } else {
            self.expect("resume")?;
            AlterClusterAction::Resume
        };
        Ok(cluster_statement(ClusterStatement::Alter { name, action }))
    }

    /// Parses DROP CLUSTER, after DROP.
    pub(super) fn drop_cluster(&mut self) -> SqlResult<Statement> {
        self.expect("cluster")?;
        let if_exists = self.eat("if exists");
        let names = self.list(Self::cluster_name)?;
        Ok(cluster_statement(ClusterStatement::Drop { names, if_exists }))
    }

    /// Parses USE CLUSTER; the unquoted word DEFAULT is not a name here.
    pub(super) fn use_cluster(&mut self) -> SqlResult<Statement> {
        self.expect("use cluster")?;
        let name = if self.eat("default") { None } else { Some(self.cluster_name()?) };
        Ok(cluster_statement(ClusterStatement::Use(name)))
    }

    /// Parses GRANT and REVOKE of privileges on clusters; `0A000` for privileges on other objects, which Kiln does not
    /// have.
    pub(super) fn grant(&mut self) -> SqlResult<Statement> {
        let start = self.next_index;
        let revoke = self.eat("revoke");
        if !revoke {
            self.expect("grant")?;
        }
        let word = if revoke { "REVOKE" } else { "GRANT" };
        let Some(privileges) = self.cluster_privileges() else {
            self.next_index = start;
            return Err(self.unsupported(word));
        };
        let clusters = self.list(Self::cluster_name)?;
        self.expect(if revoke { "from" } else { "to" })?;
        let to = self.list(Self::grantee)?;
        if self.next_is("with") || self.next_is("granted by") {
            return Err(self.unsupported("WITH GRANT OPTION and GRANTED BY"));
        }
        if revoke {
            self.cascade();
        }
        Ok(cluster_statement(ClusterStatement::Grant { privileges, clusters, to, revoke }))
    }

    /// Parses `SET` or `RESET DEFAULT_CLUSTER` of ALTER ROLE; `None`, with nothing consumed, for another setting.
    pub(super) fn default_cluster(&mut self, role: &RoleSpec) -> SqlResult<Option<Statement>> {
        let clusters = if self.eat("reset default_cluster") {
            Vec::new()
        } else if self.eat("set default_cluster") {
            if !self.eat_operator("=") {
                self.eat("to");
            }
            self.default_clusters()?
        } else {
            return Ok(None);
        };
        Ok(Some(cluster_statement(ClusterStatement::SetDefault { role: role.clone(), clusters })))
    }

    /// Parses `USAGE, OPERATE ON CLUSTER` or `ALL [PRIVILEGES] ON CLUSTER`; `None` for other privileges.
    fn cluster_privileges(&mut self) -> Option<Vec<Privilege>> {
        let mut privileges = Vec::new();
        if self.eat("all") {
            self.eat("privileges");
            privileges.extend([Privilege::Usage, Privilege::Operate]);
        } else {
            loop {
                privileges.push(match self.eat_one_of(&["usage", "operate"])? {
                    "usage" => Privilege::Usage,
                    _ => Privilege::Operate,
                });
                if !self.eat_symbol(',') {
                    break;
                }
            }
        }
        self.eat("on cluster").then_some(privileges)
    }

    fn grantee(&mut self) -> SqlResult<GranteeSpec> {
        if self.eat("public") {
            return Ok(GranteeSpec::Public);
        }
        self.eat("group");
        self.role_spec().map(GranteeSpec::Role)
    }

    /// Parses cluster names, or string constants with names separated by commas; empty for DEFAULT.
    fn default_clusters(&mut self) -> SqlResult<Vec<String>> {
        if self.next_is("default") && matches!(self.peek_at(1), Token::End | Token::Symbol(';')) {
            self.advance();
            return Ok(Vec::new());
        }
        let parts = self.list(|cursor| match cursor.peek() {
            Token::Text(_) => {
                let text = cursor.text()?;
                if text.trim().is_empty() {
                    return Ok(Vec::new());
                }
                Ok(text.split(',').map(|name| name.trim().to_owned()).collect())
            }
            _ => cursor.cluster_name().map(|name| vec![name]),
        })?;
        Ok(parts.concat())
    }

    /// Parses a cluster name, with or without quotes, or a string constant. The cluster `default` needs no quotes.
    pub(super) fn cluster_name(&mut self) -> SqlResult<String> {
        match self.peek() {
            Token::Text(_) => self.text(),
            Token::Word(word) if word == "default" => {
                self.advance();
                Ok(word.clone())
            }
            _ => self.name().map(|name| name.value),
        }
    }
}

fn cluster_statement(statement: ClusterStatement) -> Statement {
    Statement::Cluster(Box::new(statement))
}
