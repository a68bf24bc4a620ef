//! Parses the modules of the workspace's crates: definitions, imports, and used names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::workspace::Workspace;

/// Segment for the leading `::` of a path: the next one is a crate.
pub(super) const EXTERN_SEGMENT: &str = "::";

/// Path as written: its segments, including `crate`, `self` and `super`.
pub(super) type Segments = Vec<String>;

/// All non-test modules of all crates.
pub(super) struct Modules {
    pub(super) all: Vec<Module>,
    /// Root module of each crate, by the crate's name in Rust.
    pub(super) roots: BTreeMap<String, usize>,
    /// Files of the modules.
    pub(super) files: Vec<File>,
}

/// Non-test source file.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) crate_name: String,
    /// Number of lines, without those of test modules.
    pub(super) lines: usize,
}

/// Module: a file, or a `mod … { … }` in one.
pub(super) struct Module {
    pub(super) file: usize,
    pub(super) root: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    /// Functions, types, traits, constants and macros defined here.
    pub(super) items: BTreeSet<String>,
    /// Path of each imported name, including re-exports.
    pub(super) imports: BTreeMap<String, Segments>,
    /// Paths of `use path::*`.
    pub(super) glob_imports: Vec<Segments>,
    /// Paths that the code uses; a re-export counts only when something here uses it.
    pub(super) used_paths: BTreeSet<Segments>,
    /// Traits in `impl Trait for …`.
    pub(super) implemented_traits: BTreeSet<Segments>,
}

impl Modules {
    /// Parses the library, or else the program, of every member; integration tests and benchmarks are left out.
    pub(super) fn read(workspace: &Workspace) -> Result<Self, String> {
        let sources: BTreeMap<&Path, &str> =
            workspace.sources.iter().map(|(path, text)| (path.as_path(), text.as_str())).collect();
        let mut modules = Self { all: Vec::new(), roots: BTreeMap::new(), files: Vec::new() };
        for member in &workspace.crates {
            let source = member.folder.join("src");
            let roots = [source.join("lib.rs"), source.join("main.rs")];
            let Some(root) = roots.iter().find(|path| sources.contains_key(path.as_path())) else { continue };
            let module = modules.add_file(&sources, root, &member.name, None)?;
            modules.roots.insert(member.name.replace('-', "_"), module);
        }
        Ok(modules)
    }

    fn add_file(
        &mut self,
        sources: &BTreeMap<&Path, &str>,
        path: &Path,
        crate_name: &str,
        parent: Option<usize>,
    ) -> Result<usize, String> {
        let text = sources.get(path).ok_or_else(|| format!("{} is declared but not there", path.display()))?;
        let parsed = syn::parse_file(text).map_err(|error| format!("cannot parse {}: {error}", path.display()))?;
        self.files.push(File {
            path: path.to_owned(),
            crate_name: crate_name.to_owned(),
            lines: lines_without_tests(text),
        });
        let module = self.add_module(self.files.len() - 1, parent);
        self.add_items(sources, &parsed.items, module, &folder_of_children(path))?;
        Ok(module)
    }

    fn add_module(&mut self, file: usize, parent: Option<usize>) -> usize {
        let module = self.all.len();
        self.all.push(Module {
            file,
            root: parent.map_or(module, |parent| self.all[parent].root),
            parent,
            children: BTreeMap::new(),
            items: BTreeSet::new(),
            imports: BTreeMap::new(),
            glob_imports: Vec::new(),
            used_paths: BTreeSet::new(),
            implemented_traits: BTreeSet::new(),
        });
        module
    }

    /// Adds the items of a module; the files of its child modules are in `folder`.
    fn add_items(
        &mut self,
        sources: &BTreeMap<&Path, &str>,
        items: &[syn::Item],
        module: usize,
        folder: &Path,
    ) -> Result<(), String> {
        for item in items {
            if is_test_attribute(attributes(item)) {
                continue;
            }
            if let Some(name) = defined_name(item) {
                self.all[module].items.insert(name);
            }
            let syn::Item::Mod(child) = item else {
                NameCollector { module: &mut self.all[module] }.visit_item(item);
                continue;
            };
            let name = child.ident.to_string();
            let below = folder.join(&name);
            let added = if let Some((_, items)) = &child.content {
                let added = self.add_module(self.all[module].file, Some(module));
                self.add_items(sources, items, added, &below)?;
                added
            } else {
                let flat = folder.join(format!("{name}.rs"));
                let path = if sources.contains_key(flat.as_path()) { flat } else { below.join("mod.rs") };
                let crate_name = self.files[self.all[module].file].crate_name.clone();
                self.add_file(sources, &path, &crate_name, Some(module))?
            };
            self.all[module].children.insert(name, added);
        }
        Ok(())
    }
}

/// Visitor that collects the names of one item into its module.
struct NameCollector<'a> {
    module: &'a mut Module,
}

impl<'ast> Visit<'ast> for NameCollector<'_> {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let names_alone = !matches!(item.vis, syn::Visibility::Inherited);
        let mut path = leading_segments(item.leading_colon.is_some());
        self.add_use(&item.tree, &mut path, names_alone);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let Some((_, path, _)) = &item.trait_ {
            self.module.implemented_traits.insert(segments(path));
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test_attribute(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.module.used_paths.insert(segments(path));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.module.used_paths.insert(segments(&call.path));
        self.add_tokens(call.tokens.clone());
    }
}

impl NameCollector<'_> {
    /// Adds the imports of a `use` tree; a re-export (`names_alone`) is not itself a dependency.
    fn add_use(&mut self, tree: &syn::UseTree, path: &mut Segments, is_reexport: bool) {
        match tree {
            syn::UseTree::Path(part) => {
                path.push(part.ident.to_string());
                self.add_use(&part.tree, path, is_reexport);
                path.pop();
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, path, is_reexport);
                }
            }
            syn::UseTree::Glob(_) => {
                // A glob import of an enum depends on the enum; one of a module depends on nothing until a name is
                // used.
                self.module.used_paths.insert(path.clone());
                self.module.glob_imports.push(path.clone());
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.add_import(path, &name, name.clone(), is_reexport);
            }
            syn::UseTree::Rename(rename) => {
                self.add_import(path, &rename.ident.to_string(), rename.rename.to_string(), is_reexport);
            }
        }
    }

    fn add_import(&mut self, path: &Segments, name: &str, bound: String, is_reexport: bool) {
        let mut full = path.clone();
        let bound = if name == "self" && bound == "self" { path.last().cloned().unwrap_or(bound) } else { bound };
        if name != "self" {
            full.push(name.to_owned());
        }
        if !is_reexport {
            self.module.used_paths.insert(full.clone());
        }
        self.module.imports.insert(bound, full);
    }

    /// Finds `a::b` and type names among the tokens of a macro's arguments, which are not parsed.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path = Segments::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.add_path(&mut path);
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.add_path(&mut path);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.add_path(&mut path);
    }

    /// Adds a path, except a single lower-case word, which is more often a variable than an import.
    fn add_path(&mut self, path: &mut Segments) {
        let path = std::mem::take(path);
        if 1 < path.len() || path.first().is_some_and(|name| name.starts_with(char::is_uppercase)) {
            self.module.used_paths.insert(path);
        }
    }
}

fn segments(path: &syn::Path) -> Segments {
    let mut segments = leading_segments(path.leading_colon.is_some());
    segments.extend(path.segments.iter().map(|segment| segment.ident.to_string()));
    segments
}

fn leading_segments(has_colon: bool) -> Segments {
    if has_colon { vec![EXTERN_SEGMENT.to_owned()] } else { Segments::new() }
}

fn defined_name(item: &syn::Item) -> Option<String> {
    let ident = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Macro(item) => item.ident.as_ref()?,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::TraitAlias(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Const(item) => &item.attrs,
        syn::Item::Enum(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Macro(item) => &item.attrs,
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Static(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        syn::Item::Trait(item) => &item.attrs,
        syn::Item::Type(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Returns true for `#[cfg(test)]`, alone or as the first of `all(…)`.
pub(crate) fn is_test_attribute(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let condition = list.tokens.to_string();
        list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all (test"))
    })
}

/// Returns the folder of child modules: that of `mod.rs`, `lib.rs` and `main.rs` itself, and `a` for `a.rs`.
fn folder_of_children(path: &Path) -> PathBuf {
    let own = path.file_stem().is_some_and(|stem| ["mod", "lib", "main"].iter().any(|name| stem == *name));
    if own { path.parent().map(Path::to_owned).unwrap_or_default() } else { path.with_extension("") }
}

/// Counts lines outside of test modules, which end at the closing brace with the attribute's indentation.
fn lines_without_tests(text: &str) -> usize {
    let mut lines = text.lines();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            count += 1;
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let opens = lines.next().is_some_and(|line| line.trim_end().ends_with('{'));
        if opens {
            let closing = format!("{}}}", &line[..indent]);
            lines.by_ref().find(|line| *line == closing);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_test_modules_are_not_counted() {
        let text =
            "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n#[cfg(test)]\nmod more;\n";
        assert_eq!(lines_without_tests(text), 3);
    }
}
