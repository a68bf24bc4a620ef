//! Chores of the project: `cargo xtask tidy` checks the house's rules that neither rustc nor clippy can,
//! `cargo xtask map` shows how its crates hang together.

mod architecture;
mod dependencies;
mod files;
mod map;
mod members;
mod selections;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use crate::workspace::Workspace;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["tidy"] => read_workspace().map(|workspace| tidy(&workspace)),
        ["map"] => read_workspace().and_then(|workspace| show_map(&workspace, None)),
        ["map", name] => read_workspace().and_then(|workspace| show_map(&workspace, Some(name))),
        _ => Err("usage: cargo xtask tidy | cargo xtask map [crate]".to_owned()),
    };
    outcome.unwrap_or_else(|problem| {
        complain(&problem);
        ExitCode::FAILURE
    })
}

fn read_workspace() -> Result<Workspace, String> {
    // Asked when it runs: a build folder that checkouts share keeps the binary of another one.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Workspace::read(Path::new(&here).parent().expect("xtask lies in the workspace's root"))
}

fn tidy(workspace: &Workspace) -> ExitCode {
    let mut problems = Vec::new();
    problems.extend(dependencies::check_order(workspace));
    problems.extend(dependencies::check_owners(workspace));
    problems.extend(dependencies::check_bans(workspace));
    problems.extend(dependencies::check_versions(workspace));
    problems.extend(map::check_upward_traits(workspace));
    problems.extend(members::check_members(workspace));
    problems.extend(selections::check_selections(workspace));
    problems.extend(architecture::check_table(workspace));
    problems.extend(architecture::check_paths(workspace));
    problems.extend(files::check_lengths(workspace));
    problems.extend(files::check_crate_docs(workspace));
    for problem in &problems {
        complain(&format!("tidy: {problem}"));
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stdout, reason = "a command-line chore answers its user")]
fn show_map(workspace: &Workspace, crate_name: Option<&str>) -> Result<ExitCode, String> {
    print!("{}", map::show(workspace, crate_name)?);
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "a command-line chore speaks to its user")]
fn complain(problem: &str) {
    eprintln!("{problem}");
}
