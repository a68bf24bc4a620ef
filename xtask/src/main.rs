//! Development tasks.
//!
//! - `cargo xtask tidy` checks project rules that rustc and clippy cannot.
//! - `cargo xtask map` shows the structure of the crates.
//! - `cargo xtask words` lists breaches of the wording rules.
//! - `cargo xtask sample` draws files, names and texts for a reader to explain.
//!
//! - `workspace.rs`: the files of the workspace as data; start here.
//! - Checks: `architecture_doc.rs`, `cargo_features.rs`, `dependencies.rs`, `docs_links.rs`, `source_file_checks.rs`,
//!   `workspace_members.rs`.
//! - `name_decisions/`: decisions by names and by texts of errors, with the exceptions in `name_decisions.toml`.
//! - `crate_map/` and `wording/`: the subcommands `map`, `words` and `sample`; `tidy` runs their checks too.

mod architecture_doc;
mod cargo_features;
mod crate_map;
mod dependencies;
mod docs_links;
mod name_decisions;
mod source_file_checks;
mod wording;
mod workspace;
mod workspace_members;

use std::path::Path;
use std::process::ExitCode;

use crate::workspace::Workspace;

const USAGE: &str = "usage: cargo xtask tidy | map [crate] | words [crate | --lower] | sample --seed N";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["tidy"] => read_workspace().map(|workspace| tidy(&workspace)),
        ["map"] => read_workspace().and_then(|workspace| print_output(&crate_map::render(&workspace, None)?)),
        ["map", name] => {
            read_workspace().and_then(|workspace| print_output(&crate_map::render(&workspace, Some(name))?))
        }
        ["words"] => read_workspace().and_then(|workspace| print_output(&wording::list_offences(&workspace, None)?)),
        ["words", "--lower"] => {
            read_workspace().and_then(|workspace| wording::lower_baseline(&workspace).map(|()| ExitCode::SUCCESS))
        }
        ["words", name] => {
            read_workspace().and_then(|workspace| print_output(&wording::list_offences(&workspace, Some(name))?))
        }
        ["sample", "--seed", seed] => read_workspace().and_then(|workspace| {
            let seed = seed.parse().map_err(|_| format!("{seed} is no seed: give a whole number"))?;
            print_output(&wording::draw_sample(&workspace, seed)?)
        }),
        _ => Err(USAGE.to_owned()),
    };
    outcome.unwrap_or_else(|problem| {
        print_problem(&problem);
        ExitCode::FAILURE
    })
}

fn read_workspace() -> Result<Workspace, String> {
    // Read at run time: a build folder shared by several checkouts may hold another checkout's binary.
    let here = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Workspace::read(Path::new(&here).parent().expect("xtask lies in the workspace's root"))
}

fn tidy(workspace: &Workspace) -> ExitCode {
    let mut problems = Vec::new();
    problems.extend(dependencies::check_order(workspace));
    problems.extend(dependencies::check_owners(workspace));
    problems.extend(dependencies::check_bans(workspace));
    problems.extend(dependencies::check_versions(workspace));
    problems.extend(crate_map::check_upward_traits(workspace));
    problems.extend(workspace_members::check_members(workspace));
    problems.extend(cargo_features::check_features(workspace));
    problems.extend(architecture_doc::check_table(workspace));
    problems.extend(architecture_doc::check_paths(workspace));
    problems.extend(docs_links::check_docs(workspace));
    problems.extend(source_file_checks::check_lengths(workspace));
    problems.extend(source_file_checks::check_crate_docs(workspace));
    problems.extend(name_decisions::check_name_decisions(workspace));
    problems.extend(wording::check_words(workspace));
    for problem in &problems {
        print_problem(&format!("tidy: {problem}"));
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stdout, reason = "a command-line chore answers its user")]
fn print_output(text: &str) -> Result<ExitCode, String> {
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stderr, reason = "a command-line chore speaks to its user")]
fn print_problem(problem: &str) {
    eprintln!("{problem}");
}
