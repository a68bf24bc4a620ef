//! Catalog objects as SQL text: quoted names, and definitions of constraints and indexes, in the wording of
//! PostgreSQL's `ruleutils`.

use catalog::{CatalogState, Constraint, ConstraintKind, KeyOrder, Table};
use types::ColumnId;

use super::pg_catalog::access_methods_and_operators;
use super::row_source::{self, KeyOrIndex, Relation, VisibleRelations};

/// Quotes an identifier where PostgreSQL's `quote_ident` would.
pub fn quote_ident(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && !syntax::keyword::is_reserved(name);
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Quotes a string as `'text'`, or as `E'text'` if it contains a backslash.
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

/// Returns `schema.name`, both quoted where necessary.
pub(super) fn qualified_name(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_ident(schema), quote_ident(name))
}

/// Returns a relation's name as `regclass` prints it: qualified only if the search path does not find it.
pub(super) fn relation_name(relations: VisibleRelations<'_>, relation: &Relation<'_>) -> String {
    if is_visible(relations, relation) {
        quote_ident(relation.name)
    } else {
        qualified_name(row_source::schema_name(relations.state(), relation.schema), relation.name)
    }
}

/// Whether the search path, preceded by `pg_catalog`, finds this relation by its unqualified name.
pub(super) fn is_visible(relations: VisibleRelations<'_>, relation: &Relation<'_>) -> bool {
    let found = relations.context.search_path().into_iter().find_map(|schema| relations.find(&schema, relation.name));
    found.is_some_and(|found| found.oid == relation.oid)
}

/// Implements `pg_get_constraintdef`; a foreign key that is not enforced is marked NOT ENFORCED.
pub(super) fn constraint_definition(relations: VisibleRelations<'_>, table: &Table, constraint: &Constraint) -> String {
    match &constraint.kind {
        ConstraintKind::PrimaryKey { columns } => format!("PRIMARY KEY ({})", column_list(table, columns)),
        ConstraintKind::Unique { columns } => format!("UNIQUE ({})", column_list(table, columns)),
        ConstraintKind::Check { expression, .. } => format!("CHECK (({}))", strip_parentheses(expression)),
        ConstraintKind::ForeignKey { columns, references, referenced, on_update, on_delete, delete_columns } => {
            let target = relations.state().table(*references);
            let name = relations.find_by_oid(*references).map(|relation| relation_name(relations, &relation));
            let mut text = format!(
                "FOREIGN KEY ({}) REFERENCES {}({})",
                column_list(table, columns),
                name.unwrap_or_default(),
                target.map(|target| column_list(target, referenced)).unwrap_or_default(),
            );
            for (event, action) in [("UPDATE", on_update), ("DELETE", on_delete)] {
                if let Some(words) = action_keywords(action_code(*action)) {
                    text.push_str(&format!(" ON {event} {words}"));
                }
            }
            if !delete_columns.is_empty() {
                text.push_str(&format!(" ({})", column_list(table, delete_columns)));
            }
            if !constraint.enforced {
                text.push_str(" NOT ENFORCED");
            }
            text
        }
    }
}

/// Returns the code of a referential action in `pg_constraint`.
pub(super) fn action_code(action: catalog::ReferentialAction) -> &'static str {
    use catalog::ReferentialAction as Action;
    match action {
        Action::NoAction => "a",
        Action::Restrict => "r",
        Action::Cascade => "c",
        Action::SetNull => "n",
        Action::SetDefault => "d",
    }
}

/// Returns the words after ON UPDATE or ON DELETE; `None` for NO ACTION, which is not displayed.
pub(super) fn action_keywords(code: &str) -> Option<&'static str> {
    match code {
        "r" => Some("RESTRICT"),
        "c" => Some("CASCADE"),
        "n" => Some("SET NULL"),
        "d" => Some("SET DEFAULT"),
        _ => None,
    }
}

/// Implements `pg_get_indexdef`; a `column` above 0 requests only the name of that column, from 1.
pub(super) fn index_definition(state: &CatalogState, key: KeyOrIndex<'_>, column: usize) -> String {
    let names: Vec<String> = row_source::column_names(key.table, &key.all_columns().collect::<Vec<_>>())
        .into_iter()
        .map(quote_ident)
        .collect();
    if column > 0 {
        return names.get(column - 1).cloned().unwrap_or_default();
    }
    let (columns, included) = names.split_at(key.columns.len().min(names.len()));
    let columns: Vec<String> =
        columns.iter().zip(key.key_orders()).map(|(name, order)| index_column_definition(name, &order)).collect();
    let schema = match key.table.temporary {
        Some(_) => "pg_temp",
        None => row_source::schema_name(state, key.table.schema),
    };
    let mut text = format!(
        "CREATE {}INDEX {} ON {} USING {} ({})",
        if key.unique { "UNIQUE " } else { "" },
        quote_ident(key.name),
        qualified_name(schema, &key.table.name),
        if key.enforced {
            access_methods_and_operators::BTREE_ACCESS_METHOD
        } else {
            access_methods_and_operators::UNENFORCED_ACCESS_METHOD
        },
        columns.join(", ")
    );
    if !included.is_empty() {
        text.push_str(&format!(" INCLUDE ({})", included.join(", ")));
    }
    let options = key.index.map_or(&[][..], |index| index.options.as_slice());
    let options: Vec<String> = options
        .iter()
        .filter_map(|option| option.split_once('='))
        .map(|(name, value)| {
            let value = if quote_ident(value) == value { value.to_owned() } else { quote_literal(value) };
            format!("{name}={value}")
        })
        .collect();
    if !options.is_empty() {
        text.push_str(&format!(" WITH ({})", options.join(", ")));
    }
    text
}

/// Formats an index column with its collation, operator class and order where they differ from the defaults.
fn index_column_definition(name: &str, order: &KeyOrder) -> String {
    let mut text = name.to_owned();
    if let Some(collation) = &order.collation {
        text.push_str(&format!(" COLLATE {}", quote_ident(collation)));
    }
    if let Some(operators) = &order.operators {
        text.push_str(&format!(" {operators}"));
    }
    text.push_str(match (order.descending, order.nulls_first) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, true) => " DESC",
        (true, false) => " DESC NULLS LAST",
    });
    text
}

fn column_list(table: &Table, columns: &[ColumnId]) -> String {
    let names: Vec<String> = row_source::column_names(table, columns).into_iter().map(quote_ident).collect();
    names.join(", ")
}

/// Removes the parentheses that enclose an entire expression.
fn strip_parentheses(expression: &str) -> &str {
    let text = expression.trim();
    let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) else { return text };
    let mut depth = 0_i32;
    for c in inner.chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        if depth < 0 {
            return text;
        }
    }
    inner.trim()
}
