//! Declarations of the crates, by their syntax trees: names, types that a whole crate sees, and texts of logs and errors.

use std::collections::BTreeMap;
use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use crate::crate_map::is_test_attribute;
use crate::workspace::Workspace;

/// Macros of `tracing` that log.
const LOG_MACROS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// The declarations of a crate, tests excluded.
#[derive(Default)]
pub(super) struct Declarations {
    /// Types that are visible in the whole crate.
    crate_visible_types: Vec<LocatedText>,
    /// Names of all kinds.
    pub(super) names: Vec<LocatedText>,
    /// Texts that are logged.
    pub(super) logs: Vec<LocatedText>,
    /// Texts of errors.
    pub(super) errors: Vec<LocatedText>,
}

/// A name or a text, and the line that has it.
pub(super) struct LocatedText {
    pub(super) text: String,
    pub(super) location: String,
}

impl Declarations {
    /// Each type of the same name as one before it, with the place of that one.
    pub(super) fn duplicate_types(&self) -> impl Iterator<Item = (String, String)> {
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        self.crate_visible_types.iter().filter_map(move |declared| match first.get(declared.text.as_str()) {
            Some(location) => {
                Some((declared.location.clone(), format!("{} is a type in {location} too", declared.text)))
            }
            None => {
                first.insert(&declared.text, &declared.location);
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
    for (path, text) in workspace.sources.iter().filter(|(path, _)| !crate::source_file_checks::is_test_source(path)) {
        let Some(member) = workspace.crates.iter().find(|member| path.starts_with(member.folder.join("src"))) else {
            continue;
        };
        let shown = workspace.display_path(path).to_string();
        let file = syn::parse_file(text).map_err(|error| format!("cannot parse {shown}: {error}"))?;
        let declarations = all.entry(member.name.clone()).or_default();
        DeclarationReader { path: Path::new(&shown), owner: None, declarations }.visit_file(&file);
    }
    Ok(all)
}

struct DeclarationReader<'a> {
    path: &'a Path,
    /// Type around the names, with which a reader of the code sees them.
    owner: Option<String>,
    declarations: &'a mut Declarations,
}

impl DeclarationReader<'_> {
    fn at_line(&self, text: String, line: usize) -> LocatedText {
        LocatedText { text, location: format!("{}:{line}", self.path.display()) }
    }

    fn add_name(&mut self, kind: &str, name: &syn::Ident) {
        let owner = self.owner.as_ref().map(|owner| format!("{owner}::")).unwrap_or_default();
        let declared = self.at_line(format!("{kind} {owner}{name}"), name.span().start().line);
        self.declarations.names.push(declared);
    }

    /// Visits what a type contains.
    fn within(&mut self, owner: String, visit: impl FnOnce(&mut Self)) {
        let around = self.owner.replace(owner);
        visit(self);
        self.owner = around;
    }

    fn add_log(&mut self, name: &syn::Ident, arguments: &TokenStream) {
        if let Some(text) = log_message(arguments) {
            let declared = self.at_line(text, name.span().start().line);
            self.declarations.logs.push(declared);
        }
    }

    /// Finds logs in the arguments of another macro, such as `select!`, which are tokens without a syntax tree.
    fn add_nested_logs(&mut self, tokens: &TokenStream) {
        let tokens: Vec<TokenTree> = tokens.clone().into_iter().collect();
        for (at, token) in tokens.iter().enumerate() {
            if let (TokenTree::Ident(name), [TokenTree::Punct(mark), TokenTree::Group(arguments), ..]) =
                (token, &tokens[at + 1..])
                && mark.as_char() == '!'
                && is_log(name)
            {
                self.add_log(name, &arguments.stream());
            }
            if let TokenTree::Group(group) = token {
                self.add_nested_logs(&group.stream());
            }
        }
    }

    fn add_type(&mut self, kind: &str, name: &syn::Ident, visibility: &syn::Visibility) {
        self.add_name(kind, name);
        let is_wide = match visibility {
            syn::Visibility::Public(_) => true,
            syn::Visibility::Restricted(to) => to.path.is_ident("crate"),
            syn::Visibility::Inherited => false,
        };
        if is_wide {
            let declared = self.at_line(name.to_string(), name.span().start().line);
            self.declarations.crate_visible_types.push(declared);
        }
    }
}

impl<'ast> Visit<'ast> for DeclarationReader<'_> {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_test_attribute(&module.attrs) {
            self.add_name("mod", &module.ident);
            visit::visit_item_mod(self, module);
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add_type("struct", &item.ident, &item.vis);
        self.within(item.ident.to_string(), |reader| visit::visit_item_struct(reader, item));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add_type("enum", &item.ident, &item.vis);
        self.within(item.ident.to_string(), |reader| visit::visit_item_enum(reader, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add_type("trait", &item.ident, &item.vis);
        self.within(item.ident.to_string(), |reader| visit::visit_item_trait(reader, item));
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let name = match &*item.self_ty {
            syn::Type::Path(path) => path.path.segments.last(),
            _ => None,
        };
        match name {
            Some(name) => self.within(name.ident.to_string(), |reader| visit::visit_item_impl(reader, item)),
            None => visit::visit_item_impl(self, item),
        }
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add_type("type", &item.ident, &item.vis);
        visit::visit_item_type(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.add_name("const", &item.ident);
        visit::visit_item_const(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.add_name("fn", &signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.add_name("variant", &variant.ident);
        let owner = self.owner.as_ref().map(|owner| format!("{owner}::")).unwrap_or_default();
        self.within(format!("{owner}{}", variant.ident), |reader| visit::visit_variant(reader, variant));
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            self.add_name("field", name);
        }
        visit::visit_field(self, field);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &attribute.meta
            && list.path.is_ident("error")
            && let Some(text) = first_text(&list.tokens)
        {
            let declared = self.at_line(text, attribute.pound_token.span.start().line);
            self.declarations.errors.push(declared);
        }
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        match call.path.segments.last().map(|segment| &segment.ident) {
            Some(name) if is_log(name) => self.add_log(name, &call.tokens),
            _ => self.add_nested_logs(&call.tokens),
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let is_error = matches!(&*call.func, syn::Expr::Path(path)
            if path.path.segments.iter().any(|segment| segment.ident.to_string().ends_with("Error")));
        for text in call.args.iter().filter(|_| is_error).filter_map(string_literal) {
            let declared = self.at_line(text, call.paren_token.span.open().start().line);
            self.declarations.errors.push(declared);
        }
        visit::visit_expr_call(self, call);
    }
}

fn is_log(name: &syn::Ident) -> bool {
    LOG_MACROS.iter().any(|log| name == log)
}

fn string_literal(argument: &syn::Expr) -> Option<String> {
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
    string_token(&tokens.clone().into_iter().next()?)
}

/// The message of a log macro: the first string that is an argument of its own, after the fields.
fn log_message(tokens: &TokenStream) -> Option<String> {
    let mut is_first = true;
    for token in tokens.clone() {
        if is_first && let Some(text) = string_token(&token) {
            return Some(text);
        }
        is_first = matches!(&token, TokenTree::Punct(mark) if mark.as_char() == ',');
    }
    None
}

fn string_token(token: &TokenTree) -> Option<String> {
    let TokenTree::Literal(literal) = token else { return None };
    match syn::Lit::new(literal.clone()) {
        syn::Lit::Str(text) => Some(text.value()),
        _ => None,
    }
}
