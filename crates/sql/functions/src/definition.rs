//! Definitions of functions: tables of overloads with argument types, result type and body.

use std::mem::ManuallyDrop;
use std::sync::Arc;

use arrow::array::ArrayRef;
use datafusion::logical_expr::{Expr, ScalarUDF, Volatility};
use types::numeric::NumericPrecision;
use types::{Condition, SqlError, SqlResult, SqlType};

use super::call::Call;
use super::catalog_entry::CatalogEntry;
pub(crate) use super::fallibility::FailsFor;
use super::fallibility::Fallibility;
use crate::special_resolution::SpecialCall;
use crate::type_rules::{is_implicit, is_preferred, plain_type_name, same_base_type, unify_types};

/// Function or operator with all its overloads, in order of preference among overloads that match equally well.
#[derive(Debug)]
pub struct Definition {
    /// Name in SQL, in lower case, or the symbol of an operator.
    pub name: &'static str,
    /// One line of documentation, in PostgreSQL's words where it has the function.
    pub description: &'static str,
    pub(crate) volatility: Volatility,
    /// PostgreSQL's functions of this name that the overloads implement.
    pub(crate) catalog: &'static [CatalogEntry],
    pub overloads: &'static [Overload],
}

/// Signature of a function with its body.
pub struct Overload {
    pub(crate) parameters: &'static [ParameterType],
    /// True if the last parameter may repeat or be absent.
    pub(crate) is_variadic: bool,
    pub(crate) result_type: ResultType,
    pub(crate) fails_for: FailsFor,
    pub body: Body,
}

/// Type of a parameter. Arguments reach a concrete type by implicit casts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterType {
    Bool,
    Int2,
    Int4,
    Int8,
    Numeric,
    Float4,
    Float8,
    Text,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Bytea,
    Json,
    Jsonb,
    TextArray,
    /// Any array, without a cast.
    AnyArray,
    /// Any type, without a cast; an untyped literal becomes text.
    Any,
}

/// Result type of an overload.
#[derive(Debug)]
pub(crate) enum ResultType {
    /// Fixed type; never dropped, so that definitions can be constants.
    Fixed(ManuallyDrop<SqlType>),
    /// Type of the argument at this position, after its cast.
    SameAs(usize),
    /// Element type of the array argument at this position.
    ElementOf(usize),
    /// Type computed from the arguments' types.
    Computed(fn(&[SqlType]) -> SqlResult<SqlType>),
}

impl ResultType {
    /// Creates a fixed result type.
    pub(crate) const fn fixed(sql_type: SqlType) -> Self {
        ResultType::Fixed(ManuallyDrop::new(sql_type))
    }
}

/// Implementation of an overload.
#[derive(Clone, Copy)]
pub enum Body {
    /// Function over Arrow arrays.
    Rows(fn(&Call<'_>) -> SqlResult<ArrayRef>),
    /// Rewrite to another expression that the optimizer understands.
    Rewrite(fn(Vec<Expr>) -> Expr),
    /// DataFusion function with the same semantics as PostgreSQL's.
    Builtin(fn() -> Arc<ScalarUDF>),
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Body::Rows(_) => "Rows",
            Body::Rewrite(_) => "Rewrite",
            Body::Builtin(_) => "Builtin",
        })
    }
}

impl std::fmt::Debug for Overload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { parameters, is_variadic, result_type, fails_for: _, body } = self;
        f.debug_struct("Overload")
            .field("parameters", parameters)
            .field("is_variadic", is_variadic)
            .field("result_type", result_type)
            .field("body", body)
            .finish_non_exhaustive()
    }
}

impl Definition {
    pub(crate) const fn new(name: &'static str, description: &'static str, overloads: &'static [Overload]) -> Self {
        Self { name, description, volatility: Volatility::Immutable, catalog: &[], overloads }
    }

    pub(crate) const fn stable(name: &'static str, description: &'static str, overloads: &'static [Overload]) -> Self {
        Self { name, description, volatility: Volatility::Stable, catalog: &[], overloads }
    }

    pub(crate) const fn volatile(
        name: &'static str,
        description: &'static str,
        overloads: &'static [Overload],
    ) -> Self {
        Self { name, description, volatility: Volatility::Volatile, catalog: &[], overloads }
    }

    /// Adds PostgreSQL's functions of this name that the overloads implement.
    pub(crate) const fn in_catalog(mut self, catalog: &'static [CatalogEntry]) -> Self {
        self.catalog = catalog;
        self
    }

    /// Returns whether a call of `overload` with arguments of these types needs no cast.
    pub(crate) fn takes_exactly(&self, overload: usize, types: &[SqlType]) -> bool {
        let fit = self.overloads.get(overload).and_then(|overload| overload.match_arguments(types));
        fit.is_some_and(|fit| fit.targets == types)
    }

    /// Returns argument types that an overload takes without a cast.
    pub(crate) fn sample_types(&self, overload: usize) -> Option<Vec<SqlType>> {
        let overload = &self.overloads[overload];
        overload.parameters.iter().map(|takes| takes.sample()).collect()
    }

    /// Returns whether some overload can be called without arguments.
    pub(crate) fn has_nullary_overload(&self) -> bool {
        self.overloads.iter().any(|overload| overload.min_argument_count() == 0)
    }

    /// Resolves a call as PostgreSQL does: returns the number of the overload and the types its arguments are cast
    /// to.
    ///
    /// # Errors
    /// SQLSTATE 42883 if no overload matches.
    pub fn resolve_overload(&'static self, arguments: &[SqlType]) -> SqlResult<(usize, Vec<SqlType>)> {
        let widened;
        let arguments = match arguments {
            [a, b] if self.widens_to_float8(a, b) => {
                widened = [SqlType::Float8, SqlType::Float8];
                widened.as_slice()
            }
            others => others,
        };
        // PostgreSQL first assumes that an untyped operand has the type of the other one. Functions that take any
        // type do not infer one.
        if let [a, b] = arguments
            && (*a == SqlType::Unknown) != (*b == SqlType::Unknown)
        {
            let known = if *a == SqlType::Unknown { b } else { a };
            let alike = [known.clone(), known.clone()];
            let exact = self.overloads.iter().position(|overload| {
                let takes_as_is = overload.takes_any() && !self.is_operator();
                !takes_as_is
                    && !overload.takes_array_and_elements()
                    && overload.match_arguments(&alike).is_some_and(|fit| fit.exact_count == 2)
            });
            if let Some(index) = exact {
                let fit = self.overloads[index].match_arguments(&alike).expect("it fitted just now");
                return Ok((index, fit.targets));
            }
        }
        let mut best: Option<(usize, OverloadMatch)> = None;
        for (index, overload) in self.overloads.iter().enumerate() {
            if let Some(fit) = overload.match_arguments(arguments)
                && best.as_ref().is_none_or(|(_, best)| best.rank() < fit.rank())
            {
                best = Some((index, fit));
            }
        }
        best.map(|(index, fit)| (index, fit.targets)).ok_or_else(|| self.undefined_error(arguments))
    }

    /// Returns whether an operator on `real` and another number computes in double precision, because PostgreSQL has
    /// such operators of both types.
    fn widens_to_float8(&self, a: &SqlType, b: &SqlType) -> bool {
        let is_number =
            |sql_type: &SqlType| *sql_type == SqlType::Float8 || NumericPrecision::from_sql_type(sql_type).is_some();
        matches!(self.name, "+" | "-" | "*" | "/")
            && ((*a == SqlType::Float4 && is_number(b)) || (*b == SqlType::Float4 && is_number(a)))
    }

    pub(crate) fn is_operator(&self) -> bool {
        !self.name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    }

    /// Builds the error 42883, worded by whether this is an operator or a function.
    fn undefined_error(&self, arguments: &[SqlType]) -> SqlError {
        let names: Vec<String> = arguments.iter().map(plain_type_name).collect();
        match (self.is_operator(), names.as_slice()) {
            (true, [left, right]) => missing_operator(self.name, left, right),
            (false, [operand]) if self.special_call() == Some(SpecialCall::Negation) => {
                missing_prefix_operator("-", operand)
            }
            _ => {
                // The list form of a set-returning function is reported under its SQL name.
                let is_series = self.special_call() == Some(SpecialCall::SeriesList);
                let name = if is_series { "generate_series" } else { self.name };
                missing_function(name, &names.join(", "))
            }
        }
    }
}

/// Builds the error 42883 for a binary operator.
pub fn missing_operator(operator: &str, left: &str, right: &str) -> SqlError {
    SqlError::new(Condition::UndefinedFunction, format!("operator does not exist: {left} {operator} {right}"))
        .with_hint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

/// Builds the error 42883 for a prefix operator.
fn missing_prefix_operator(operator: &str, operand: &str) -> SqlError {
    SqlError::new(Condition::UndefinedFunction, format!("operator does not exist: {operator} {operand}"))
        .with_hint("No operator matches the given name and argument type. You might need to add an explicit type cast.")
}

/// Builds the error 42883 for a function.
pub fn missing_function(name: &str, arguments: &str) -> SqlError {
    SqlError::new(Condition::UndefinedFunction, format!("function {name}({arguments}) does not exist"))
        .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

/// Name of the internal function of unary minus.
pub const NEGATE: &str = "negate";

/// Match of an overload with argument types; better matches have more exact, then more preferred types.
struct OverloadMatch {
    targets: Vec<SqlType>,
    exact_count: usize,
    preferred_count: usize,
}

impl OverloadMatch {
    fn rank(&self) -> (usize, usize) {
        (self.exact_count, self.preferred_count)
    }
}

impl Overload {
    /// Creates an overload that computes over arrays.
    pub(crate) const fn rows(
        takes: &'static [ParameterType],
        gives: ResultType,
        fails_for: FailsFor,
        body: fn(&Call<'_>) -> SqlResult<ArrayRef>,
    ) -> Self {
        Self { parameters: takes, is_variadic: false, result_type: gives, fails_for, body: Body::Rows(body) }
    }

    /// Creates an overload that is rewritten to another expression.
    pub(crate) const fn rewrite(
        takes: &'static [ParameterType],
        gives: ResultType,
        fails_for: FailsFor,
        body: fn(Vec<Expr>) -> Expr,
    ) -> Self {
        Self { parameters: takes, is_variadic: false, result_type: gives, fails_for, body: Body::Rewrite(body) }
    }

    /// Creates an overload that calls a DataFusion function.
    pub(crate) const fn builtin(
        takes: &'static [ParameterType],
        gives: ResultType,
        fails_for: FailsFor,
        body: fn() -> Arc<ScalarUDF>,
    ) -> Self {
        Self { parameters: takes, is_variadic: false, result_type: gives, fails_for, body: Body::Builtin(body) }
    }

    /// Makes the last parameter variadic.
    pub(crate) const fn variadic(mut self) -> Self {
        self.is_variadic = true;
        self
    }

    /// Returns the degree to which a call of an overload of DataFusion can fail; these declare no dependence on values.
    pub fn builtin_fallibility(&self) -> Fallibility {
        match self.fails_for {
            FailsFor::Nothing => Fallibility::Never,
            FailsFor::Digits => Fallibility::BeyondDigits,
            FailsFor::Overflow => Fallibility::OnOverflow,
            FailsFor::SomeValues | FailsFor::Literals(_) | FailsFor::Computed(_) => Fallibility::ForSomeValues,
        }
    }

    /// Returns the parameter whose type the result has; `None` for other results.
    pub(crate) fn result_parameter(&self) -> Option<ParameterType> {
        match self.result_type {
            ResultType::SameAs(at) => self.parameters.get(at).copied(),
            ResultType::ElementOf(_) | ResultType::Fixed(_) | ResultType::Computed(_) => None,
        }
    }

    /// Returns whether the result is an element of an array argument.
    pub(crate) fn returns_element(&self) -> bool {
        matches!(self.result_type, ResultType::ElementOf(_))
    }

    /// Returns whether the result type does not depend on the arguments.
    pub(crate) fn has_fixed_result(&self) -> bool {
        matches!(self.result_type, ResultType::Fixed(_))
    }

    /// Returns whether it takes both an array and values that are elements of it.
    fn takes_array_and_elements(&self) -> bool {
        let takes = |wanted: fn(&ParameterType) -> bool| self.parameters.iter().any(wanted);
        takes(|takes| matches!(takes, ParameterType::AnyArray)) && takes(|takes| matches!(takes, ParameterType::Any))
    }

    fn takes_any(&self) -> bool {
        self.parameters.iter().any(|takes| matches!(takes, ParameterType::Any))
    }

    /// Unifies the element types of array arguments and element arguments to their common type, if they have one.
    pub fn unify_element_types(&self, targets: &mut [SqlType]) {
        let takes = |at: usize| self.parameters.get(at).or_else(|| self.parameters.last());
        let arrays = (0..targets.len()).filter(|at| matches!(takes(*at), Some(ParameterType::AnyArray))).count();
        if arrays == 0 || (arrays == 1 && !self.takes_array_and_elements()) {
            return;
        }
        // Vectors (`int2vector`, `oidvector`) have a fixed element type.
        if (0..targets.len())
            .any(|at| matches!(takes(at), Some(ParameterType::AnyArray)) && !matches!(targets[at], SqlType::Array(_)))
        {
            return;
        }
        let is_element = |at: usize| matches!(takes(at), Some(ParameterType::Any));
        let mut common: Option<SqlType> = None;
        for (at, target) in targets.iter().enumerate() {
            let element = match takes(at) {
                Some(ParameterType::AnyArray) => target.element(),
                Some(ParameterType::Any) => Some(target.clone()),
                _ => continue,
            };
            common = match (common, element) {
                (None, element) => element,
                (Some(common), Some(element)) => unify_types(&common, &element),
                (Some(_), None) => None,
            };
            if common.is_none() {
                return;
            }
        }
        let Some(common) = common else { return };
        for (at, target) in targets.iter_mut().enumerate() {
            if is_element(at) {
                *target = common.clone();
            } else if matches!(takes(at), Some(ParameterType::AnyArray)) {
                *target = SqlType::Array(Box::new(common.clone()));
            }
        }
    }

    /// Returns the element type of the array argument.
    fn element(&self, arguments: &[SqlType]) -> Option<SqlType> {
        let array = self.parameters.iter().zip(arguments).find(|(takes, _)| matches!(takes, ParameterType::AnyArray));
        array.and_then(|(_, argument)| argument.element())
    }

    fn min_argument_count(&self) -> usize {
        self.parameters.len() - usize::from(self.is_variadic)
    }

    fn match_arguments(&self, arguments: &[SqlType]) -> Option<OverloadMatch> {
        let is_count_right = if self.is_variadic {
            self.min_argument_count() <= arguments.len()
        } else {
            self.parameters.len() == arguments.len()
        };
        if !is_count_right {
            return None;
        }
        let mut fit =
            OverloadMatch { targets: Vec::with_capacity(arguments.len()), exact_count: 0, preferred_count: 0 };
        for (index, argument) in arguments.iter().enumerate() {
            let takes = self.parameters.get(index).or_else(|| self.parameters.last())?;
            let target = match takes {
                ParameterType::Any if *argument == SqlType::Unknown && self.takes_array_and_elements() => {
                    self.element(arguments)?
                }
                takes => takes.target(argument)?,
            };
            if same_base_type(argument, &target) {
                fit.exact_count += 1;
            } else if is_preferred(&target) {
                fit.preferred_count += 1;
            }
            fit.targets.push(target);
        }
        Some(fit)
    }

    /// Returns the result type of a call with arguments of the types `targets`.
    pub fn compute_result_type(&self, targets: &[SqlType]) -> SqlResult<SqlType> {
        match &self.result_type {
            ResultType::Fixed(sql_type) => Ok((**sql_type).clone()),
            ResultType::SameAs(index) => Ok(targets[*index].clone()),
            ResultType::ElementOf(index) => Ok(targets[*index].element().unwrap_or_else(|| targets[*index].clone())),
            ResultType::Computed(compute) => compute(targets),
        }
    }
}

impl ParameterType {
    /// Returns a type that is taken without a cast.
    pub(crate) fn sample(self) -> Option<SqlType> {
        match self {
            ParameterType::Any => Some(SqlType::Text),
            ParameterType::AnyArray => Some(SqlType::Array(Box::new(SqlType::Text))),
            ParameterType::Numeric => Some(SqlType::Numeric { precision: 12, scale: 2 }),
            other => other.target(&SqlType::Unknown),
        }
    }

    /// Returns the type that an argument is cast to; `None` if it is not accepted.
    fn target(self, argument: &SqlType) -> Option<SqlType> {
        let wanted = match self {
            ParameterType::Any => {
                return Some(if *argument == SqlType::Unknown { SqlType::Text } else { argument.clone() });
            }
            ParameterType::AnyArray => return argument.element().map(|_| argument.clone()),
            ParameterType::Numeric => {
                return match argument {
                    SqlType::Numeric { .. } => Some(argument.clone()),
                    SqlType::Unknown => Some(SqlType::BARE_NUMERIC),
                    other => NumericPrecision::from_sql_type(other).map(NumericPrecision::sql_type),
                };
            }
            ParameterType::Bool => SqlType::Bool,
            ParameterType::Int2 => SqlType::Int2,
            ParameterType::Int4 => SqlType::Int4,
            ParameterType::Int8 => SqlType::Int8,
            ParameterType::Float4 => SqlType::Float4,
            ParameterType::Float8 => SqlType::Float8,
            ParameterType::Text => SqlType::Text,
            ParameterType::Date => SqlType::Date,
            ParameterType::Time => SqlType::Time,
            ParameterType::Timestamp => SqlType::Timestamp,
            ParameterType::TimestampTz => SqlType::TimestampTz,
            ParameterType::Interval => SqlType::Interval,
            ParameterType::Bytea => SqlType::Bytea,
            ParameterType::Json => SqlType::Json,
            ParameterType::Jsonb => SqlType::Jsonb,
            ParameterType::TextArray => SqlType::Array(Box::new(SqlType::Text)),
        };
        is_implicit(argument, &wanted).then_some(wanted)
    }
}
