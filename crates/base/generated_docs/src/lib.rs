//! Pages of `docs` that are generated from the code: a test of the crate that owns the facts compares each page with
//! its file.
//!
//! For tests only: the crate is a dev-dependency.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Environment variable that makes [`check_page`] write the page instead of comparing it.
const UPDATE_VARIABLE: &str = "KILN_UPDATE_DOCS";

/// Line that follows the title of each generated page.
const GENERATED_PAGE_NOTICE: &str =
    "<!-- Generated from the code; a test compares it. To write it anew: KILN_UPDATE_DOCS=1 make unit -->";

/// Compares a generated page with the file `docs/<path>`; with `KILN_UPDATE_DOCS=1` writes the file.
///
/// # Panics
/// If the file differs or cannot be read or written.
pub fn check_page(path: &str, title: &str, body: &str) {
    let page = format!("# {title}\n\n{GENERATED_PAGE_NOTICE}\n\n{}\n", body.trim());
    let file = docs_folder().join(path);
    if std::env::var_os(UPDATE_VARIABLE).is_some_and(|value| value == "1") {
        fs::write(&file, page).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        return;
    }
    let found = read_page(path);
    if let Some((number, generated, written)) = first_difference(&page, &found) {
        panic!(
            "{} differs from the code in line {number}; {UPDATE_VARIABLE}=1 writes it anew\n generated: {generated}\n in the file: {written}",
            file.display()
        );
    }
}

/// Reads the file `docs/<path>`.
///
/// # Panics
/// If the file cannot be read.
#[must_use]
pub fn read_page(path: &str) -> String {
    let file = docs_folder().join(path);
    fs::read_to_string(&file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
}

/// Formats a Markdown table; `|` in cells is escaped.
///
/// # Panics
/// If a row has another number of cells than the header.
#[must_use]
pub fn markdown_table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", header.join(" | "), "---|".repeat(header.len()));
    for row in rows {
        assert_eq!(row.len(), header.len(), "the row {row:?} has one cell per column");
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        writeln!(text, "| {} |", cells.join(" | ")).expect("writing to a String cannot fail");
    }
    text
}

/// Formats a text as code in Markdown; nothing for the empty text.
#[must_use]
pub fn inline_code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// Returns the number of the first line that differs, and the line in both texts.
fn first_difference<'a>(generated: &'a str, found: &'a str) -> Option<(usize, &'a str, &'a str)> {
    if generated == found {
        return None;
    }
    let (mut left, mut right) = (generated.split('\n'), found.split('\n'));
    let mut number = 0;
    loop {
        number += 1;
        match (left.next(), right.next()) {
            (Some(generated), Some(found)) if generated == found => {}
            (generated, found) => return Some((number, generated.unwrap_or("(end)"), found.unwrap_or("(end)"))),
        }
    }
}

/// Finds the folder `docs` of the checkout in which the test runs.
fn docs_folder() -> PathBuf {
    // Read at run time: a build folder shared by several checkouts may hold another checkout's test.
    let start = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let start = start.or_else(|| std::env::current_dir().ok()).expect("a test has a working directory");
    let root = start.ancestors().find(|folder| is_checkout_root(folder));
    root.unwrap_or_else(|| panic!("no folder above {} is the root of a checkout", start.display())).join("docs")
}

fn is_checkout_root(folder: &Path) -> bool {
    folder.join("Cargo.lock").is_file() && folder.join("docs/reference").is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_for_each_row_and_escapes_bars() {
        let rows = [vec![inline_code("a|b"), String::new()], vec![inline_code(""), "c".to_owned()]];
        assert_eq!(markdown_table(&["x", "y"], rows), "| x | y |\n|---|---|\n| `a\\|b` |  |\n|  | c |\n");
    }

    #[test]
    fn the_first_line_that_differs_is_found() {
        assert_eq!(first_difference("a\nb", "a\nb"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some((2, "b", "c")));
        assert_eq!(first_difference("a", "a\nb"), Some((2, "(end)", "b")));
    }
}
