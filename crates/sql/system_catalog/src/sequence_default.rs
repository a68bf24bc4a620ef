//! Sequences in DEFAULTs: stored by OID, so that renamed or moved sequences stay valid, and displayed by name.

use std::borrow::Cow;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Value, VisitorMut,
};
use syntax::{Walk, parse_stored_expr, to_sql_text};
use types::{Oid, SqlResult, SqlType};

use crate::row_source::VisibleRelations;
use crate::system_functions::{display_name, parse_object_name};

/// Functions whose first argument is a sequence.
const SEQUENCE_FUNCTIONS: [&str; 3] = ["nextval", "currval", "setval"];

/// Replaces the names of sequences in a DEFAULT by their OIDs; returns the DEFAULT and these OIDs.
///
/// # Errors
/// `42P01` for a sequence that does not exist.
pub(crate) fn resolve_default(relations: VisibleRelations<'_>, default: &Expr) -> SqlResult<(Expr, Vec<Oid>)> {
    let mut default = default.clone();
    let mut resolver = SequenceNameToOid { relations, sequences: Vec::new() };
    match default.walk_mut(&mut resolver) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok((default, resolver.sequences)),
    }
}

/// Returns the text of a DEFAULT as clients see it, with the names of sequences.
pub(crate) fn display_default<'t>(relations: VisibleRelations<'_>, text: &'t str) -> Cow<'t, str> {
    if !text.contains("::regclass") && !text.contains("::REGCLASS") {
        return Cow::Borrowed(text);
    }
    let Ok(mut default) = parse_stored_expr(text) else { return Cow::Borrowed(text) };
    // The visitor never breaks.
    let _: ControlFlow<()> = default.walk_mut(&mut SequenceOidToName { relations });
    Cow::Owned(to_sql_text(&default))
}

/// Returns the DEFAULT of a `serial` column: the next value of its sequence.
#[must_use]
pub fn nextval_default(sequence: Oid) -> String {
    format!("nextval('{sequence}'::{})", SqlType::Regclass)
}

struct SequenceNameToOid<'a> {
    relations: VisibleRelations<'a>,
    sequences: Vec<Oid>,
}

impl VisitorMut for SequenceNameToOid<'_> {
    type Break = types::SqlError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let Some(argument) = sequence_argument(expr) else { return ControlFlow::Continue(()) };
        let Some(text) = constant_text(argument) else { return ControlFlow::Continue(()) };
        match parse_object_name(&SqlType::Regclass, text, self.relations) {
            Err(error) => ControlFlow::Break(error),
            Ok(oid) => {
                if self.relations.state().sequence(Oid(oid)).is_some() && !self.sequences.contains(&Oid(oid)) {
                    self.sequences.push(Oid(oid));
                }
                if let Ok(mut call) = parse_stored_expr(&nextval_default(Oid(oid)))
                    && let Some(settled) = sequence_argument(&mut call)
                {
                    std::mem::swap(argument, settled);
                }
                ControlFlow::Continue(())
            }
        }
    }
}

struct SequenceOidToName<'a> {
    relations: VisibleRelations<'a>,
}

impl VisitorMut for SequenceOidToName<'_> {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(Expr::Cast { expr: inner, data_type, .. }) = sequence_argument(expr)
            && let Expr::Value(value) = inner.as_mut()
            && let Value::SingleQuotedString(text) = &mut value.value
            && let Ok(oid) = text.parse::<u32>()
        {
            *text = display_name(&SqlType::Regclass, oid, self.relations);
            *data_type = DataType::Custom(ObjectName::from(vec![Ident::new("regclass")]), Vec::new());
        }
        ControlFlow::Continue(())
    }
}

/// Returns the first argument of a call of a sequence function.
fn sequence_argument(expr: &mut Expr) -> Option<&mut Expr> {
    let Expr::Function(call) = expr else { return None };
    let name = call.name.0.last()?.as_ident()?;
    if !SEQUENCE_FUNCTIONS.contains(&name.value.as_str()) {
        return None;
    }
    let FunctionArguments::List(arguments) = &mut call.args else { return None };
    match arguments.args.first_mut()? {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument),
        _ => None,
    }
}

/// Returns the string in `'s'` or `'s'::regclass`.
fn constant_text(argument: &Expr) -> Option<&str> {
    let value = match argument {
        Expr::Value(value) => value,
        Expr::Cast { expr, data_type, .. } => match expr.as_ref() {
            Expr::Value(value) if data_type.to_string().eq_ignore_ascii_case("regclass") => value,
            _ => return None,
        },
        _ => return None,
    };
    match &value.value {
        Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}
