//! Patterns: the variables that they declare, and the constants that they compare with.

use syn::visit::{self, Visit};

/// Variables of a pattern, and whether each is the content of an error's variant.
pub(super) struct PatternVariables {
    pub(super) variables: Vec<(String, bool)>,
    pub(super) in_error_pattern: bool,
}

impl<'ast> Visit<'ast> for PatternVariables {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.variables.push((pattern.ident.to_string(), self.in_error_pattern));
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_pat_tuple_struct(&mut self, pattern: &'ast syn::PatTupleStruct) {
        let names_error = pattern.path.segments.iter().any(|segment| segment.ident.to_string().ends_with("Error"));
        let outer = std::mem::replace(&mut self.in_error_pattern, names_error);
        visit::visit_pat_tuple_struct(self, pattern);
        self.in_error_pattern = outer;
    }
}

pub(super) fn is_constant_path(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|segment| {
        let name = segment.ident.to_string();
        name.len() > 1 && name.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
    })
}

/// Returns whether a pattern compares with a constant; of a tuple, the element at the position.
pub(super) fn has_constant(pattern: &syn::Pat, at: Option<usize>) -> bool {
    use syn::Pat;
    match (pattern, at) {
        (Pat::Or(or), _) => or.cases.iter().any(|case| has_constant(case, at)),
        (Pat::Paren(paren), _) => has_constant(&paren.pat, at),
        (Pat::Tuple(tuple), Some(at)) => tuple.elems.iter().nth(at).is_some_and(|element| has_constant(element, None)),
        (Pat::Lit(literal), _) => matches!(&literal.lit, syn::Lit::Str(_)),
        (Pat::Path(path), _) => is_constant_path(&path.path),
        // A constant without a path reads like a variable.
        (Pat::Ident(ident), _) => is_constant_path(&ident.ident.clone().into()),
        (Pat::Tuple(tuple), None) => tuple.elems.iter().any(|element| has_constant(element, None)),
        (Pat::TupleStruct(variant), _) => variant.elems.iter().any(|element| has_constant(element, None)),
        (Pat::Reference(reference), _) => has_constant(&reference.pat, at),
        (Pat::Slice(slice), _) => slice.elems.iter().any(|element| has_constant(element, None)),
        _ => false,
    }
}
