//! Declarations of the crates, by their syntax trees: names, types that a whole crate sees, and texts of logs and errors.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::map::is_test;
use crate::workspace::Workspace;

/// Macros of `tracing` that log.
const LOG_MACROS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The declarations of a crate, tests excluded.
#[derive(Default)]
pub(super) struct Declarations {
    /// Types that are visible in the whole crate.
    types: Vec<Declared>,
    /// Names of all kinds.
    pub(super) names: Vec<Declared>,
    /// Texts that are logged.
    pub(super) logs: Vec<Declared>,
    /// Texts of errors.
    pub(super) errors: Vec<Declared>,
}

/// A name or a text, and the line that has it.
pub(super) struct Declared {
    pub(super) text: String,
    pub(super) place: String,
}

impl Declarations {
    /// Each type of the same name as one before it, with the place of that one.
    pub(super) fn same_names(&self) -> impl Iterator<Item = (String, String)> {
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        self.types.iter().filter_map(move |declared| match first.get(declared.text.as_str()) {
            Some(place) => Some((declared.place.clone(), format!("{} is a type in {place} too", declared.text))),
            None => {
                first.insert(&declared.text, &declared.place);
                None
            }
        })
    }
}

/// The declarations of each crate.
///
/// # Errors
/// A file that does not parse.
pub(super) fn read(workspace: &Workspace) -> Result<BTreeMap<String, Declarations>, String> {
    let mut all: BTreeMap<String, Declarations> = BTreeMap::new();
    for (path, text) in workspace.sources.iter().filter(|(path, _)| !crate::files::is_test(path)) {
        let Some(member) = workspace.crates.iter().find(|member| path.starts_with(member.folder.join("src"))) else {
            continue;
        };
        let shown = workspace.display_path(path).to_string();
        let file = syn::parse_file(text).map_err(|error| format!("cannot parse {shown}: {error}"))?;
        Reader { path: Path::new(&shown), into: all.entry(member.name.clone()).or_default() }.visit_file(&file);
    }
    Ok(all)
}

struct Reader<'a> {
    path: &'a Path,
    into: &'a mut Declarations,
}

impl Reader<'_> {
    fn declared(&self, text: String, line: usize) -> Declared {
        Declared { text, place: format!("{}:{line}", self.path.display()) }
    }

    fn name(&mut self, kind: &str, name: &syn::Ident) {
        let declared = self.declared(format!("{kind} {name}"), name.span().start().line);
        self.into.names.push(declared);
    }

    fn log(&mut self, name: &syn::Ident, arguments: &TokenStream) {
        if let Some(text) = message(arguments) {
            let declared = self.declared(text, name.span().start().line);
            self.into.logs.push(declared);
        }
    }

    /// Finds logs in the arguments of another macro, such as `select!`, which are tokens without a syntax tree.
    fn nested_logs(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            if let (TokenTree::Ident(name), [TokenTree::Punct(mark), TokenTree::Group(arguments), ..]) =
                (token, &tokens[at + 1..])
                && mark.as_char() == '!'
                && is_log(name)
            {
                self.log(name, &arguments.stream());
            }
            if let TokenTree::Group(group) = token {
                self.nested_logs(&group.stream());
            }
        }
    }

    fn type_name(&mut self, kind: &str, name: &syn::Ident, visibility: &syn::Visibility) {
        self.name(kind, name);
        let is_wide = match visibility {
            syn::Visibility::Public(_) => true,
            syn::Visibility::Restricted(to) => to.path.is_ident("crate"),
            syn::Visibility::Inherited => false,
        };
        if is_wide {
            let declared = self.declared(name.to_string(), name.span().start().line);
            self.into.types.push(declared);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test(&module.attrs) {
            self.name("mod", &module.ident);
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.type_name("struct", &item.ident, &item.vis);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.type_name("enum", &item.ident, &item.vis);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.type_name("trait", &item.ident, &item.vis);
        visit::visit_item_trait(self, item);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.type_name("type", &item.ident, &item.vis);
        visit::visit_item_type(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.name("const", &item.ident);
        visit::visit_item_const(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.name("fn", &signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.name("variant", &variant.ident);
        visit::visit_variant(self, variant);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            self.name("field", name);
        }
        visit::visit_field(self, field);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta
            && list.path.is_ident("error")
            && let Some(text) = first_text(&list.tokens)
        {
            let declared = self.declared(text, attribute.pound_token.span.start().line);
            self.into.errors.push(declared);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        match call.path.segments.last().map(|segment| &segment.ident) {
            Some(name) if is_log(name) => self.log(name, &call.tokens),
            _ => self.nested_logs(&call.tokens),
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let is_error = matches!(&*call.func, syn::Expr::Path(path)
            if path.path.segments.iter().any(|segment| segment.ident.to_string().ends_with("Error")));
        for text in call.args.iter().filter(|_| is_error).filter_map(text_of) {
            let declared = self.declared(text, call.paren_token.span.open().start().line);
            self.into.errors.push(declared);
        }
        visit::visit_expr_call(self, call);
    }
}

fn is_log(name: &syn::Ident) -> bool {
    LOG_MACROS.iter().any(|log| name == log)
}

fn text_of(argument: &syn::Expr) -> Option<String> {
    match argument {
        syn::Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        syn::Expr::Macro(call) => first_text(&call.mac.tokens),
        _ => None,
    }
}

/// The first string among tokens, if nothing but a comma comes before it.
fn first_text(tokens: &TokenStream) -> Option<String> {
    text(&tokens.clone().into_iter().next()?)
}

/// The message of a log macro: the first string that is an argument of its own, after the fields.
fn message(tokens: &TokenStream) -> Option<String> {
    let mut is_first = true;
    for token in tokens.clone() {
        if is_first && let Some(text) = text(&token) {
            return Some(text);
        }
        is_first = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == ',');
    }
    None
}

fn text(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    match syn::Lit::new(literal.clone()) {
        syn::Lit::Str(text) => Some(text.value()),
        _ => None,
    }
}
