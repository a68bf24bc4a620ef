//! Checks the length of files and the module docs of crates.

use std::path::Path;

use crate::workspace::Workspace;

/// Lines of code that a file may have without a reason.
const CODE_LINES_MAX: usize = 1_000;
/// Mark in the module doc of a longer file, followed by the reason why it is not split.
const LONG_FILE_REASON_MARK: &str = "//! Long because";

/// Checks that a file of over 1,000 lines of code gives a reason in its module doc.
pub(crate) fn check_lengths(workspace: &Workspace) -> Vec<String> {
    let too_long = workspace.sources.iter().filter(|(path, text)| {
        !is_test_source(path) && CODE_LINES_MAX < count_code_lines(text) && !text.contains(LONG_FILE_REASON_MARK)
    });
    too_long
        .map(|(path, text)| {
            let shown = workspace.display_path(path);
            format!(
                "{shown} has {} lines of code; split it, or say `{LONG_FILE_REASON_MARK} …` in its head",
                count_code_lines(text)
            )
        })
        .collect()
}

/// Checks that each crate starts with a module doc.
pub(crate) fn check_crate_docs(workspace: &Workspace) -> Vec<String> {
    let roots =
        workspace.sources.iter().filter(|(path, _)| path.ends_with("src/lib.rs") || path.ends_with("src/main.rs"));
    roots
        .filter(|(_, text)| !text.trim_start().starts_with("//!"))
        .map(|(path, _)| format!("{} does not open with what the crate owns", workspace.display_path(path)))
        .collect()
}

/// Test sources state claims in their names and are read beside what they test.
pub(crate) fn is_test_source(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

fn count_code_lines(text: &str) -> usize {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}
