//! FOR UPDATE, FOR NO KEY UPDATE, FOR SHARE and FOR KEY SHARE.
//!
//! `sqlparser`'s lock clause has no fields for two of the modes or for several relations: here its relation name is the
//! mode, followed by at most one relation.

use sqlparser::ast::{Ident, LockClause, LockType, NonBlock, ObjectName};
use types::{LockMode, LockWait, SqlError, SqlResult};

use super::Cursor;

/// Lock of one relation, or of all relations of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedRelation {
    pub mode: LockMode,
    pub wait: LockWait,
    /// `OF relation`; `None` locks all relations.
    pub name: Option<String>,
}

const LOCK_MODES: [(&str, LockMode); 4] = [
    ("update", LockMode::Update),
    ("no key update", LockMode::NoKeyUpdate),
    ("share", LockMode::Share),
    ("key share", LockMode::KeyShare),
];

/// Returns the keywords of a lock mode: `FOR NO KEY UPDATE`.
#[must_use]
pub fn lock_mode_keywords(mode: LockMode) -> String {
    let found = LOCK_MODES.iter().find(|(_, known)| *known == mode);
    format!("FOR {}", found.map_or("UPDATE", |(words, _)| words).to_uppercase())
}

impl LockedRelation {
    /// Reads a lock clause that this parser made.
    ///
    /// # Errors
    /// `XX000` for a clause from another parser.
    pub fn from_lock_clause(clause: &LockClause) -> SqlResult<Self> {
        let parts = clause.of.iter().flat_map(|name| &name.0).filter_map(|part| part.as_ident());
        let parts: Vec<&str> = parts.map(|part| part.value.as_str()).collect();
        let mode = parts.first().and_then(|word| LOCK_MODES.iter().find(|(words, _)| words == word));
        let Some((_, mode)) = mode else {
            return Err(SqlError::internal("the syntax tree of a FOR UPDATE or FOR SHARE clause has no lock mode"));
        };
        let wait = match clause.nonblock {
            None => LockWait::Block,
            Some(NonBlock::Nowait) => LockWait::NoWait,
            Some(NonBlock::SkipLocked) => LockWait::SkipLocked,
        };
        Ok(Self { mode: *mode, wait, name: parts.get(1).map(|name| (*name).to_owned()) })
    }
}

impl Cursor<'_> {
    /// Parses the lock clauses that come next; FOR READ ONLY clears them.
    pub(super) fn lock_clauses(&mut self) -> SqlResult<Vec<LockClause>> {
        let mut clauses = Vec::new();
        while self.next_is("for") && !self.next_is("for read only") {
            self.advance();
            let Some((words, mode)) = LOCK_MODES.iter().find(|(words, _)| self.eat(words)) else {
                return Err(self.syntax_error());
            };
            let relations = if self.eat("of") { self.list(Self::locked_relation)? } else { Vec::new() };
            let nonblock = if self.eat("nowait") {
                Some(NonBlock::Nowait)
            } else if self.eat("skip locked") {
                Some(NonBlock::SkipLocked)
            } else {
                None
            };
            let lock_type = if *mode < LockMode::NoKeyUpdate { LockType::Share } else { LockType::Update };
            let clause = |relation: Option<Ident>| {
                let parts = std::iter::once(Ident::new(*words)).chain(relation);
                LockClause { lock_type, of: Some(ObjectName::from(parts.collect::<Vec<_>>())), nonblock }
            };
            if relations.is_empty() {
                clauses.push(clause(None));
            }
            clauses.extend(relations.into_iter().map(|relation| clause(Some(relation))));
        }
        if self.eat("for read only") {
            clauses.clear();
        }
        Ok(clauses)
    }

    fn locked_relation(&mut self) -> SqlResult<Ident> {
        let name = self.name()?;
        if self.is_symbol('.') {
            let error = "row locks must specify unqualified relation names";
            return Err(self.with_next_position(SqlError::new(types::Condition::SyntaxError, error)));
        }
        Ok(name)
    }
}
