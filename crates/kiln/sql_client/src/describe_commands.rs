//! Queries of the system catalog for the `\d` commands.

/// Text that `\?` prints.
pub(crate) const COMMAND_HELP: &str = "\
\\d [NAME]      list tables and views, or describe one
\\dt \\dv \\dn     list tables, views, schemas
\\du \\l \\df [NAME] list roles, databases, functions
\\copy T from|to FILE [(options)]   COPY with a file on this machine
\\i FILE        run a file
\\timing        turn the display of each statement's time on or off
\\format F      show rows as table, csv or json
\\q             leave";

const RELATIONS_QUERY: &str = "SELECT n.nspname AS \"Schema\", c.relname AS \"Name\", \
    CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' ELSE c.relkind::text END AS \"Type\", \
    pg_catalog.pg_get_userbyid(c.relowner) AS \"Owner\" \
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
    WHERE n.nspname NOT IN ('pg_catalog', 'information_schema', 'sys')";

/// Returns the queries of a command, or `None` if there is no such command.
pub(crate) fn command_queries(name: &str, argument: &str) -> Option<Vec<String>> {
    let name = name.trim_end_matches('+');
    let one = |sql: String| Some(vec![sql]);
    match name {
        "d" if !argument.is_empty() => Some(describe_relation(argument)),
        "d" => one(format!("{RELATIONS_QUERY} AND c.relkind IN ('r', 'v') ORDER BY 1, 2")),
        "dt" => one(format!("{RELATIONS_QUERY} AND c.relkind = 'r' ORDER BY 1, 2")),
        "dv" => one(format!("{RELATIONS_QUERY} AND c.relkind = 'v' ORDER BY 1, 2")),
        "dn" => one("SELECT nspname AS \"Name\", pg_catalog.pg_get_userbyid(nspowner) AS \"Owner\" \
             FROM pg_catalog.pg_namespace ORDER BY 1"
            .to_owned()),
        "du" => one("SELECT rolname AS \"Role\", rolsuper AS \"Superuser\", rolcanlogin AS \"Login\" \
             FROM pg_catalog.pg_roles ORDER BY 1"
            .to_owned()),
        "l" => one("SELECT datname AS \"Name\", pg_catalog.pg_get_userbyid(datdba) AS \"Owner\" \
             FROM pg_catalog.pg_database ORDER BY 1"
            .to_owned()),
        "df" => one(format!(
            "SELECT DISTINCT proname AS \"Name\" FROM pg_catalog.pg_proc WHERE proname LIKE {} ORDER BY 1",
            sql_literal(&if argument.is_empty() { "%".to_owned() } else { argument.replace('*', "%") })
        )),
        _ => None,
    }
}

/// Returns the queries for the columns and the constraints of a relation, which is named as in SQL.
fn describe_relation(name: &str) -> Vec<String> {
    let relation = format!("{}::regclass", sql_literal(name));
    vec![
        format!(
            "SELECT a.attname AS \"Column\", pg_catalog.format_type(a.atttypid, a.atttypmod) AS \"Type\", \
             CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS \"Nullable\", \
             coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') AS \"Default\" \
             FROM pg_catalog.pg_attribute a \
             LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
             WHERE a.attrelid = {relation} AND 0 < a.attnum AND NOT a.attisdropped ORDER BY a.attnum"
        ),
        format!(
            "SELECT conname AS \"Constraint\", pg_catalog.pg_get_constraintdef(oid) AS \"Definition\" \
             FROM pg_catalog.pg_constraint WHERE conrelid = {relation} ORDER BY 1"
        ),
    ]
}

fn sql_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
