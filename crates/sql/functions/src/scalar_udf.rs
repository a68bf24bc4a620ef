//! DataFusion's `ScalarUDF` of a [`Definition`]: an unresolved call while SQL is planned, then one overload, chosen
//! by the types of the arguments.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use session_context::EvaluationContext;
use types::interrupt;
use types::{SqlError, SqlResult, SqlType};
use xxhash_rust::xxh3::Xxh3Default;

use super::arithmetic::Arithmetic;
use super::call::{Argument, Call};
use super::cast::rescale_numeric;
use super::column_name::{ArgumentsHash, column_name, name_with_hash};
use super::definition::{Body, Definition, FailsFor};
use super::fallibility::{Fallibility, KnownArguments, KnownValue};
use super::{ValueLifetime, constant_folding_limit, lower_constant_like};
use crate::error::from_datafusion;
use crate::field_type;
use crate::special_resolution::SpecialCall;

/// Wraps a SQL error to pass it through DataFusion; [`crate::error::from_datafusion`] unwraps it.
#[must_use]
pub fn external(error: SqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Timestamp at which a call is tried with its literals: after the first hour of a day.
const SAMPLE_TIMESTAMP_US: i64 = 3_600_000_001;

/// Function whose overload is not chosen yet: made while SQL is planned, replaced by the analyzer.
#[derive(Debug)]
pub struct UnresolvedFunction {
    pub definition: &'static Definition,
    pub(crate) session: Arc<EvaluationContext>,
    signature: Signature,
    /// Hash of the arguments of the call, if they have many nodes.
    arguments_hash: Option<ArgumentsHash>,
}

impl UnresolvedFunction {
    /// Creates the unresolved function of a definition.
    #[must_use]
    pub fn udf(definition: &'static Definition, session: &Arc<EvaluationContext>) -> Arc<ScalarUDF> {
        Self::make(definition, session, None)
    }

    /// Builds an unresolved call. Its name is precomputed from a hash if the arguments have many nodes, so that
    /// enclosing calls need not traverse them again.
    ///
    /// # Errors
    /// The name of an argument cannot be formatted.
    pub(super) fn call(
        definition: &'static Definition,
        session: &Arc<EvaluationContext>,
        args: Vec<Expr>,
    ) -> Result<Expr> {
        let function = Self::make(definition, session, ArgumentsHash::from_arguments(&args)?);
        Ok(Expr::ScalarFunction(ScalarFunction::new_udf(function, args)))
    }

    /// Returns the hash of the arguments of the call, if they have many nodes.
    pub(super) fn arguments_hash(&self) -> Option<ArgumentsHash> {
        self.arguments_hash
    }

    fn make(
        definition: &'static Definition,
        session: &Arc<EvaluationContext>,
        arguments_hash: Option<ArgumentsHash>,
    ) -> Arc<ScalarUDF> {
        let accepted = if definition.has_nullary_overload() {
            TypeSignature::OneOf(vec![TypeSignature::Nullary, TypeSignature::UserDefined])
        } else {
            TypeSignature::UserDefined
        };
        let signature = Signature::new(accepted, definition.volatility);
        let session = Arc::clone(session);
        Arc::new(ScalarUDF::new_from_impl(Self { definition, session, signature, arguments_hash }))
    }
}

impl PartialEq for UnresolvedFunction {
    /// Equal calls must have equal names: DataFusion finds the columns of equal expressions by their names.
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
            && self.arguments_hash == other.arguments_hash
            && self.session == other.session
    }
}

impl Eq for UnresolvedFunction {}

impl Hash for UnresolvedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for UnresolvedFunction {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        name_of_call(self.definition, self.arguments_hash, args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Err(external(SqlError::internal(format!(
            "return_type of function {} was called; only return_field_from_args is supported",
            self.definition.name
        ))))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        // DataFusion traverses expressions recursively without checking for cancellation.
        interrupt::check().map_err(external)?;
        let types: Vec<SqlType> = args
            .arg_fields
            .iter()
            .zip(args.scalar_arguments)
            .map(|(field, literal)| field_type(field, *literal))
            .collect();
        if self.definition.special_call() == Some(SpecialCall::AnyEqual) {
            // Both sides may be parameters without a type yet.
            return Ok(Arc::new(SqlType::Bool.arrow_field(self.definition.name, true)));
        }
        let result = result_type_of(self.definition, &types).or_else(|error| {
            // Integer columns of literals are still 64 bits wide while SQL is planned.
            let narrowed: Vec<SqlType> = types
                .iter()
                .map(|sql_type| if *sql_type == SqlType::Int8 { SqlType::Int4 } else { sql_type.clone() })
                .collect();
            // JSON results of a CASE are not marked as such yet either.
            let marked = types.iter().map(|it| if *it == SqlType::Text { SqlType::Jsonb } else { it.clone() });
            result_type_of(self.definition, &narrowed)
                .or_else(|_| result_type_of(self.definition, &marked.collect::<Vec<_>>()))
                .map_err(|_| error)
        });
        result.map(|sql_type| Arc::new(sql_type.arrow_field(self.definition.name, true))).map_err(external)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(external(SqlError::internal(format!(
            "function {} ran before one of its overloads was chosen",
            self.definition.name
        ))))
    }
}

/// Returns the column name of a call. A call with a stored hash keeps its name when rules change its arguments.
fn name_of_call(definition: &Definition, arguments_hash: Option<ArgumentsHash>, args: &[Expr]) -> Result<String> {
    match arguments_hash {
        Some(hash) => Ok(name_with_hash(definition.name, hash)),
        None => column_name(definition.name, args),
    }
}

fn result_type_of(definition: &'static Definition, types: &[SqlType]) -> SqlResult<SqlType> {
    let (index, targets) = definition.resolve_overload(types)?;
    // The result type of these is computed from all arguments as written, in which untyped ones have no weight.
    let shares = matches!(
        definition.special_call(),
        Some(SpecialCall::Coalesce | SpecialCall::Greatest | SpecialCall::Least | SpecialCall::ArrayLiteral)
    );
    definition.overloads[index].compute_result_type(if shares { types } else { &targets })
}

/// Function with its overload chosen and its arguments cast to the types the overload takes.
#[derive(Debug)]
pub struct ResolvedFunction {
    definition: &'static Definition,
    overload: usize,
    argument_types: Vec<SqlType>,
    result_type: SqlType,
    session: Arc<EvaluationContext>,
    signature: Signature,
    /// Hash of the name, overload and argument types, computed only here: hashing a nested expression visits each
    /// call once per enclosing call.
    hash: u64,
    /// Argument hash of the unresolved call this replaces, if the arguments have many nodes.
    arguments_hash: Option<ArgumentsHash>,
}

impl ResolvedFunction {
    /// Creates the function of overload `overload` for arguments of exactly the types `takes`.
    pub fn udf(
        definition: &'static Definition,
        overload: usize,
        takes: Vec<SqlType>,
        session: &Arc<EvaluationContext>,
    ) -> SqlResult<Arc<ScalarUDF>> {
        Self::make(definition, overload, takes, session, None)
    }

    /// Creates the function that replaces `named`: overload `overload` for arguments of exactly the types `takes`. It
    /// keeps the column name of the unresolved call.
    pub fn from_unresolved(
        named: &UnresolvedFunction,
        overload: usize,
        takes: Vec<SqlType>,
        session: &Arc<EvaluationContext>,
    ) -> SqlResult<Arc<ScalarUDF>> {
        Self::make(named.definition, overload, takes, session, named.arguments_hash)
    }

    fn make(
        definition: &'static Definition,
        overload: usize,
        takes: Vec<SqlType>,
        session: &Arc<EvaluationContext>,
        arguments_hash: Option<ArgumentsHash>,
    ) -> SqlResult<Arc<ScalarUDF>> {
        let gives = definition.overloads[overload].compute_result_type(&takes)?;
        let accepted = if takes.is_empty() { TypeSignature::Nullary } else { TypeSignature::Any(takes.len()) };
        let signature = Signature::new(accepted, definition.volatility);
        let mut hasher = Xxh3Default::new();
        (definition.name, overload, &takes).hash(&mut hasher);
        Ok(Arc::new(ScalarUDF::new_from_impl(Self {
            definition,
            overload,
            argument_types: takes,
            result_type: gives,
            session: Arc::clone(session),
            signature,
            hash: hasher.digest(),
            arguments_hash,
        })))
    }

    /// Returns the definition, the number of the overload and the session.
    pub(super) fn parts(&self) -> (&'static Definition, usize, &Arc<EvaluationContext>) {
        (self.definition, self.overload, &self.session)
    }

    /// Returns the hash described at [`UnresolvedFunction::arguments_hash`].
    pub(super) fn arguments_hash(&self) -> Option<ArgumentsHash> {
        self.arguments_hash
    }

    /// Returns the result type.
    pub fn result_type(&self) -> &SqlType {
        &self.result_type
    }

    /// Returns the lifetime of the call's value.
    pub fn value_lifetime(&self) -> ValueLifetime {
        // `age` with one argument subtracts from the current date.
        let tells_time = self.definition.special_call() == Some(SpecialCall::Age) && self.argument_types.len() == 1;
        match self.definition.volatility {
            Volatility::Immutable if !tells_time => ValueLifetime::Plan,
            _ => ValueLifetime::Statement,
        }
    }

    /// Returns whether both compute the same, provided that neither reads more of its session than its facts.
    pub(super) fn is_equivalent_to(&self, other: &Self) -> bool {
        self.has_same_overload(other) && self.session.has_same_facts(&other.session)
    }

    fn has_same_overload(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name
            && self.overload == other.overload
            && self.argument_types == other.argument_types
    }

    /// Returns the same function bound to another session.
    pub fn with_session(&self, session: &Arc<EvaluationContext>) -> SqlResult<Arc<ScalarUDF>> {
        Self::make(self.definition, self.overload, self.argument_types.clone(), session, self.arguments_hash)
    }

    /// Returns the form that evaluates single values; `None` if only arrays are supported.
    pub(super) fn single_value_arithmetic(&self) -> Option<Arithmetic> {
        Arithmetic::try_new(self.definition.name, &self.argument_types, &self.result_type)
    }

    /// Returns whether it is `to_timestamp(float8)`.
    pub(super) fn is_from_epoch(&self) -> bool {
        self.definition.special_call() == Some(SpecialCall::ToTimestamp) && self.argument_types == [SqlType::Float8]
    }

    /// Returns the SQL name.
    pub(super) fn name(&self) -> &'static str {
        self.definition.name
    }

    /// Returns the argument types.
    pub(super) fn argument_types(&self) -> &[SqlType] {
        &self.argument_types
    }

    /// Evaluates a call without arguments for a statement of `session`; `None` if it takes arguments.
    pub(super) fn evaluate_nullary(&self, session: &EvaluationContext) -> Option<SqlResult<ScalarValue>> {
        self.argument_types.is_empty().then(|| {
            let value = self.run(&[], 1, session)?;
            ScalarValue::try_from_array(&value, 0).map_err(from_datafusion)
        })
    }

    /// Returns the degree to which a call can fail, as the overload declares it.
    pub(super) fn fallibility(&self, values: &[KnownValue<'_>]) -> Fallibility {
        match self.definition.overloads[self.overload].fails_for {
            FailsFor::Nothing => Fallibility::Never,
            FailsFor::Digits => Fallibility::BeyondDigits,
            FailsFor::Overflow => Fallibility::OnOverflow,
            FailsFor::SomeValues => Fallibility::ForSomeValues,
            FailsFor::Literals(positions) => {
                let is_literal = |at: &usize| matches!(values.get(*at), Some(KnownValue::Literal(_)));
                let works = positions.iter().all(is_literal) && self.try_literals(values).is_ok();
                if works { Fallibility::Never } else { Fallibility::ForSomeValues }
            }
            FailsFor::Computed(compute) => compute(&KnownArguments { types: &self.argument_types, values }),
        }
    }

    /// Calls the function with the literals among `values`, and a plain value of its type for each other argument.
    fn try_literals(&self, values: &[KnownValue<'_>]) -> Result<()> {
        let arguments = values.iter().zip(&self.argument_types).map(|(value, sql_type)| {
            let value = match value {
                KnownValue::Literal(value) => (*value).clone(),
                // Midnight is a value that works where other times of day do not.
                _ => match sql_type.arrow_type() {
                    DataType::Timestamp(TimeUnit::Microsecond, zone) => {
                        ScalarValue::TimestampMicrosecond(Some(SAMPLE_TIMESTAMP_US), zone)
                    }
                    other => ScalarValue::new_default(&other)?,
                },
            };
            argument(&ColumnarValue::Scalar(value), sql_type)
        });
        let arguments = arguments.collect::<Result<Vec<Argument>>>()?;
        self.run(&arguments, 1, &self.session).map(|_| ()).map_err(external)
    }

    fn run(&self, arguments: &[Argument], rows: usize, session: &EvaluationContext) -> SqlResult<ArrayRef> {
        let Body::Rows(body) = self.definition.overloads[self.overload].body else {
            return Err(SqlError::internal(format!(
                "function {} ran over arrays, but its overload has no implementation for arrays",
                self.definition.name
            )));
        };
        body(&Call { arguments, argument_types: &self.argument_types, rows, result_type: &self.result_type, session })
    }
}

impl PartialEq for ResolvedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.has_same_overload(other) && self.arguments_hash == other.arguments_hash && self.session == other.session
    }
}

impl Eq for ResolvedFunction {}

impl Hash for ResolvedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl ScalarUDFImpl for ResolvedFunction {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        name_of_call(self.definition, self.arguments_hash, args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.result_type.arrow_type())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        interrupt::check().map_err(external)?;
        Ok(Arc::new(self.result_type.arrow_field(self.definition.name, true)))
    }

    /// A LIKE pattern may become a constant only when parameters are bound.
    fn simplify(&self, args: Vec<Expr>, _context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match lower_constant_like(self.definition.name, &args) {
            Some(like) => ExprSimplifyResult::Simplified(like),
            None => ExprSimplifyResult::Original(args),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        constant_folding_limit::check(self.definition.name, &args.args).map_err(external)?;
        invoke(&args, &self.argument_types, self.definition.volatility, |arguments, rows| {
            self.run(arguments, rows, &self.session)
        })
    }
}

/// Runs a body over arrays in the Arrow forms of `takes`; a call with only constants runs on one row.
pub(crate) fn invoke(
    args: &ScalarFunctionArgs,
    takes: &[SqlType],
    volatility: Volatility,
    run: impl FnOnce(&[Argument], usize) -> SqlResult<ArrayRef>,
) -> Result<ColumnarValue> {
    let is_constant =
        volatility != Volatility::Volatile && args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
    let rows = if is_constant { 1 } else { args.number_rows };
    let arguments: Vec<Argument> =
        args.args.iter().zip(takes).map(|(arg, sql_type)| argument(arg, sql_type)).collect::<Result<_>>()?;
    let values = run(&arguments, rows).map_err(external)?;
    if is_constant {
        Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&values, 0)?))
    } else {
        Ok(ColumnarValue::Array(values))
    }
}

fn argument(value: &ColumnarValue, sql_type: &SqlType) -> Result<Argument> {
    let (values, is_constant) = match value {
        ColumnarValue::Array(values) => (Arc::clone(values), false),
        ColumnarValue::Scalar(value) => (value.to_array_of_size(1)?, true),
    };
    let wanted = sql_type.arrow_type();
    let values = if *values.data_type() == wanted {
        values
    } else if *values.data_type() == DataType::Null {
        new_null_array(&wanted, values.len())
    } else if let Some(rounded) = rescale_numeric(&values, sql_type) {
        rounded.map_err(external)?
    } else {
        // DataFusion's own functions return strings in different layouts.
        cast_with_options(&values, &wanted, &CastOptions { safe: false, ..CastOptions::default() })?
    };
    Ok(Argument { values, is_constant })
}
