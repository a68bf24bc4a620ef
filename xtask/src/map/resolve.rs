//! Follows a path, through imports and re-exports, to the module that defines what it names.

use super::modules::{Modules, Segments};

/// Imports of imports end; a circle of them does not.
const STEPS_MAX: usize = 32;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Definition {
    Module(usize),
    /// An item, and the module that defines it.
    Item(usize, String),
}

impl Modules {
    /// What `path`, written in `module`, names; nothing where it is a local name or belongs to another workspace.
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
            name => match self.name(module, name, !rest.is_empty(), true, steps)? {
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
            match self.name(at, name, !rest.is_empty(), false, steps) {
                Some(Definition::Module(child)) => at = child,
                Some(item) => return Some(item),
                None if self.all[at].imports.contains_key(name) => return None,
                // Something that a macro wrote.
                None => return Some(Definition::Item(at, name.clone())),
            }
        }
        Some(Definition::Module(at))
    }

    /// `is_qualifier`: more of the path follows, so that of a module and a function of one name the module is meant.
    /// `is_first`: the name may be another crate's.
    fn name(&self, module: usize, name: &str, is_qualifier: bool, is_first: bool, steps: usize) -> Option<Definition> {
        let here = &self.all[module];
        let child = here.children.get(name).map(|child| Definition::Module(*child));
        let item = here.items.contains(name).then(|| Definition::Item(module, name.to_owned()));
        let own = if is_qualifier { child.or(item) } else { item.or(child) };
        if own.is_some() {
            return own;
        }
        if let Some(path) = here.imports.get(name) {
            return if path.len() == 1 && path[0] == name {
                self.crate_root(name)
            } else {
                self.resolve_within(module, path, steps)
            };
        }
        let steps = steps.checked_sub(1)?;
        let by_glob = here.globs.iter().find_map(|path| {
            let Definition::Module(from) = self.resolve_within(module, path, steps)? else { return None };
            if from == module { None } else { self.name(from, name, is_qualifier, false, steps) }
        });
        by_glob.or_else(|| if is_first { self.crate_root(name) } else { None })
    }

    fn crate_root(&self, name: &str) -> Option<Definition> {
        self.roots.get(name).map(|root| Definition::Module(*root))
    }
}
