//! Inputs of tidy: manifests, the lock file, ARCHITECTURE.md and the source files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Workspace as plain data, over which the checks are functions.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) crates: Vec<Crate>,
    pub(crate) locked_packages: Vec<LockedPackage>,
    pub(crate) architecture_text: String,
    /// Path and text of every Rust file.
    pub(crate) sources: Vec<(PathBuf, String)>,
}

/// Workspace member and the names of its dependencies.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) dependencies: Vec<String>,
    /// Additional dependencies of its tests.
    pub(crate) dev_dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct Manifest {
    package: Package,
    #[serde(default)]
    dependencies: BTreeMap<String, toml::Value>,
    #[serde(default, rename = "dev-dependencies")]
    dev_dependencies: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
}

#[derive(Deserialize)]
struct CargoLock {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
pub(crate) struct LockedPackage {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Workspace {
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut crates = Vec::new();
        for folder in member_folders(root)? {
            let manifest: Manifest = parse_toml(&folder.join("Cargo.toml"))?;
            crates.push(Crate {
                name: manifest.package.name,
                folder,
                dependencies: manifest.dependencies.into_keys().collect(),
                dev_dependencies: manifest.dev_dependencies.into_keys().collect(),
            });
        }
        let lock: CargoLock = parse_toml(&root.join("Cargo.lock"))?;
        let mut sources = Vec::new();
        for member in &crates {
            collect_sources(&member.folder, &mut sources)?;
        }
        let architecture_text = read_text(&root.join("ARCHITECTURE.md"))?;
        Ok(Self { root: root.to_owned(), crates, locked_packages: lock.package, architecture_text, sources })
    }

    /// Returns a path relative to the root, for messages.
    pub(crate) fn display_path<'a>(&self, path: &'a Path) -> std::path::Display<'a> {
        path.strip_prefix(&self.root).unwrap_or(path).display()
    }
}

fn member_folders(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut folders = vec![root.join("bench"), root.join("simulation"), root.join("tests"), root.join("xtask")];
    collect_crates(&root.join("crates"), &mut folders)?;
    Ok(folders)
}

/// Collects crates: a folder with a manifest is a crate, any other contains crates.
fn collect_crates(folder: &Path, crates: &mut Vec<PathBuf>) -> Result<(), String> {
    for path in list_folder(folder)?.into_iter().filter(|path| path.is_dir()) {
        if path.join("Cargo.toml").exists() {
            crates.push(path);
        } else {
            collect_crates(&path, crates)?;
        }
    }
    Ok(())
}

fn collect_sources(folder: &Path, sources: &mut Vec<(PathBuf, String)>) -> Result<(), String> {
    for path in list_folder(folder)? {
        if path.is_dir() {
            collect_sources(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = read_text(&path)?;
            sources.push((path, text));
        }
    }
    Ok(())
}

fn list_folder(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let listing = fs::read_dir(folder).map_err(|error| format!("cannot list {}: {error}", folder.display()))?;
    let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

fn parse_toml<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, String> {
    toml::from_str(&read_text(path)?).map_err(|error| format!("cannot parse {}: {error}", path.display()))
}

fn read_text(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
