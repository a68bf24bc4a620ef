//! Outcomes of transactions that clients have given a token.

use super::super::row_builder::{RowBuilder, row};
use super::super::row_source::RowSource;
use super::super::table_definition::TableDefinition;
use super::view;

pub(super) const TABLES: &[TableDefinition] = &[view(
    15_010,
    "statement_outcome",
    "A transaction that a client gave a token: own ones, and all for superusers.",
    &[
        ("token text", "Token (`kiln.statement_token`)."),
        ("role_name name", "Role that logged in."),
        ("outcome text", "Outcome: `committed` or `in progress`."),
        ("command_tag text", "Command tag of the last statement that wrote."),
        ("rows int8", "Rows that all its statements wrote."),
        ("statements int4", "Statements that wrote."),
        ("committed_at timestamptz", "Time of the commit."),
        ("commit int8", "Number of the commit, for AS OF SNAPSHOT."),
    ],
    outcomes,
)];

/// Adds the outcomes of the role's own transactions; a superuser sees those of all roles.
fn outcomes(source: &RowSource<'_>, rows: &mut RowBuilder) {
    let context = source.context;
    let role = (!context.role.superuser).then_some(context.session_role.oid);
    let known = match context.time_travel.statement_outcomes(role, source.restriction.text()) {
        Ok(known) => known,
        Err(error) => return rows.fail(error),
    };
    for outcome in known {
        let role = source.role_name(outcome.role);
        match outcome.committed {
            Some(committed) => {
                row!(rows, token: outcome.token, role_name: role, outcome: "committed", command_tag: committed.command_tag,
                    rows: committed.rows, statements: committed.statements, committed_at: committed.at_us,
                    commit: committed.commit.0);
            }
            None => row!(rows, token: outcome.token, role_name: role, outcome: "in progress"),
        }
    }
}
