//! Function calls, and special syntax that has the form of one.

use sqlparser::ast::{
    DateTimeField, DuplicateTreatment, Expr, ExtractSyntax, Function, FunctionArg, FunctionArgExpr,
    FunctionArgOperator, FunctionArgumentClause, FunctionArgumentList, FunctionArguments, Ident, ObjectName,
    TrimWhereField, Value,
};
use types::SqlResult;

use super::Cursor;
use super::primary_expr::literal_expr;
use crate::lex::Token;

impl Cursor<'_> {
    /// Parses calls with grammar of their own, and functions that are called without parentheses; `None` for other
    /// words.
    pub(super) fn special_call(&mut self, word: &str, opens: bool) -> SqlResult<Option<Expr>> {
        let call = match word {
            "current_date" | "current_user" | "session_user" | "user" | "current_role" | "current_catalog" => {
                Expr::Function(self.call_without_parentheses()?)
            }
            "current_schema" if !opens => Expr::Function(self.call_without_parentheses()?),
            "current_time" | "current_timestamp" | "localtime" | "localtimestamp" => {
                let mut function = self.call_without_parentheses()?;
                if self.eat_symbol('(') {
                    let span = self.lexeme().span;
                    let precision = literal_expr(Value::Number(self.integer()?.to_string(), false), span);
                    self.expect_symbol(')')?;
                    function.args = arguments(vec![unnamed_argument(precision)]);
                }
                Expr::Function(function)
            }
            "collation" if self.next_is("collation for") => return Err(self.unsupported("COLLATION FOR")),
            _ if !opens => return Ok(None),
            "coalesce" | "greatest" | "least" | "nullif" | "grouping" => {
                let name = ObjectName::from(vec![self.label()?]);
                let args = self.parenthesized(|cursor| cursor.expr().map(unnamed_argument))?;
                Expr::Function(Function { args: arguments(args), ..new_function(name) })
            }
            "extract" => self.extract()?,
            "position" => self.position()?,
            "substring" => self.substring()?,
            "overlay" => self.overlay()?,
            "trim" => self.trim()?,
            "normalize" => self.normalize()?,
            "treat" => return Err(self.unsupported("TREAT")),
            "xmlconcat" | "xmlelement" | "xmlexists" | "xmlforest" | "xmlparse" | "xmlpi" | "xmlroot"
            | "xmlserialize" => return Err(self.unsupported("xml")),
            _ => return Ok(None),
        };
        Ok(Some(call))
    }

    fn call_without_parentheses(&mut self) -> SqlResult<Function> {
        let name = self.label()?;
        Ok(new_function(ObjectName::from(vec![name])))
    }

    /// Parses the arguments of a call and the clauses after them (WITHIN GROUP, FILTER, OVER), after the name.
    pub(super) fn call(&mut self, name: ObjectName) -> SqlResult<Expr> {
        self.expect_symbol('(')?;
        let mut list = FunctionArgumentList { duplicate_treatment: None, args: Vec::new(), clauses: Vec::new() };
        if self.eat_operator("*") {
            list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Wildcard));
        } else if !self.is_symbol(')') {
            if self.eat("distinct") {
                list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
            } else if self.eat("all") {
                list.duplicate_treatment = Some(DuplicateTreatment::All);
            }
            list.args = self.list(Self::argument)?;
        }
        self.finish_call(name, list)
    }

    /// Parses the rest of an ordinary call after its arguments.
    fn finish_call(&mut self, name: ObjectName, mut list: FunctionArgumentList) -> SqlResult<Expr> {
        let is_star = matches!(list.args[..], [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]);
        if !is_star && self.eat("order by") {
            list.clauses.push(FunctionArgumentClause::OrderBy(self.list(Self::order_by_expr)?));
        }
        self.expect_symbol(')')?;
        let mut call = Function { args: FunctionArguments::List(list), ..new_function(name) };
        if self.eat("within group") {
            self.expect_symbol('(')?;
            self.expect("order by")?;
            call.within_group = self.list(Self::order_by_expr)?;
            self.expect_symbol(')')?;
        }
        if self.next_is("filter") && *self.peek_at(1) == Token::Symbol('(') {
            self.next_index += 2;
            self.expect("where")?;
            call.filter = Some(Box::new(self.expr()?));
            self.expect_symbol(')')?;
        }
        if self.eat("over") {
            call.over = Some(self.over_clause()?);
        }
        Ok(Expr::Function(call))
    }

    /// Parses an argument: `expr`, `name => expr` or `table.*`.
    pub(crate) fn argument(&mut self) -> SqlResult<FunctionArg> {
        if self.next_is("variadic") {
            return Err(self.unsupported("VARIADIC"));
        }
        if matches!(self.peek_at(1), Token::Operator(operator) if operator == "=>" || operator == ":=") {
            let name = self.type_name()?;
            let arrow = self.eat_operator("=>");
            if !arrow {
                self.advance();
            }
            let operator = if arrow { FunctionArgOperator::RightArrow } else { FunctionArgOperator::Assignment };
            return Ok(FunctionArg::Named { name, arg: FunctionArgExpr::Expr(self.expr()?), operator });
        }
        if let Some(table) = self.table_wildcard()? {
            return Ok(FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(table)));
        }
        self.expr().map(unnamed_argument)
    }

    /// Parses `table.*`; `None`, with nothing consumed, if something else comes next.
    pub(crate) fn table_wildcard(&mut self) -> SqlResult<Option<ObjectName>> {
        let start = self.next_index;
        if matches!(self.peek(), Token::Word(_) | Token::Quoted(_))
            && *self.peek_at(1) == Token::Symbol('.')
            && let Ok(first) = self.name()
        {
            let mut parts = vec![first];
            while self.eat_symbol('.') {
                if self.eat_operator("*") {
                    return Ok(Some(ObjectName::from(parts)));
                }
                match self.label() {
                    Ok(part) => parts.push(part),
                    Err(_) => break,
                }
            }
        }
        self.next_index = start;
        Ok(None)
    }

    /// Parses `EXTRACT(field FROM expr)`.
    fn extract(&mut self) -> SqlResult<Expr> {
        self.next_index += 2;
        let field = match self.peek() {
            Token::Text(text) => {
                let field = Ident::new(text.clone());
                self.advance();
                field
            }
            _ => Ident { quote_style: None, ..self.label()? },
        };
        self.expect("from")?;
        let expr = Box::new(self.expr()?);
        self.expect_symbol(')')?;
        Ok(Expr::Extract { field: DateTimeField::Custom(field), syntax: ExtractSyntax::From, expr })
    }

    /// Parses `POSITION(part IN text)`.
    fn position(&mut self) -> SqlResult<Expr> {
        self.next_index += 2;
        let expr = Box::new(self.restricted_expr()?);
        self.expect("in")?;
        let r#in = Box::new(self.restricted_expr()?);
        self.expect_symbol(')')?;
        Ok(Expr::Position { expr, r#in })
    }

    /// Parses `SUBSTRING(text FROM start FOR count)`, or an ordinary call.
    fn substring(&mut self) -> SqlResult<Expr> {
        let start = self.next_index;
        self.next_index += 2;
        if !self.is_plain_argument() {
            let expr = Box::new(self.expr()?);
            if self.eat("similar") {
                let pattern = Some(Box::new(self.expr()?));
                self.expect("escape")?;
                let escape = Some(Box::new(self.expr()?));
                self.expect_symbol(')')?;
                return Ok(Expr::Substring {
                    expr,
                    substring_from: pattern,
                    substring_for: escape,
                    special: false,
                    shorthand: false,
                });
            }
            if self.next_is("from") || self.next_is("for") {
                let (mut from, mut length) = (None, None);
                loop {
                    if from.is_none() && self.eat("from") {
                        from = Some(Box::new(self.expr()?));
                    } else if length.is_none() && self.eat("for") {
                        length = Some(Box::new(self.expr()?));
                    } else {
                        break;
                    }
                }
                self.expect_symbol(')')?;
                return Ok(Expr::Substring {
                    expr,
                    substring_from: from,
                    substring_for: length,
                    special: false,
                    shorthand: false,
                });
            }
            return self.plain_call_with(start, *expr);
        }
        self.next_index = start;
        self.plain_call()
    }

    /// Parses `OVERLAY(text PLACING part FROM start FOR count)`, or an ordinary call.
    fn overlay(&mut self) -> SqlResult<Expr> {
        let start = self.next_index;
        self.next_index += 2;
        if !self.is_plain_argument() {
            let expr = Box::new(self.expr()?);
            if self.eat("placing") {
                let overlay_what = Box::new(self.expr()?);
                self.expect("from")?;
                let overlay_from = Box::new(self.expr()?);
                let overlay_for = if self.eat("for") { Some(Box::new(self.expr()?)) } else { None };
                self.expect_symbol(')')?;
                return Ok(Expr::Overlay { expr, overlay_what, overlay_from, overlay_for });
            }
            return self.plain_call_with(start, *expr);
        }
        self.next_index = start;
        self.plain_call()
    }

    /// Parses an ordinary call of a function whose name is a keyword.
    fn plain_call(&mut self) -> SqlResult<Expr> {
        let name = self.label()?;
        self.call(ObjectName::from(vec![name]))
    }

    /// Tells whether arguments follow that only ordinary calls have: none, `*`, DISTINCT, ALL, VARIADIC or a named one.
    fn is_plain_argument(&self) -> bool {
        let is_named = matches!(self.peek_at(1), Token::Operator(operator) if operator == "=>" || operator == ":=");
        let is_star = matches!(self.peek_at(0), Token::Operator(operator) if operator == "*");
        let is_marked = ["distinct", "all", "variadic"].into_iter().any(|word| self.next_is(word));
        self.is_symbol(')') || is_named || is_star || is_marked
    }

    /// Parses the rest of an ordinary call whose name is the keyword at `start` and whose first argument was parsed:
    /// to parse that again would double the time at each level of nested calls.
    fn plain_call_with(&mut self, start: usize, first: Expr) -> SqlResult<Expr> {
        let rest = std::mem::replace(&mut self.next_index, start);
        let name = self.label()?;
        self.next_index = rest;
        let mut args = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(first))];
        if self.eat_symbol(',') {
            args.extend(self.list(Self::argument)?);
        }
        let list = FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() };
        self.finish_call(ObjectName::from(vec![name]), list)
    }

    /// Parses `TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)` or `TRIM(text, characters)`.
    fn trim(&mut self) -> SqlResult<Expr> {
        self.next_index += 2;
        let trim_where = match self.eat_one_of(&["both", "leading", "trailing"]) {
            Some("both") => Some(TrimWhereField::Both),
            Some("leading") => Some(TrimWhereField::Leading),
            Some(_) => Some(TrimWhereField::Trailing),
            None => None,
        };
        let mut trim_what = None;
        let mut trim_characters = None;
        let expr = if self.eat("from") {
            self.expr()?
        } else {
            let first = self.expr()?;
            if self.eat("from") {
                trim_what = Some(Box::new(first));
                self.expr()?
            } else {
                first
            }
        };
        if self.eat_symbol(',') {
            let characters = self.list(Self::expr)?;
            // `TRIM(LEADING text, characters)` means the same as the form with FROM.
            match (characters.len(), trim_where) {
                (1, Some(_)) => trim_what = characters.into_iter().next().map(Box::new),
                _ => trim_characters = Some(characters),
            }
        }
        self.expect_symbol(')')?;
        Ok(Expr::Trim { trim_where, trim_what, expr: Box::new(expr), trim_characters })
    }

    /// Parses `NORMALIZE(text, NFC)`.
    fn normalize(&mut self) -> SqlResult<Expr> {
        self.next_index += 2;
        let mut args = vec![self.expr()?];
        if self.eat_symbol(',') {
            let span = self.lexeme().span;
            let form = self.eat_one_of(&["nfc", "nfd", "nfkc", "nfkd"]).ok_or_else(|| self.syntax_error())?;
            args.push(literal_expr(Value::SingleQuotedString(form.to_uppercase()), span));
        }
        self.expect_symbol(')')?;
        Ok(call_by_name("normalize", args))
    }
}

/// Builds a call with a name and no arguments or clauses.
pub(super) fn new_function(name: ObjectName) -> Function {
    Function {
        name,
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::None,
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}

/// Builds a call of a function by its unqualified name.
pub(super) fn call_by_name(name: &str, args: Vec<Expr>) -> Expr {
    let args = arguments(args.into_iter().map(unnamed_argument).collect());
    Expr::Function(Function { args, ..new_function(ObjectName::from(vec![Ident::new(name)])) })
}

fn arguments(args: Vec<FunctionArg>) -> FunctionArguments {
    FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() })
}

fn unnamed_argument(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}
