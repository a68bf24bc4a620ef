use catalog::{Constraint, Role, Schema, View};
use types::{ColumnId, SqlType};

use super::*;
use crate::fixtures::{load, put, table};

/// Builds the common initial state: the schema s (50) and the tables t (100), with a shard, and u (101).
fn base() -> CatalogState {
    let schema = Schema { oid: Oid(50), name: "s".to_owned(), owner: Role::BOOTSTRAP, comment: None };
    after(
        &CatalogState::new_warehouse(),
        &[Change::PutSchema(Arc::new(schema)), put(table(100, "t")), load(100, &[1]), put(table(101, "u"))],
    )
}

fn after(state: &CatalogState, changes: &[Change]) -> CatalogState {
    changes.iter().fold(state.clone(), |state, change| state.apply(change).unwrap())
}

/// Change that a transaction makes, mostly to t.
#[derive(Debug, Clone, Copy)]
enum Does {
    Nothing,
    Loads,
    Truncates,
    /// Removes the rows and adds others.
    Rewrites,
    Drops,
    Comments,
    AddsColumn,
    AddsNotNullColumn,
    /// Adds a column that needs its own value in each existing row.
    AddsVolatileColumn,
    Retypes,
    DropsColumn,
    SetsNotNull,
    AddsCheck,
    /// Creates a view that reads t.
    CreatesView,
    /// Creates a table named v.
    CreatesTable,
    DropsSchema,
    CreatesInSchema,
    /// Creates a table with a foreign key to t.
    RefersTo,
    LoadsOther,
}

use Does::*;

impl Does {
    /// Returns the changes; `second` selects other ids for new objects of the second transaction.
    fn changes(self, base: &CatalogState, second: bool) -> Vec<Change> {
        let number = if second { 2 } else { 1 };
        let altered = |alter: &dyn Fn(&mut Table)| {
            let mut table = Table::clone(base.table(Oid(100)).unwrap());
            alter(&mut table);
            vec![put(table)]
        };
        let with_new_column = |not_null, default: Option<&str>| {
            altered(&|table| {
                let default = default.map(str::to_owned);
                let (id, name) = (ColumnId(3), "c".to_owned());
                let new = catalog::Column { id, name, not_null, default, ..table.columns[0].clone() };
                table.columns.push(new);
                table.next_column = 4;
            })
        };
        match self {
            Nothing => vec![],
            Loads => vec![load(100, &[10 + number])],
            LoadsOther => vec![load(101, &[10 + number])],
            Truncates => vec![Change::RemoveAllRows { table: Oid(100) }],
            Rewrites => vec![Change::RemoveAllRows { table: Oid(100) }, load(100, &[20 + number])],
            Drops => vec![Change::DropTable(Oid(100))],
            Comments => altered(&|table| table.comment = Some(number.to_string())),
            AddsColumn => with_new_column(false, None),
            AddsNotNullColumn => with_new_column(true, None),
            AddsVolatileColumn => with_new_column(false, Some("random()")),
            Retypes => altered(&|table| table.columns[0].sql_type = SqlType::Int8),
            DropsColumn => altered(&|table| drop(table.columns.pop())),
            SetsNotNull => altered(&|table| table.columns[0].not_null = true),
            AddsCheck => altered(&|table| {
                let kind = ConstraintKind::Check { expression: "a > 0".to_owned(), columns: vec![ColumnId(1)] };
                table.constraints.push(Constraint {
                    oid: Oid(70),
                    name: "c".to_owned(),
                    kind,
                    enforced: false,
                    comment: None,
                });
            }),
            CreatesView => vec![Change::PutView(Arc::new(View {
                oid: Oid(200 + number as u32),
                schema: Schema::PUBLIC,
                name: "v".to_owned(),
                owner: Role::BOOTSTRAP,
                columns: vec![("a".to_owned(), SqlType::Int4)],
                definition: "SELECT a FROM t".to_owned(),
                depends_on: vec![Oid(100)],
                columns_used: vec![(Oid(100), ColumnId(1))],
                comment: None,
                column_comments: std::collections::BTreeMap::new(),
            }))],
            CreatesTable => vec![put(table(200 + number as u32, "v"))],
            DropsSchema => vec![Change::DropSchema(Oid(50))],
            CreatesInSchema => vec![put(Table { schema: Oid(50), ..table(200 + number as u32, "w") })],
            RefersTo => {
                let kind = ConstraintKind::ForeignKey {
                    columns: vec![ColumnId(1)],
                    references: Oid(100),
                    referenced: vec![ColumnId(1)],
                    on_update: catalog::ReferentialAction::NoAction,
                    on_delete: catalog::ReferentialAction::NoAction,
                    delete_columns: Vec::new(),
                };
                let constraints =
                    vec![Constraint { oid: Oid(71), name: "f".to_owned(), kind, enforced: false, comment: None }];
                vec![put(Table { constraints, ..table(200 + number as u32, "x") })]
            }
        }
    }
}

/// Returns the outcome of the second transaction's commit after the first's, both with the same snapshot.
fn outcome(first: Does, second: Does) -> &'static str {
    let base = base();
    let now = after(&base, &first.changes(&base, false));
    match rebase(&base, &now, &second.changes(&base, true), |_, _| ()) {
        Ok(_) => "fine",
        Err(conflict) => match conflict.reason {
            ConflictReason::Changed => "changed",
            ConflictReason::Dropped => "dropped",
            ConflictReason::Emptied => "emptied",
            ConflictReason::RowsAdded => "rows added",
            ConflictReason::ReadChanged => "read",
            ConflictReason::Refused(_) => "refused",
        },
    }
}

#[test]
fn the_matrix_of_two_transactions() {
    let matrix = [
        // Loads conflict only with changes that remove the rows or forbid them.
        (Loads, Loads, "fine"),
        (Loads, LoadsOther, "fine"),
        (Truncates, Loads, "emptied"),
        (Rewrites, Loads, "emptied"),
        (Drops, Loads, "dropped"),
        (Comments, Loads, "fine"),
        (AddsColumn, Loads, "fine"),
        (AddsNotNullColumn, Loads, "changed"),
        (AddsVolatileColumn, Loads, "changed"),
        (Retypes, Loads, "changed"),
        (DropsColumn, Loads, "changed"),
        (SetsNotNull, Loads, "changed"),
        (AddsCheck, Loads, "changed"),
        (Drops, LoadsOther, "fine"),
        // Concurrent alterations of a table conflict.
        (Comments, Comments, "changed"),
        (AddsColumn, DropsColumn, "changed"),
        (Drops, Comments, "dropped"),
        (Comments, Drops, "changed"),
        (Drops, Drops, "dropped"),
        (Loads, Drops, "fine"),
        (Truncates, Drops, "fine"),
        // Rows that were added meanwhile were not checked.
        (Loads, Comments, "fine"),
        (Loads, AddsColumn, "fine"),
        (Loads, DropsColumn, "fine"),
        (Loads, SetsNotNull, "rows added"),
        (Loads, Retypes, "rows added"),
        (Loads, AddsNotNullColumn, "rows added"),
        (Loads, AddsVolatileColumn, "rows added"),
        (Loads, AddsCheck, "rows added"),
        (Loads, Truncates, "rows added"),
        (Loads, Rewrites, "rows added"),
        (Rewrites, Rewrites, "emptied"),
        (Truncates, Truncates, "emptied"),
        (Drops, Truncates, "dropped"),
        (AddsColumn, Truncates, "fine"),
        // Names and references.
        (CreatesTable, CreatesTable, "refused"),
        (CreatesView, CreatesTable, "refused"),
        (CreatesTable, CreatesView, "refused"),
        (Drops, CreatesView, "dropped"),
        (DropsColumn, CreatesView, "changed"),
        (Loads, CreatesView, "fine"),
        (CreatesView, Drops, "refused"),
        (CreatesView, Loads, "fine"),
        (RefersTo, Drops, "refused"),
        (Drops, RefersTo, "refused"),
        (DropsSchema, CreatesInSchema, "refused"),
        (CreatesInSchema, DropsSchema, "refused"),
        (DropsSchema, DropsSchema, "dropped"),
        (Nothing, Drops, "fine"),
        (Drops, Nothing, "fine"),
    ];
    for (first, second, expected) in matrix {
        assert_eq!(outcome(first, second), expected, "{second:?} after {first:?}");
    }
}
