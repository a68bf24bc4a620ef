//! Follows a path, through imports and re-exports, to the module that defines what it names.

use super::modules::{EXTERN, Modules, Segments};

/// Imports of imports end; a circle of them does not.
const STEPS_MAX: usize = 32;

/// The definition that a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Definition {
    Module(usize),
    /// An item, and the module that defines it.
    Item(usize, String),
}

impl Modules {
    /// The definition that `path`, written in `module`, names; none for a local name or a name from outside the workspace.
    pub(super) fn resolve(&self, module: usize, path: &Segments) -> Option<Definition> {
        self.resolve_within(module, path, STEPS_MAX)
    }

    fn resolve_within(&self, module: usize, path: &Segments, steps: usize) -> Option<Definition> {
        let steps = steps.checked_sub(1)?;
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => self.all[module].root,
            "self" => module,
            "super" => self.all[module].parent?,
            EXTERN => {
                let (name, others) = rest.split_first()?;
                rest = others;
                *self.roots.get(name)?
            }
            name => match self.name(module, name, !rest.is_empty(), steps).or_else(|| self.crate_root(name))? {
                Definition::Module(child) => child,
                item @ Definition::Item(..) => return Some(item),
            },
        };
        while let Some((name, others)) = rest.split_first() {
            rest = others;
            if name == "super" {
                at = self.all[at].parent?;
                continue;
            }
            match self.name(at, name, !rest.is_empty(), steps) {
                Some(Definition::Module(child)) => at = child,
                Some(item) => return Some(item),
                None if self.all[at].imports.contains_key(name) => return None,
                // A macro of the crate, or an item that a macro wrote.
                None => return Some(Definition::Item(at, name.clone())),
            }
        }
        Some(Definition::Module(at))
    }

    /// Resolves `name` in `module`. Where a module and an item have one name, `is_qualifier` (more of the path follows) decides between them.
    fn name(&self, module: usize, name: &str, is_qualifier: bool, steps: usize) -> Option<Definition> {
        let steps = steps.checked_sub(1)?;
        let here = &self.all[module];
        let child = here.children.get(name).map(|child| Definition::Module(*child));
        if is_qualifier && child.is_some() {
            return child;
        }
        if here.items.contains(name) {
            return Some(Definition::Item(module, name.to_owned()));
        }
        let imported = here.imports.get(name).and_then(|path| {
            // `use types;` names the crate, not itself.
            if path.len() == 1 && path[0] == name {
                self.crate_root(name)
            } else {
                self.resolve_within(module, path, steps)
            }
        });
        match imported {
            Some(item @ Definition::Item(..)) => return Some(item),
            other if child.is_some() => return child.or(other),
            Some(found) => return Some(found),
            None if here.imports.contains_key(name) => return None,
            None => {}
        }
        here.globs.iter().find_map(|path| match self.resolve_within(module, path, steps)? {
            Definition::Module(from) if from != module => self.name(from, name, is_qualifier, steps),
            // The variants of an enum, or the module itself.
            _ => None,
        })
    }

    fn crate_root(&self, name: &str) -> Option<Definition> {
        self.roots.get(name).map(|root| Definition::Module(*root))
    }
}
