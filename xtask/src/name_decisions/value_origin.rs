//! Origin of an expression's value: a name, a constant, or neither.
//!
//! A *name* is the result of a method such as `name()`, the text of an error, or a variable, a parameter or a closure's
//! argument that has such a value. A *constant* is a string literal, a constant, or a local list of these. A decision is a
//! comparison, a match, a test or a search of a name with a constant.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;

use super::decision_finder::DecisionFinder;
use super::patterns::is_constant_path;

/// Methods without arguments whose result is the name of a plan, field, function, rule or operator, a part of a
/// relation's name, or a text that shows one.
const NAME_METHODS: &[&str] = &[
    "canonical_name",
    "catalog",
    "display_name",
    "flat_name",
    "human_display",
    "name",
    "qualified_name",
    "quoted_flat_name",
    "relation",
    "schema",
    "schema_name",
    "strip_backtrace",
    "table",
    "table_name",
    "to_string",
];
/// Fields of structs that hold such names, as `Column` does, or texts of errors.
const NAME_FIELDS: &[&str] = &["detail", "message", "name"];
/// Methods whose result is the name if their receiver is one.
const NAME_PRESERVING_METHODS: &[&str] = &[
    "as_bytes",
    "as_deref",
    "as_ref",
    "as_str",
    "borrow",
    "chain",
    "clone",
    "cloned",
    "collect",
    "copied",
    "deref",
    "expect",
    "filter",
    "find",
    "flatten",
    "inspect",
    "into",
    "into_iter",
    "into_string",
    "iter",
    "last",
    "next",
    "nth",
    "ok",
    "ok_or",
    "ok_or_else",
    "or",
    "or_else",
    "peekable",
    "rev",
    "rsplit_once",
    "skip",
    "split_once",
    "strip_prefix",
    "strip_suffix",
    "take",
    "to_ascii_lowercase",
    "to_ascii_uppercase",
    "to_lowercase",
    "to_owned",
    "to_uppercase",
    "trim",
    "trim_end",
    "trim_start",
    "unwrap_or",
    "unwrap_or_default",
    "unwrap_or_else",
    "zip",
];
/// Methods whose result is a name if the closure that they call returns one.
const MAPPING_METHODS: &[&str] = &["and_then", "filter_map", "find_map", "flat_map", "map"];

/// Origin of a value, as far as decisions by name are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueOrigin {
    Name,
    Constant,
}

/// Origins of the values that calls in the file pass to its functions and closures, by function name and argument
/// position.
///
/// A function that gets a name from one caller and a constant from another has both.
pub(super) type ArgumentOrigins = BTreeMap<(String, usize), BTreeSet<ValueOrigin>>;

impl DecisionFinder {
    pub(super) fn value_origins(&self, expr: &syn::Expr) -> BTreeSet<ValueOrigin> {
        let is = [(ValueOrigin::Name, self.is_name(expr)), (ValueOrigin::Constant, self.is_constant(expr))];
        is.into_iter().filter_map(|(value, is)| is.then_some(value)).collect()
    }

    fn variable_has_origin(&self, path: &syn::Path, origin: ValueOrigin) -> bool {
        let Some(ident) = path.get_ident() else { return false };
        let declared = self.variables.iter().rev().find(|(name, _)| ident == name);
        declared.is_some_and(|(_, values)| values.contains(&origin))
    }

    pub(super) fn is_name(&self, expr: &syn::Expr) -> bool {
        use syn::Expr;
        match expr {
            Expr::MethodCall(call) => self.is_name_call(call),
            Expr::Path(path) => self.variable_has_origin(&path.path, ValueOrigin::Name),
            Expr::Field(field) => match &field.member {
                syn::Member::Named(name) => NAME_FIELDS.iter().any(|field| name == field),
                syn::Member::Unnamed(_) => self.is_name(&field.base),
            },
            Expr::Reference(reference) => self.is_name(&reference.expr),
            Expr::Paren(paren) => self.is_name(&paren.expr),
            Expr::Group(group) => self.is_name(&group.expr),
            Expr::Unary(unary) => self.is_name(&unary.expr),
            Expr::Try(tried) => self.is_name(&tried.expr),
            Expr::Await(awaited) => self.is_name(&awaited.base),
            Expr::Tuple(tuple) => tuple.elems.iter().any(|element| self.is_name(element)),
            Expr::Array(array) => array.elems.iter().any(|element| self.is_name(element)),
            Expr::Index(index) => self.is_name(&index.expr),
            Expr::Call(call) => match (last_segment(&call.func), call.args.first()) {
                (Some(function), Some(argument)) if call.args.len() == 1 => {
                    is_name_method(&function) && function != "to_string"
                        || ["Some", "Ok", "Borrowed", "Owned", "from"].contains(&function.as_str())
                            && self.is_name(argument)
                }
                _ => false,
            },
            Expr::Macro(call) if is_format_macro(&call.mac) => self.formats_name(&call.mac.tokens),
            Expr::Block(block) => tail_expression(&block.block).is_some_and(|tail| self.is_name(tail)),
            Expr::If(branch) => {
                tail_expression(&branch.then_branch).is_some_and(|tail| self.is_name(tail))
                    || branch.else_branch.as_ref().is_some_and(|(_, other)| self.is_name(other))
            }
            Expr::Match(choice) => choice.arms.iter().any(|arm| self.is_name(&arm.body)),
            _ => false,
        }
    }

    fn is_name_call(&self, call: &syn::ExprMethodCall) -> bool {
        let method = call.method.to_string();
        if is_name_method(&method) && call.args.is_empty() {
            // The text of a string or a number is no name, whatever it is compared with.
            return method != "to_string" || !matches!(call.receiver.as_ref(), syn::Expr::Lit(_));
        }
        if MAPPING_METHODS.contains(&method.as_str()) {
            return call.args.iter().any(|argument| match argument {
                syn::Expr::Closure(closure) => self.closure_returns_name(closure, self.is_name(&call.receiver)),
                other => last_segment(other).is_some_and(|end| is_name_method(&end)),
            });
        }
        NAME_PRESERVING_METHODS.contains(&method.as_str()) && self.is_name(&call.receiver)
    }

    fn closure_returns_name(&self, closure: &syn::ExprClosure, takes_name: bool) -> bool {
        let mut inner = Self::new(self.parameter_origins.clone());
        inner.variables.clone_from(&self.variables);
        let values = takes_name.then_some(ValueOrigin::Name).into_iter().collect();
        closure.inputs.iter().for_each(|input| inner.declare_variables(input, &values));
        inner.is_name(&closure.body)
    }

    /// Returns whether `format!` writes a name or an error: as an argument, or as a variable between braces.
    fn formats_name(&self, tokens: &TokenStream) -> bool {
        let Some(arguments) = parse_arguments(tokens) else { return false };
        let inline = arguments.first().and_then(string_literal).is_some_and(|text| {
            let named = text.split('{').skip(1).filter_map(|rest| rest.split(['}', ':']).next().map(str::to_owned));
            named
                .filter_map(|name| syn::parse_str(&name).ok())
                .any(|path: syn::Path| path.is_ident("error") || self.variable_has_origin(&path, ValueOrigin::Name))
        });
        inline || arguments.iter().skip(1).any(|argument| self.is_name(argument))
    }

    pub(super) fn is_constant(&self, expr: &syn::Expr) -> bool {
        use syn::Expr;
        match expr {
            // Single characters divide texts of all kinds.
            Expr::Lit(literal) => matches!(&literal.lit, syn::Lit::Str(_)),
            Expr::Path(path) => {
                is_constant_path(&path.path) || self.variable_has_origin(&path.path, ValueOrigin::Constant)
            }
            Expr::Reference(reference) => self.is_constant(&reference.expr),
            Expr::Paren(paren) => self.is_constant(&paren.expr),
            Expr::Group(group) => self.is_constant(&group.expr),
            Expr::Unary(unary) => self.is_constant(&unary.expr),
            Expr::Array(array) => array.elems.iter().any(|element| self.is_constant(element)),
            Expr::Tuple(tuple) => tuple.elems.iter().any(|element| self.is_constant(element)),
            Expr::Index(index) => self.is_constant(&index.expr),
            Expr::MethodCall(call) => {
                NAME_PRESERVING_METHODS.contains(&call.method.to_string().as_str()) && self.is_constant(&call.receiver)
            }
            Expr::Call(call) => {
                last_segment(&call.func).is_some_and(|end| end == "Some" || end == "from")
                    && call.args.iter().any(|argument| self.is_constant(argument))
            }
            Expr::Macro(call) => is_format_macro(&call.mac),
            Expr::If(branch) => tail_expression(&branch.then_branch).is_some_and(|tail| self.is_constant(tail)),
            _ => false,
        }
    }
}

fn is_name_method(method: &str) -> bool {
    NAME_METHODS.contains(&method)
}

fn is_format_macro(call: &syn::Macro) -> bool {
    call.path.is_ident("format")
}

pub(super) fn parse_arguments(tokens: &TokenStream) -> Option<Vec<syn::Expr>> {
    let parsed = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated.parse2(tokens.clone());
    parsed.ok().map(|arguments| arguments.into_iter().collect())
}

fn string_literal(expr: &syn::Expr) -> Option<String> {
    match expr {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Returns the last part of a path.
pub(super) fn last_segment(expr: &syn::Expr) -> Option<String> {
    match expr {
        syn::Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

fn tail_expression(block: &syn::Block) -> Option<&syn::Expr> {
    match block.stmts.last() {
        Some(syn::Stmt::Expr(expr, None)) => Some(expr),
        _ => None,
    }
}
