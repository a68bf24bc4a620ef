//! Types by OID, and by the many names that SQL has for them.

use types::SqlType;

use super::pg_catalog::{PSEUDO_TYPES, SCHEMA};
use super::relation_lookup::parse_name;

/// Implements `format_type`: the SQL name of the type with this OID and modifier (-1 for none).
pub(super) fn format_type(oid: u32, modifier: i32) -> Option<String> {
    if let Some((_, name)) = PSEUDO_TYPES.iter().find(|(number, _)| *number == oid) {
        return Some(if *name == "any" { "\"any\"".to_owned() } else { (*name).to_owned() });
    }
    let sql_type = SqlType::from_oid(oid, modifier)?;
    // `SqlType` represents a type without modifier by its widest form, which may have another name than the OID.
    let unmodified = |sql_type: &SqlType| match sql_type {
        SqlType::Char(_) if modifier < 0 => "character".to_owned(),
        other => other.to_string(),
    };
    Some(match &sql_type {
        SqlType::Array(element) => format!("{}[]", unmodified(element)),
        other => unmodified(other),
    })
}

/// Returns the OID of the type that `text` names, in SQL's words or as in `pg_type`; modifiers are ignored.
pub(super) fn type_oid(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Some(element) = text.strip_suffix("[]") {
        let element = type_oid(element)?;
        return SqlType::from_oid(element, -1).map(|sql_type| sql_type.array_oid());
    }
    let bare = match (text.find('('), text.rfind(')')) {
        (Some(open), Some(close)) if open < close => format!("{}{}", &text[..open], &text[close + 1..]),
        _ => text.to_owned(),
    };
    let spelt = bare.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let spelt = match spelt.as_str() {
        "int" => "integer",
        "decimal" | "dec" => "numeric",
        "float" => "double precision",
        "char" => "character",
        "varchar" => "character varying",
        "time" => "time without time zone",
        "timestamp" => "timestamp without time zone",
        other => other,
    };
    let by_sql_name = SqlType::scalars().find(|sql_type| format_type(sql_type.oid(), -1).as_deref() == Some(spelt));
    if let Some(sql_type) = by_sql_name {
        return Some(sql_type.oid());
    }
    let parts = parse_name(text).ok()?;
    let typname = match parts.as_slice() {
        [typname] => typname,
        [schema, typname] if schema == SCHEMA => typname,
        _ => return None,
    };
    if let Some((oid, _)) = PSEUDO_TYPES.iter().find(|(_, pseudo)| pseudo == typname) {
        return Some(*oid);
    }
    SqlType::scalars().find_map(|sql_type| {
        if sql_type.typname() == *typname {
            Some(sql_type.oid())
        } else if typname.strip_prefix('_') == Some(sql_type.typname().as_str()) {
            Some(sql_type.array_oid())
        } else {
            None
        }
    })
}
