//! `cargo xtask map`: size, import cycles and dependencies of each crate, and its implementations of earlier crates'
//! traits.
//!
//! - `modules.rs` parses the crates,
//! - `resolve_path.rs` resolves a path to its definition,
//! - `import_cycles.rs` finds import cycles of files,
//! - `upward_traits.rs` lists the reasons for implementing traits of earlier crates.

mod import_cycles;
mod modules;
mod resolve_path;
#[cfg(test)]
mod tests;
mod upward_traits;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use self::modules::Modules;
pub(crate) use self::modules::is_test_attribute;
use self::resolve_path::Definition;
pub(crate) use self::upward_traits::check_upward_traits;
use crate::workspace::Workspace;

/// Crate as `cargo xtask map` shows it.
struct CrateSummary {
    name: String,
    lines: usize,
    files: usize,
    /// Import cycles of files, as indices into `Modules::files`; the largest cycle first.
    cycles: Vec<Vec<usize>>,
    /// Workspace crates that it depends on.
    workspace_dependencies: Vec<String>,
    /// Traits of other workspace crates that it implements, as `crate::Trait`.
    upward_traits: BTreeSet<String>,
}

/// Formats a table of all crates, or the import cycles of one crate.
pub(crate) fn render(workspace: &Workspace, crate_name: Option<&str>) -> Result<String, String> {
    let modules = Modules::read(workspace)?;
    let crates = summarize_crates(workspace, &modules);
    let mut shown = String::new();
    let Some(name) = crate_name else {
        for line in format_table(&crates) {
            writeln!(shown, "{line}").expect("a string takes all");
        }
        return Ok(shown);
    };
    let found = crates.iter().find(|found| found.name == name).ok_or_else(|| format!("there is no crate {name}"))?;
    for circle in &found.cycles {
        writeln!(shown, "{} files need each other:", circle.len()).expect("a string takes all");
        for &file in circle {
            writeln!(shown, "  {}", workspace.display_path(&modules.files[file].path)).expect("a string takes all");
        }
    }
    Ok(shown)
}

fn summarize_crates(workspace: &Workspace, modules: &Modules) -> Vec<CrateSummary> {
    let edges = file_dependencies(modules);
    let names: BTreeSet<&str> = workspace.crates.iter().map(|member| member.name.as_str()).collect();
    let mut circles = BTreeMap::<&str, Vec<Vec<usize>>>::new();
    for circle in import_cycles::find_cycles(&edges) {
        circles.entry(&modules.files[circle[0]].crate_name).or_default().push(circle);
    }
    let crates = workspace.crates.iter().map(|member| {
        let files = modules.files.iter().filter(|file| file.crate_name == member.name);
        CrateSummary {
            name: member.name.clone(),
            lines: files.clone().map(|file| file.lines).sum(),
            files: files.count(),
            cycles: circles.remove(member.name.as_str()).unwrap_or_default(),
            workspace_dependencies: member
                .dependencies
                .iter()
                .filter(|name| names.contains(name.as_str()))
                .cloned()
                .collect(),
            upward_traits: upward_traits(modules, &member.name),
        }
    });
    crates.collect()
}

/// Returns the files that each file depends on: those that define what it names.
fn file_dependencies(modules: &Modules) -> Vec<Vec<usize>> {
    let mut edges = vec![BTreeSet::new(); modules.files.len()];
    for (number, module) in modules.all.iter().enumerate() {
        for path in &module.used_paths {
            if let Some(Definition::Item(defining, _)) = modules.resolve(number, path) {
                edges[module.file].insert(modules.all[defining].file);
            }
        }
    }
    edges.into_iter().map(|files| files.into_iter().collect()).collect()
}

fn upward_traits(modules: &Modules, crate_name: &str) -> BTreeSet<String> {
    let own = |module: usize| &modules.files[modules.all[module].file].crate_name;
    let mut traits = BTreeSet::new();
    for (number, module) in modules.all.iter().enumerate().filter(|(number, _)| own(*number) == crate_name) {
        for path in &module.implemented_traits {
            if let Some(Definition::Item(defining, name)) = modules.resolve(number, path)
                && own(defining) != crate_name
            {
                traits.insert(format!("{}::{name}", own(defining)));
            }
        }
    }
    traits
}

fn format_table(crates: &[CrateSummary]) -> Vec<String> {
    let head = "| crate | non-test lines | files | largest circle of files | uses | implements of earlier crates |";
    let mut lines = vec![head.to_owned(), "|---|--:|--:|--:|---|---|".to_owned()];
    lines.extend(crates.iter().map(|found| {
        let largest = found.cycles.first().map_or(0, Vec::len);
        let traits: Vec<&str> = found.upward_traits.iter().map(String::as_str).collect();
        format!(
            "| {} | {} | {} | {largest} | {} | {} |",
            found.name,
            found.lines,
            found.files,
            found.workspace_dependencies.join(" "),
            traits.join(" ")
        )
    }));
    lines
}
