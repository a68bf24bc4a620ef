//! Walks the syntax tree of a file and finds its decisions by name.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::parse::Parser as _;
use syn::visit::{self, Visit};

use super::patterns::{PatternVariables, has_constant};
use super::value_origin::{ArgumentOrigins, ValueOrigin, last_segment, parse_arguments};

/// Methods that compare their receiver with an argument, or split it there.
const COMPARISON_METHODS: &[&str] = &[
    "cmp",
    "contains",
    "ends_with",
    "eq",
    "eq_ignore_ascii_case",
    "find",
    "matches",
    "ne",
    "rfind",
    "rsplit",
    "rsplit_once",
    "split",
    "split_once",
    "splitn",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
    "trim_end_matches",
    "trim_start_matches",
];
/// Methods of a list that search it for an argument.
const LIST_SEARCH_METHODS: &[&str] = &["binary_search", "contains"];
/// Methods that search a schema or a batch for a column by its name.
const COLUMN_SEARCH_METHODS: &[&str] = &[
    "column_by_name",
    "column_with_name",
    "field_with_name",
    "field_with_unqualified_name",
    "has_column_with_unqualified_name",
    "index_of",
    "index_of_column_by_name",
    "qualified_field_with_unqualified_name",
];

/// Control characters with a meaning in texts; others, and NUL within a text, mark names that users are not expected to
/// give.
const ALLOWED_CONTROL_CHARACTERS: &[char] = &['\0', '\u{8}', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{1b}'];

/// A decision by name, or a control character in a string.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) line: usize,
    /// Innermost function, constant or other item around it.
    pub(super) item: String,
    pub(super) text: String,
}

/// Returns the findings of a file's code outside of tests.
pub(super) fn find_decisions(file: &syn::File) -> Vec<Finding> {
    let mut calls = ArgumentOrigins::default();
    loop {
        let mut finder = DecisionFinder::new(calls.clone());
        finder.visit_file(file);
        if finder.collected_arguments == calls {
            finder.findings.sort();
            finder.findings.dedup();
            return finder.findings;
        }
        calls = finder.collected_arguments;
    }
}

/// Visitor that finds the decisions of a file and tracks which of its variables hold names or constants.
pub(super) struct DecisionFinder {
    /// Origins of the parameters, as an earlier pass over the file collected them.
    pub(super) parameter_origins: ArgumentOrigins,
    /// Origins of the arguments that this pass has seen.
    collected_arguments: ArgumentOrigins,
    /// Variables in scope, the innermost last.
    pub(super) variables: Vec<(String, BTreeSet<ValueOrigin>)>,
    /// Items around the visited code, the innermost last.
    items: Vec<String>,
    findings: Vec<Finding>,
}

impl DecisionFinder {
    pub(super) fn new(parameter_origins: ArgumentOrigins) -> Self {
        Self {
            collected_arguments: parameter_origins.clone(),
            parameter_origins,
            variables: Vec::new(),
            items: Vec::new(),
            findings: Vec::new(),
        }
    }

    fn add_finding(&mut self, span: Span, text: String) {
        let item = self.items.last().cloned().unwrap_or_default();
        self.findings.push(Finding { line: span.start().line, item, text });
    }

    fn add_decision(&mut self, span: Span, how: &str) {
        self.add_finding(span, how.to_owned());
    }

    /// Visits an item under its name; variables of the items around it are out of scope.
    fn visit_in_item(&mut self, name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.variables);
        self.items.push(name.to_string());
        visit(self);
        self.items.pop();
        self.variables = outer;
    }

    fn visit_in_scope(&mut self, visit: impl FnOnce(&mut Self)) {
        let depth = self.variables.len();
        visit(self);
        self.variables.truncate(depth);
    }

    /// Declares every variable of a pattern with the value.
    pub(super) fn declare_variables(&mut self, pattern: &syn::Pat, values: &BTreeSet<ValueOrigin>) {
        let mut bound = PatternVariables { variables: Vec::new(), in_error_pattern: false };
        bound.visit_pat(pattern);
        for (name, is_error_text) in bound.variables {
            let mut values = values.clone();
            if is_error_text {
                values.insert(ValueOrigin::Name);
            }
            self.variables.push((name, values));
        }
    }

    fn declare_parameters<'a>(&mut self, function: &str, parameters: impl Iterator<Item = &'a syn::Pat>) {
        for (at, pattern) in parameters.enumerate() {
            let values = self.parameter_origins.get(&(function.to_owned(), at)).cloned().unwrap_or_default();
            self.declare_variables(pattern, &values);
        }
    }

    fn visit_function(&mut self, signature: &syn::Signature, visit: impl FnOnce(&mut Self)) {
        let name = signature.ident.to_string();
        self.visit_in_item(&signature.ident, |finder| {
            let typed = signature.inputs.iter().filter_map(|input| match input {
                syn::FnArg::Typed(typed) => Some(typed.pat.as_ref()),
                syn::FnArg::Receiver(_) => None,
            });
            finder.declare_parameters(&name, typed);
            visit(finder);
        });
    }

    fn visit_match(&mut self, span: Span, scrutinee: &syn::Expr, patterns: &[&syn::Pat]) {
        let is_decided = match scrutinee {
            syn::Expr::Tuple(tuple) => tuple.elems.iter().enumerate().any(|(at, element)| {
                self.is_name(element) && patterns.iter().any(|pattern| has_constant(pattern, Some(at)))
            }),
            other => self.is_name(other) && patterns.iter().any(|pattern| has_constant(pattern, None)),
        };
        if is_decided {
            self.add_decision(span, "a match");
        }
    }
}

impl<'ast> Visit<'ast> for DecisionFinder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.visit_function(&item.sig, |finder| visit::visit_item_fn(finder, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.visit_function(&item.sig, |finder| visit::visit_impl_item_fn(finder, item));
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        self.visit_function(&item.sig, |finder| visit::visit_trait_item_fn(finder, item));
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.visit_in_item(&item.ident, |finder| visit::visit_item_const(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.visit_in_item(&item.ident, |finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.visit_in_item(&item.ident, |finder| visit::visit_item_static(finder, item));
    }

    /// Attributes are not visited: documentation is no code, and other tools read the rest.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.visit_in_scope(|finder| visit::visit_block(finder, block));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        let values = match local.init.as_ref().map(|init| init.expr.as_ref()) {
            Some(syn::Expr::Closure(closure)) => {
                if let syn::Pat::Ident(name) = &local.pat {
                    let name = name.ident.to_string();
                    self.visit_in_scope(|finder| {
                        finder.declare_parameters(&name, closure.inputs.iter());
                        finder.visit_expr(&closure.body);
                    });
                }
                BTreeSet::new()
            }
            Some(init) => {
                self.visit_match(local.let_token.span, init, &[&local.pat]);
                self.value_origins(init)
            }
            None => BTreeSet::new(),
        };
        self.declare_variables(&local.pat, &values);
    }

    fn visit_expr_let(&mut self, condition: &'ast syn::ExprLet) {
        visit::visit_expr_let(self, condition);
        self.visit_match(condition.let_token.span, &condition.expr, &[&condition.pat]);
        let values = self.value_origins(&condition.expr);
        self.declare_variables(&condition.pat, &values);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.visit_in_scope(|finder| visit::visit_expr_if(finder, branch));
    }

    fn visit_expr_while(&mut self, repeated: &'ast syn::ExprWhile) {
        self.visit_in_scope(|finder| visit::visit_expr_while(finder, repeated));
    }

    fn visit_expr_for_loop(&mut self, repeated: &'ast syn::ExprForLoop) {
        self.visit_expr(&repeated.expr);
        let values = self.value_origins(&repeated.expr);
        self.visit_in_scope(|finder| {
            finder.declare_variables(&repeated.pat, &values);
            finder.visit_block(&repeated.body);
        });
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        self.visit_expr(&choice.expr);
        let patterns: Vec<&syn::Pat> = choice.arms.iter().map(|arm| &arm.pat).collect();
        self.visit_match(choice.match_token.span, &choice.expr, &patterns);
        let values = self.value_origins(&choice.expr);
        for arm in &choice.arms {
            self.visit_in_scope(|finder| {
                finder.declare_variables(&arm.pat, &values);
                visit::visit_arm(finder, arm);
            });
        }
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.visit_in_scope(|finder| {
            closure.inputs.iter().for_each(|input| finder.declare_variables(input, &BTreeSet::new()));
            finder.visit_expr(&closure.body);
        });
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        let compares = match &binary.op {
            syn::BinOp::Eq(operator) => Some(operator.spans[0]),
            syn::BinOp::Ne(operator) => Some(operator.spans[0]),
            _ => None,
        };
        let (left, right) = (&binary.left, &binary.right);
        if let Some(span) = compares
            && (self.is_name(left) && self.is_constant(right) || self.is_constant(left) && self.is_name(right))
        {
            self.add_decision(span, "a comparison");
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let method = call.method.to_string();
        let of_name = self.is_name(&call.receiver);
        let by_constant = call.args.iter().any(|argument| self.is_constant(argument));
        let for_name = call.args.iter().any(|argument| self.is_name(argument));
        if of_name && by_constant && COMPARISON_METHODS.contains(&method.as_str())
            || for_name && self.is_constant(&call.receiver) && LIST_SEARCH_METHODS.contains(&method.as_str())
            || by_constant && COLUMN_SEARCH_METHODS.contains(&method.as_str())
        {
            self.add_decision(call.method.span(), &format!("`{method}`"));
        }
        self.visit_expr(&call.receiver);
        // A test gives its closure characters.
        let is_comparison = COMPARISON_METHODS.contains(&method.as_str());
        let receives = if is_comparison { BTreeSet::new() } else { self.value_origins(&call.receiver) };
        for argument in &call.args {
            match argument {
                syn::Expr::Closure(closure) => self.visit_in_scope(|finder| {
                    closure.inputs.iter().for_each(|input| finder.declare_variables(input, &receives));
                    finder.visit_expr(&closure.body);
                }),
                other => self.visit_expr(other),
            }
        }
        self.collect_arguments(&method, call.args.iter());
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        visit::visit_expr_call(self, call);
        if let Some(function) = last_segment(&call.func) {
            self.collect_arguments(&function, call.args.iter());
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_literals(&call.tokens);
        let name = call.path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default();
        let matches = |input: syn::parse::ParseStream| {
            let scrutinee: syn::Expr = input.parse()?;
            let _: syn::Token![,] = input.parse()?;
            let pattern = syn::Pat::parse_multi_with_leading_vert(input)?;
            let guard = match input.parse::<Option<syn::Token![if]>>()? {
                Some(_) => Some(input.parse::<syn::Expr>()?),
                None => None,
            };
            let _: Option<syn::Token![,]> = input.parse()?;
            Ok((scrutinee, pattern, guard))
        };
        if name == "matches" {
            if let Ok((scrutinee, pattern, guard)) = matches.parse2(call.tokens.clone()) {
                self.visit_in_scope(|finder| {
                    finder.visit_match(call.bang_token.span, &scrutinee, &[&pattern]);
                    let values = finder.value_origins(&scrutinee);
                    finder.visit_parsed(&scrutinee);
                    finder.declare_variables(&pattern, &values);
                    guard.iter().for_each(|guard| finder.visit_parsed(guard));
                });
            }
        } else if let Some(arguments) = parse_arguments(&call.tokens) {
            arguments.iter().for_each(|argument| self.visit_parsed(argument));
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.check_text(literal.span(), &literal.value());
    }

    fn visit_lit_char(&mut self, literal: &'ast syn::LitChar) {
        self.check_text(literal.span(), &literal.value().to_string());
    }
}

impl DecisionFinder {
    /// Visits an expression that a macro's tokens were parsed to.
    fn visit_parsed(&mut self, expr: &syn::Expr) {
        Visit::visit_expr(self, expr);
    }

    fn collect_arguments<'a>(&mut self, function: &str, arguments: impl Iterator<Item = &'a syn::Expr>) {
        for (at, argument) in arguments.enumerate() {
            let values = self.value_origins(argument);
            if !values.is_empty() {
                self.collected_arguments.entry((function.to_owned(), at)).or_default().extend(values);
            }
        }
    }

    fn visit_literals(&mut self, tokens: &TokenStream) {
        for token in tokens.clone() {
            match token {
                TokenTree::Literal(literal) => self.check_literal(&syn::Lit::new(literal)),
                TokenTree::Group(group) => self.visit_literals(&group.stream()),
                TokenTree::Ident(_) | TokenTree::Punct(_) => (),
            }
        }
    }

    fn check_literal(&mut self, literal: &syn::Lit) {
        match literal {
            syn::Lit::Str(text) => self.check_text(text.span(), &text.value()),
            syn::Lit::Char(char) => self.check_text(char.span(), &char.value().to_string()),
            _ => (),
        }
    }

    fn check_text(&mut self, span: Span, text: &str) {
        let is_mark = |char: char| char.is_control() && !ALLOWED_CONTROL_CHARACTERS.contains(&char);
        if text.contains(is_mark) || (1 < text.len() && text.contains('\0')) {
            self.add_finding(span, "a control character".to_owned());
        }
    }
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item;
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    crate::crate_map::is_test_attribute(attributes)
        || attributes.iter().any(|attribute| attribute.path().is_ident("test"))
}
