//! Decisions by name in one file, found in its syntax tree.
//!
//! A *name* is the result of a method such as `name()`, the text of an error, or a variable, a parameter or a closure's
//! argument that has such a value. A *constant* is a string literal, a constant, or a local list of these. A decision is a
//! comparison, a match, a test or a search of a name with a constant.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::parse::Parser as _;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};

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
const KEEPING_METHODS: &[&str] = &[
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
/// Methods that test or divide their receiver by an argument.
const TESTS: &[&str] = &[
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
const SEARCHES: &[&str] = &["binary_search", "contains"];
/// Methods that search a schema or a batch for a column by its name.
const COLUMN_SEARCHES: &[&str] = &[
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
const TEXT_CONTROLS: &[char] = &['\0', '\u{8}', '\t', '\n', '\u{b}', '\u{c}', '\r', '\u{1b}'];

/// A decision by name, or a control character in a string.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) line: usize,
    /// Innermost function, constant or other item around it.
    pub(super) item: String,
    pub(super) text: String,
}

/// Returns the findings of a file's code outside of tests.
pub(super) fn findings(file: &syn::File) -> Vec<Finding> {
    let mut calls = Parameters::default();
    loop {
        let mut finder = Finder::new(calls.clone());
        finder.visit_file(file);
        if finder.passed == calls {
            finder.findings.sort();
            finder.findings.dedup();
            return finder.findings;
        }
        calls = finder.passed;
    }
}

/// Kind of a value, as far as decisions by name are concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Name,
    Constant,
}

/// Values that calls in the file pass to its functions and closures, by the function's name and the argument's position.
///
/// A function that gets a name from one caller and a constant from another has both.
type Parameters = BTreeMap<(String, usize), BTreeSet<Value>>;

struct Finder {
    /// Parameters as an earlier pass over the file found them.
    parameters: Parameters,
    passed: Parameters,
    /// Variables in scope, the innermost last.
    variables: Vec<(String, BTreeSet<Value>)>,
    items: Vec<String>,
    findings: Vec<Finding>,
}

impl Finder {
    fn new(parameters: Parameters) -> Self {
        Self { passed: parameters.clone(), parameters, variables: Vec::new(), items: Vec::new(), findings: Vec::new() }
    }

    fn find(&mut self, span: Span, text: String) {
        let item = self.items.last().cloned().unwrap_or_default();
        self.findings.push(Finding { line: span.start().line, item, text });
    }

    fn decision(&mut self, span: Span, how: &str) {
        self.find(span, how.to_owned());
    }

    /// Visits an item under its name; variables of the items around it are out of scope.
    fn within(&mut self, name: &syn::Ident, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::take(&mut self.variables);
        self.items.push(name.to_string());
        visit(self);
        self.items.pop();
        self.variables = outer;
    }

    fn scoped(&mut self, visit: impl FnOnce(&mut Self)) {
        let depth = self.variables.len();
        visit(self);
        self.variables.truncate(depth);
    }

    /// Declares every variable of a pattern with the value.
    fn bind(&mut self, pattern: &syn::Pat, values: &BTreeSet<Value>) {
        let mut bound = Bound { variables: Vec::new(), is_error: false };
        bound.visit_pat(pattern);
        for (name, is_error_text) in bound.variables {
            let mut values = values.clone();
            if is_error_text {
                values.insert(Value::Name);
            }
            self.variables.push((name, values));
        }
    }

    fn bind_parameters<'a>(&mut self, function: &str, parameters: impl Iterator<Item = &'a syn::Pat>) {
        for (at, pattern) in parameters.enumerate() {
            let values = self.parameters.get(&(function.to_owned(), at)).cloned().unwrap_or_default();
            self.bind(pattern, &values);
        }
    }

    fn visit_function(&mut self, signature: &syn::Signature, visit: impl FnOnce(&mut Self)) {
        let name = signature.ident.to_string();
        self.within(&signature.ident, |finder| {
            let typed = signature.inputs.iter().filter_map(|input| match input {
                syn::FnArg::Typed(typed) => Some(typed.pat.as_ref()),
                syn::FnArg::Receiver(_) => None,
            });
            finder.bind_parameters(&name, typed);
            visit(finder);
        });
    }

    fn values(&self, expr: &syn::Expr) -> BTreeSet<Value> {
        let is = [(Value::Name, self.is_name(expr)), (Value::Constant, self.is_constant(expr))];
        is.into_iter().filter_map(|(value, is)| is.then_some(value)).collect()
    }

    fn variable(&self, path: &syn::Path, value: Value) -> bool {
        let Some(ident) = path.get_ident() else { return false };
        let declared = self.variables.iter().rev().find(|(name, _)| ident == name);
        declared.is_some_and(|(_, values)| values.contains(&value))
    }

    fn is_name(&self, expr: &syn::Expr) -> bool {
        use syn::Expr;
        match expr {
            Expr::MethodCall(call) => self.is_name_call(call),
            Expr::Path(path) => self.variable(&path.path, Value::Name),
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
            Expr::Call(call) => match (path_end(&call.func), call.args.first()) {
                (Some(function), Some(argument)) if call.args.len() == 1 => {
                    is_name_method(&function) && function != "to_string"
                        || ["Some", "Ok", "Borrowed", "Owned", "from"].contains(&function.as_str())
                            && self.is_name(argument)
                }
                _ => false,
            },
            Expr::Macro(call) if is_format(&call.mac) => self.formats_name(&call.mac.tokens),
            Expr::Block(block) => tail(&block.block).is_some_and(|tail| self.is_name(tail)),
            Expr::If(branch) => {
                tail(&branch.then_branch).is_some_and(|tail| self.is_name(tail))
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
                other => path_end(other).is_some_and(|end| is_name_method(&end)),
            });
        }
        KEEPING_METHODS.contains(&method.as_str()) && self.is_name(&call.receiver)
    }

    fn closure_returns_name(&self, closure: &syn::ExprClosure, takes_name: bool) -> bool {
        let mut inner = Self::new(self.parameters.clone());
        inner.variables.clone_from(&self.variables);
        let values = takes_name.then_some(Value::Name).into_iter().collect();
        closure.inputs.iter().for_each(|input| inner.bind(input, &values));
        inner.is_name(&closure.body)
    }

    /// Returns whether `format!` writes a name or an error: as an argument, or as a variable between braces.
    fn formats_name(&self, tokens: &TokenStream) -> bool {
        let Some(arguments) = arguments(tokens) else { return false };
        let inline = arguments.first().and_then(text_of).is_some_and(|text| {
            let named = text.split('{').skip(1).filter_map(|rest| rest.split(['}', ':']).next().map(str::to_owned));
            named
                .filter_map(|name| syn::parse_str(&name).ok())
                .any(|path: syn::Path| path.is_ident("error") || self.variable(&path, Value::Name))
        });
        inline || arguments.iter().skip(1).any(|argument| self.is_name(argument))
    }

    fn is_constant(&self, expr: &syn::Expr) -> bool {
        use syn::Expr;
        match expr {
            // Single characters divide texts of all kinds.
            Expr::Lit(literal) => matches!(&literal.lit, syn::Lit::Str(_)),
            Expr::Path(path) => is_constant_path(&path.path) || self.variable(&path.path, Value::Constant),
            Expr::Reference(reference) => self.is_constant(&reference.expr),
            Expr::Paren(paren) => self.is_constant(&paren.expr),
            Expr::Group(group) => self.is_constant(&group.expr),
            Expr::Unary(unary) => self.is_constant(&unary.expr),
            Expr::Array(array) => array.elems.iter().any(|element| self.is_constant(element)),
            Expr::Tuple(tuple) => tuple.elems.iter().any(|element| self.is_constant(element)),
            Expr::Index(index) => self.is_constant(&index.expr),
            Expr::MethodCall(call) => {
                KEEPING_METHODS.contains(&call.method.to_string().as_str()) && self.is_constant(&call.receiver)
            }
            Expr::Call(call) => {
                path_end(&call.func).is_some_and(|end| end == "Some" || end == "from")
                    && call.args.iter().any(|argument| self.is_constant(argument))
            }
            Expr::Macro(call) => is_format(&call.mac),
            Expr::If(branch) => tail(&branch.then_branch).is_some_and(|tail| self.is_constant(tail)),
            _ => false,
        }
    }

    fn visit_match(&mut self, span: Span, scrutinee: &syn::Expr, patterns: &[&syn::Pat]) {
        let is_decided = match scrutinee {
            syn::Expr::Tuple(tuple) => tuple.elems.iter().enumerate().any(|(at, element)| {
                self.is_name(element) && patterns.iter().any(|pattern| has_constant(pattern, Some(at)))
            }),
            other => self.is_name(other) && patterns.iter().any(|pattern| has_constant(pattern, None)),
        };
        if is_decided {
            self.decision(span, "a match");
        }
    }
}

impl<'ast> Visit<'ast> for Finder {
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
        self.within(&item.ident, |finder| visit::visit_item_const(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.within(&item.ident, |finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.within(&item.ident, |finder| visit::visit_item_static(finder, item));
    }

    /// Attributes are not visited: documentation is no code, and other tools read the rest.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.scoped(|finder| visit::visit_block(finder, block));
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        let values = match local.init.as_ref().map(|init| init.expr.as_ref()) {
            Some(syn::Expr::Closure(closure)) => {
                if let syn::Pat::Ident(name) = &local.pat {
                    let name = name.ident.to_string();
                    self.scoped(|finder| {
                        finder.bind_parameters(&name, closure.inputs.iter());
                        finder.visit_expr(&closure.body);
                    });
                }
                BTreeSet::new()
            }
            Some(init) => {
                self.visit_match(local.let_token.span, init, &[&local.pat]);
                self.values(init)
            }
            None => BTreeSet::new(),
        };
        self.bind(&local.pat, &values);
    }

    fn visit_expr_let(&mut self, condition: &'ast syn::ExprLet) {
        visit::visit_expr_let(self, condition);
        self.visit_match(condition.let_token.span, &condition.expr, &[&condition.pat]);
        let values = self.values(&condition.expr);
        self.bind(&condition.pat, &values);
    }

    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.scoped(|finder| visit::visit_expr_if(finder, branch));
    }

    fn visit_expr_while(&mut self, repeated: &'ast syn::ExprWhile) {
        self.scoped(|finder| visit::visit_expr_while(finder, repeated));
    }

    fn visit_expr_for_loop(&mut self, repeated: &'ast syn::ExprForLoop) {
        self.visit_expr(&repeated.expr);
        let values = self.values(&repeated.expr);
        self.scoped(|finder| {
            finder.bind(&repeated.pat, &values);
            finder.visit_block(&repeated.body);
        });
    }

    fn visit_expr_match(&mut self, choice: &'ast syn::ExprMatch) {
        self.visit_expr(&choice.expr);
        let patterns: Vec<&syn::Pat> = choice.arms.iter().map(|arm| &arm.pat).collect();
        self.visit_match(choice.match_token.span, &choice.expr, &patterns);
        let values = self.values(&choice.expr);
        for arm in &choice.arms {
            self.scoped(|finder| {
                finder.bind(&arm.pat, &values);
                visit::visit_arm(finder, arm);
            });
        }
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        self.scoped(|finder| {
            closure.inputs.iter().for_each(|input| finder.bind(input, &BTreeSet::new()));
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
            self.decision(span, "a comparison");
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let method = call.method.to_string();
        let of_name = self.is_name(&call.receiver);
        let by_constant = call.args.iter().any(|argument| self.is_constant(argument));
        let for_name = call.args.iter().any(|argument| self.is_name(argument));
        if of_name && by_constant && TESTS.contains(&method.as_str())
            || for_name && self.is_constant(&call.receiver) && SEARCHES.contains(&method.as_str())
            || by_constant && COLUMN_SEARCHES.contains(&method.as_str())
        {
            self.decision(call.method.span(), &format!("`{method}`"));
        }
        self.visit_expr(&call.receiver);
        // A test gives its closure characters.
        let receives = if TESTS.contains(&method.as_str()) { BTreeSet::new() } else { self.values(&call.receiver) };
        for argument in &call.args {
            match argument {
                syn::Expr::Closure(closure) => self.scoped(|finder| {
                    closure.inputs.iter().for_each(|input| finder.bind(input, &receives));
                    finder.visit_expr(&closure.body);
                }),
                other => self.visit_expr(other),
            }
        }
        self.pass(&method, call.args.iter());
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        visit::visit_expr_call(self, call);
        if let Some(function) = path_end(&call.func) {
            self.pass(&function, call.args.iter());
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
                self.scoped(|finder| {
                    finder.visit_match(call.bang_token.span, &scrutinee, &[&pattern]);
                    let values = finder.values(&scrutinee);
                    finder.visit_parsed(&scrutinee);
                    finder.bind(&pattern, &values);
                    guard.iter().for_each(|guard| finder.visit_parsed(guard));
                });
            }
        } else if let Some(arguments) = arguments(&call.tokens) {
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

impl Finder {
    /// Visits an expression that a macro's tokens were parsed to.
    fn visit_parsed(&mut self, expr: &syn::Expr) {
        Visit::visit_expr(self, expr);
    }

    fn pass<'a>(&mut self, function: &str, arguments: impl Iterator<Item = &'a syn::Expr>) {
        for (at, argument) in arguments.enumerate() {
            let values = self.values(argument);
            if !values.is_empty() {
                self.passed.entry((function.to_owned(), at)).or_default().extend(values);
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
        let is_mark = |char: char| char.is_control() && !TEXT_CONTROLS.contains(&char);
        if text.contains(is_mark) || (1 < text.len() && text.contains('\0')) {
            self.find(span, "a control character".to_owned());
        }
    }
}

/// Variables of a pattern, and whether each is the content of an error's variant.
struct Bound {
    variables: Vec<(String, bool)>,
    is_error: bool,
}

impl<'ast> Visit<'ast> for Bound {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        self.variables.push((pattern.ident.to_string(), self.is_error));
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_pat_tuple_struct(&mut self, pattern: &'ast syn::PatTupleStruct) {
        let names_error = pattern.path.segments.iter().any(|segment| segment.ident.to_string().ends_with("Error"));
        let outer = std::mem::replace(&mut self.is_error, names_error);
        visit::visit_pat_tuple_struct(self, pattern);
        self.is_error = outer;
    }
}

fn is_name_method(method: &str) -> bool {
    NAME_METHODS.contains(&method)
}

fn is_format(call: &syn::Macro) -> bool {
    call.path.is_ident("format")
}

fn arguments(tokens: &TokenStream) -> Option<Vec<syn::Expr>> {
    let parsed = Punctuated::<syn::Expr, syn::Token![,]>::parse_terminated.parse2(tokens.clone());
    parsed.ok().map(|arguments| arguments.into_iter().collect())
}

fn text_of(expr: &syn::Expr) -> Option<String> {
    match expr {
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

/// Returns the last part of a path.
fn path_end(expr: &syn::Expr) -> Option<String> {
    match expr {
        syn::Expr::Path(path) => path.path.segments.last().map(|segment| segment.ident.to_string()),
        _ => None,
    }
}

fn tail(block: &syn::Block) -> Option<&syn::Expr> {
    match block.stmts.last() {
        Some(syn::Stmt::Expr(expr, None)) => Some(expr),
        _ => None,
    }
}

fn is_constant_path(path: &syn::Path) -> bool {
    path.segments.last().is_some_and(|segment| {
        let name = segment.ident.to_string();
        name.len() > 1 && name.chars().all(|char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_')
    })
}

/// Returns whether a pattern compares with a constant; of a tuple, the element at the position.
fn has_constant(pattern: &syn::Pat, at: Option<usize>) -> bool {
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
    crate::map::is_test(attributes) || attributes.iter().any(|attribute| attribute.path().is_ident("test"))
}
