//! Chores of the project: `cargo xtask tidy` checks the house's rules that neither rustc nor clippy can.

mod architecture;
mod dependencies;
mod files;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use crate::workspace::Workspace;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().map(String::as_str).ne(["tidy"]) {
        complain("usage: cargo xtask tidy");
        return ExitCode::FAILURE;
    }
    // Asked when it runs: a build folder that checkouts share keeps the binary of another one.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&here).parent().expect("xtask lies in the workspace's root");
    let workspace = match Workspace::read(root) {
        Ok(workspace) => workspace,
        Err(problem) => {
            complain(&problem);
            return ExitCode::FAILURE;
        }
    };
    let mut problems = Vec::new();
    problems.extend(dependencies::check_floors(&workspace));
    problems.extend(dependencies::check_owners(&workspace));
    problems.extend(dependencies::check_versions(&workspace));
    problems.extend(architecture::check_paths(&workspace));
    problems.extend(files::check_lengths(&workspace));
    problems.extend(files::check_crate_docs(&workspace));
    for problem in &problems {
        complain(problem);
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stderr, reason = "a command-line chore speaks to its user")]
fn complain(problem: &str) {
    eprintln!("tidy: {problem}");
}
