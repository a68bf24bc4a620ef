//! Lookup of relations by names in text: `name`, `schema.name`, `database.schema.name`.

use types::{Condition, SqlError, SqlResult};

use super::row_source::{Relation, VisibleRelations};

/// Splits `a."B".c` into its parts, folded to lower case unless quoted; `42602` for invalid syntax.
pub(crate) fn parse_name(text: &str) -> SqlResult<Vec<String>> {
    let invalid = || SqlError::new(Condition::InvalidName, "invalid name syntax");
    let mut parts = Vec::new();
    let mut remaining = text.trim();
    loop {
        let (part, after) = if let Some(quoted) = remaining.strip_prefix('"') {
            let mut part = String::new();
            let mut from = quoted;
            loop {
                let end = from.find('"').ok_or_else(invalid)?;
                part.push_str(&from[..end]);
                from = &from[end + 1..];
                match from.strip_prefix('"') {
                    Some(after) => {
                        part.push('"');
                        from = after;
                    }
                    None => break (part, from),
                }
            }
        } else {
            let end = remaining.find(|c: char| c == '.' || c.is_whitespace() || c == '"').unwrap_or(remaining.len());
            (remaining[..end].to_lowercase(), &remaining[end..])
        };
        if part.is_empty() {
            return Err(invalid());
        }
        parts.push(part);
        let after = after.trim_start();
        match after.strip_prefix('.') {
            Some(after) => remaining = after.trim_start(),
            None if after.is_empty() => return Ok(parts),
            None => return Err(invalid()),
        }
    }
}

/// Returns the relation that a name refers to; `42P01` if there is none.
pub(crate) fn resolve_relation<'a>(relations: VisibleRelations<'a>, text: &str) -> SqlResult<Relation<'a>> {
    let parts = parse_name(text)?;
    let context = relations.context;
    let found = match parts.as_slice() {
        [name] => context.search_path().iter().find_map(|schema| relations.find(schema, name)),
        [schema, name] => relations.find(&context.schema_name(schema), name),
        [database, schema, name] if *database == context.database => relations.find(&context.schema_name(schema), name),
        _ => None,
    };
    found.ok_or_else(|| {
        SqlError::new(Condition::UndefinedTable, format!("relation \"{}\" does not exist", parts.join(".")))
    })
}
