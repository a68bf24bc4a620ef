//! The page `docs/reference/functions.md` is generated from the definitions of the functions.

use std::fmt::Write;

use datafusion::logical_expr::Volatility;
use functions::CatalogEntry;

use crate::system_functions;

const INTRODUCTION: &str = "\
Every function, operator, aggregate and window function, by topic. In psql, `\\df+ name` shows the same descriptions. Functions follow PostgreSQL 15
unless [postgresql-differences.md](postgresql-differences.md) says otherwise.

An immutable function always returns the same value for the same arguments. A stable one does so within a statement. A volatile one is called for
each row, and never runs on workers.
";

#[test]
fn the_page_of_functions_is_that_of_the_code() {
    generated_docs::check_page("reference/functions.md", "Functions and operators", &page());
}

#[test]
fn every_function_has_one_line_of_documentation() {
    let functions = functions::documentation().into_iter().map(|function| (function.name, function.description));
    let system = system_functions::documentation().into_iter().map(|function| (function.name, function.description));
    let undeclared = system_functions::undeclared_documentation().map(|(name, _, description)| (name, description));
    for (name, description) in functions.chain(system).chain(undeclared) {
        let is_line = !description.is_empty() && description.len() <= 80 && !description.contains('\n');
        assert!(is_line && !description.ends_with('.'), "{name}: {description:?}");
    }
}

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut topic = "";
    for function in functions::documentation() {
        if function.topic != topic {
            topic = function.topic;
            write!(page, "\n## {topic}\n\n").expect("writing to a String cannot fail");
            page.push_str("| function | returns | volatility | description |\n|---|---|---|---|\n");
        }
        if function.signatures.is_empty() {
            row(&mut page, function.name, "", function.volatility, function.description);
        }
        for signature in &function.signatures {
            row(&mut page, &signature.call, &signature.result, function.volatility, function.description);
        }
    }
    page.push_str(
        "\n## Catalog, session and sequences\n\n| function | returns | volatility | description |\n|---|---|---|---|\n",
    );
    for function in system_functions::documentation() {
        if function.catalog.is_empty() {
            let (least, most) = (function.arity.start(), function.arity.end());
            let arguments = if least == most { arguments(*least) } else { format!("{least} to {most} arguments") };
            let call = format!("{}({arguments})", function.name);
            row(&mut page, &call, function.result, volatility(function.volatility), function.description);
        }
        catalog_rows(&mut page, function.name, function.catalog, function.description);
    }
    for (name, catalog, description) in system_functions::undeclared_documentation() {
        if catalog.is_empty() {
            row(&mut page, name, "", "", description);
        }
        catalog_rows(&mut page, name, catalog, description);
    }
    page
}

/// Writes a row for each catalog entry of a function.
fn catalog_rows(page: &mut String, name: &str, catalog: &[CatalogEntry], description: &str) {
    for entry in catalog {
        let signature = functions::catalog_signature(name, entry);
        let set = if entry.returns_set { "set of " } else { "" };
        let result = format!("{set}{}", signature.result);
        row(page, &signature.call, &result, volatility(entry.volatility), description);
    }
}

fn arguments(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => "1 argument".to_owned(),
        count => format!("{count} arguments"),
    }
}

fn volatility(volatility: Volatility) -> &'static str {
    match volatility {
        Volatility::Immutable => "immutable",
        Volatility::Stable => "stable",
        Volatility::Volatile => "volatile",
    }
}

/// Writes a row of a table; a bar in a cell is escaped.
fn row(page: &mut String, call: &str, result: &str, volatility: &str, description: &str) {
    let (call, description) = (call.replace('|', "\\|"), description.replace('|', "\\|"));
    writeln!(page, "| `{call}` | {result} | {volatility} | {description} |").expect("writing to a String cannot fail");
}
