//! Checks the documents: the site's navigation names every page, and links between pages lead somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::workspace::Workspace;

/// Configuration of the static site, whose `nav` lists the pages.
const SITE_CONFIGURATION: &str = "mkdocs.yml";

/// Checks that `mkdocs.yml` names every page of `docs` once and no page that does not exist, and that the links of all
/// pages lead to files and headings.
pub(crate) fn check_docs(workspace: &Workspace) -> Vec<String> {
    match read_pages(&workspace.root) {
        Ok((pages, navigation)) => {
            let mut problems = compare_navigation(&pages.keys().map(PathBuf::as_path).collect(), &navigation);
            for (path, text) in &pages {
                problems.extend(check_links(&workspace.root, &pages, path, text));
            }
            problems
        }
        Err(problem) => vec![problem],
    }
}

type Pages = BTreeMap<PathBuf, String>;

/// Returns the pages of the root and of `docs` by path, and the entries of the navigation.
fn read_pages(root: &Path) -> Result<(Pages, Vec<PathBuf>), String> {
    let mut pages = Pages::new();
    collect_pages(root, Path::new(""), false, &mut pages)?;
    collect_pages(root, Path::new("docs"), true, &mut pages)?;
    let site = fs::read_to_string(root.join(SITE_CONFIGURATION))
        .map_err(|error| format!("cannot read {SITE_CONFIGURATION}: {error}"))?;
    Ok((pages, navigation_pages(&site)))
}

fn collect_pages(root: &Path, folder: &Path, recursive: bool, pages: &mut Pages) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(root.join(folder)).map_err(failed)?.flatten() {
        let path = folder.join(entry.file_name());
        if recursive && entry.path().is_dir() {
            collect_pages(root, &path, true, pages)?;
        } else if path.extension().is_some_and(|extension| extension == "md") {
            let text = fs::read_to_string(entry.path()).map_err(failed)?;
            pages.insert(path, text);
        }
    }
    Ok(())
}

/// Returns the pages that the site's configuration names, in order.
fn navigation_pages(site: &str) -> Vec<PathBuf> {
    let entries = site.lines().filter_map(|line| line.trim().strip_prefix("- "));
    entries.filter(|entry| entry.ends_with(".md")).map(PathBuf::from).collect()
}

fn compare_navigation(pages: &BTreeSet<&Path>, navigation: &[PathBuf]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    for entry in navigation {
        if !named.insert(entry.as_path()) {
            problems.push(format!("{SITE_CONFIGURATION} names {} twice", entry.display()));
        } else if !pages.contains(entry.as_path()) {
            problems.push(format!("{SITE_CONFIGURATION} names {}, which does not exist", entry.display()));
        }
    }
    let forgotten =
        pages.difference(&named).map(|page| format!("{SITE_CONFIGURATION} does not name {}", page.display()));
    problems.extend(forgotten);
    problems
}

/// Checks the relative links of a page.
fn check_links(root: &Path, pages: &Pages, path: &Path, text: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for link in link_targets(text).filter(|link| !link.contains("://") && !link.starts_with("mailto:")) {
        let (target, heading) = link.split_once('#').map_or((link, None), |(target, heading)| (target, Some(heading)));
        let target = if target.is_empty() { path.to_owned() } else { resolve_link(path, target) };
        if !root.join(&target).exists() {
            problems.push(format!("{}: the link {link} leads nowhere", path.display()));
        } else if let (Some(heading), Some(page)) = (heading, pages.get(&target))
            && !heading_anchors(page).any(|other| other == heading)
        {
            problems.push(format!("{}: {} has no heading #{heading}", path.display(), target.display()));
        }
    }
    problems
}

/// Resolves a link relative to the page that has it.
fn resolve_link(page: &Path, link: &str) -> PathBuf {
    let mut resolved = page.parent().unwrap_or_else(|| Path::new("")).to_owned();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    resolved
}

/// Returns the lines outside of fenced blocks.
fn lines_outside_code(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        fenced ^= is_fence;
        !fenced && !is_fence
    })
}

/// Returns the targets of all links `[text](target)` outside of code.
fn link_targets(text: &str) -> impl Iterator<Item = &str> {
    lines_outside_code(text).flat_map(|line| {
        let outside_code = line.split('`').step_by(2).flat_map(|part| part.split("](").skip(1));
        // The text of a link may be code, which ends before its target.
        outside_code.filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
    })
}

/// Returns the anchors of a page's headings, as GitHub makes them.
fn heading_anchors(text: &str) -> impl Iterator<Item = String> {
    lines_outside_code(text).filter(|line| line.starts_with('#')).map(|line| {
        let kept = line.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_the_navigation_does_not_name_and_names_without_pages_are_reported() {
        let entries = navigation_pages("nav:\n  - Guide:\n      - a.md\n      - b.md\n      - a.md\n");
        let problems = compare_navigation(&[Path::new("a.md"), Path::new("c.md")].into_iter().collect(), &entries);
        assert_eq!(
            problems,
            [
                "mkdocs.yml names b.md, which does not exist",
                "mkdocs.yml names a.md twice",
                "mkdocs.yml does not name c.md"
            ]
        );
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md) and `[c](d.md)`, [`e`](f.md#g)\n```text\n[h](i.md)\n```\n![j](k.svg)\n";
        assert_eq!(link_targets(text).collect::<Vec<_>>(), ["b.md", "f.md#g", "k.svg"]);
    }

    #[test]
    fn a_link_is_relative_to_its_page_and_a_heading_is_an_anchor() {
        assert_eq!(resolve_link(Path::new("docs/guide/a.md"), "../sql/b.md"), Path::new("docs/sql/b.md"));
        assert_eq!(heading_anchors("# A\n## Kiln's own: `x`\n").collect::<Vec<_>>(), ["a", "kilns-own-x"]);
    }
}
