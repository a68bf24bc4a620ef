//! `docs/reference/system-views.md`: every system view with its columns.

use generated_docs::{check_page, inline_code, markdown_table};

use crate::SCHEMAS;
use crate::system_table_registry::SYSTEM_TABLES;
use crate::table_definition::ParsedTableDefinition;

const INTRODUCTION: &str = "\
Views that show objects, statistics and activity of the server. They are read like tables; their rows are computed when a statement reads them.

- Every role may read them. `sys.statement_outcome` shows a role its own rows only.
- What `sys` views mean for an administrator is in [monitor.md](../operations/monitor.md).
- psql shows the descriptions below by `\\d+ sys.cluster`; programs read them from `pg_description`.";

/// Text below the heading of each schema.
fn schema_introduction(schema: &str) -> &'static str {
    match schema {
        "sys" => "Kiln's own views. They are not in the search path: write `sys.` before the name.",
        "pg_catalog" => {
            "The catalogs and views of PostgreSQL 15 that clients read, with PostgreSQL's columns; its manual describes them. \
             Those of features that Kiln does not have are always empty."
        }
        "information_schema" => {
            "The views of the SQL standard, with PostgreSQL's columns; the standard and PostgreSQL's manual describe them."
        }
        other => panic!("schema {other} has no introduction"),
    }
}

fn type_name(relation: &ParsedTableDefinition, at: usize) -> String {
    inline_code(&relation.columns[at].sql_type.to_string())
}

/// Formats a view whose columns have descriptions as a section of its own.
fn described_view(relation: &ParsedTableDefinition) -> String {
    let rows = relation.columns.iter().enumerate().map(|(at, column)| {
        let description = column.description.unwrap_or_else(|| panic!("{} has no description", column.name));
        vec![inline_code(column.name), type_name(relation, at), description.to_owned()]
    });
    let definition = relation.definition;
    let heading = format!("### {}.{}\n\n{}\n\n", definition.schema, definition.name, definition.description);
    heading + &markdown_table(&["column", "type", "meaning"], rows)
}

/// Formats a view whose columns PostgreSQL's manual describes as one row of a table.
fn listed_view(relation: &ParsedTableDefinition) -> Vec<String> {
    let columns = relation.columns.iter().enumerate();
    let columns = columns.map(|(at, column)| format!("{} {}", inline_code(column.name), relation.columns[at].sql_type));
    vec![
        inline_code(relation.definition.name),
        relation.definition.description.to_owned(),
        columns.collect::<Vec<_>>().join(", "),
    ]
}

#[test]
fn the_page_of_system_views_is_that_of_the_code() {
    let mut page = INTRODUCTION.to_owned();
    for schema in SCHEMAS.iter().rev() {
        let mut views: Vec<&ParsedTableDefinition> = SYSTEM_TABLES
            .all()
            .iter()
            .map(AsRef::as_ref)
            .filter(|relation| relation.definition.schema == *schema && !relation.definition.kind.is_empty())
            .collect();
        views.sort_by_key(|relation| relation.definition.name);
        page.push_str(&format!("\n\n## {schema}\n\n{}\n\n", schema_introduction(schema)));
        if *schema == "sys" {
            let sections: Vec<String> = views.into_iter().map(described_view).collect();
            page.push_str(sections.join("\n").trim_end());
        } else {
            let rows = views.into_iter().map(listed_view);
            page.push_str(markdown_table(&["view", "rows", "columns"], rows).trim_end());
        }
    }
    check_page("reference/system-views.md", "System views", &page);
}

#[test]
fn every_description_is_a_sentence() {
    for relation in SYSTEM_TABLES.all() {
        let columns = relation.columns.iter().filter_map(|column| column.description);
        for text in columns.chain([relation.definition.description]) {
            assert!(text.ends_with('.') && text.len() > 3, "{}: {text}", relation.definition.name);
        }
    }
}
