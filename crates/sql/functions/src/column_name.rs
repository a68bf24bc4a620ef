//! Column names of calls without an alias. DataFusion tells expressions apart by these names.
//!
//! DataFusion's own name of a call repeats the names of its arguments: the names of nested calls have a total length
//! that is quadratic in their depth, and DataFusion computes them at every level. Here a call whose arguments have
//! many nodes has their hash in its name instead. A call of an operator is built with that hash and stores it, so
//! that enclosing calls need not hash the same arguments again.

use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};

use datafusion::common::Result;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{BinaryExpr, Expr, ScalarUDF};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use super::lazy_case::LazyFunction;
use super::scalar_udf::{ResolvedFunction, UnresolvedFunction};

/// Limit on the expression nodes of arguments that are written out; arguments with more are hashed.
const NODES_MAX: usize = 32;

/// Limit on the length of a name in bytes, without its hash.
const NAME_BYTES_MAX: usize = 512;

/// Returns the column name of a call of `function`. It distinguishes the same calls as DataFusion's own name.
///
/// It distinguishes no more than that either: rewrites that do not change DataFusion's name, such as those of a
/// subquery's plan or a cast's type, do not change this one.
///
/// # Errors
/// The name of an argument cannot be formatted.
pub(super) fn column_name(function: &str, args: &[Expr]) -> Result<String> {
    if let Some(hash) = ArgumentsHash::try_new(args, CastHashing::Ignored)? {
        return Ok(name_with_hash(function, hash));
    }
    let mut name = String::with_capacity(64);
    name.push_str(function);
    for (number, arg) in args.iter().enumerate() {
        name.push(if number == 0 { '(' } else { ',' });
        write!(name, "{}", arg.schema_name())?;
    }
    name.push_str(if args.is_empty() { "()" } else { ")" });
    if name.len() > NAME_BYTES_MAX {
        let hash = xxh3_128(name.as_bytes());
        name.truncate(name.floor_char_boundary(NAME_BYTES_MAX));
        write!(name, "… {hash:032x}")?;
    }
    Ok(name)
}

/// Returns the name of a call whose arguments have many nodes.
pub(super) fn name_with_hash(function: &str, ArgumentsHash(hash): ArgumentsHash) -> String {
    format!("{function}(… {hash:032x})")
}

/// Limit on the length in bytes of the names of arguments that [`ArgumentsHash::for_long_names`] does not hash.
const ARGUMENT_NAMES_BYTES_MAX: usize = 256;

/// Hash of arguments with many nodes, which replaces them in the name of their call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ArgumentsHash(u128);

/// Treatment of casts in a hash: included or ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CastHashing {
    Included,
    /// Ignored, as in DataFusion's names, so that casts added by an analyzer do not change a name.
    Ignored,
}

impl ArgumentsHash {
    /// Computes the hash that a call is built with; `None` if the arguments are few enough to be written out. Casts
    /// are included: `a + … + b::date` is another call than `a + … + b`.
    ///
    /// # Errors
    /// The name of an argument cannot be formatted.
    pub(super) fn from_arguments(args: &[Expr]) -> Result<Option<Self>> {
        Self::try_new(args, CastHashing::Included)
    }

    /// Computes the hash that a call is built with; `None` if the names of its arguments are short.
    ///
    /// # Errors
    /// The name of an argument cannot be formatted.
    pub(super) fn for_long_names(args: &[Expr]) -> Result<Option<Self>> {
        let name = column_name("", args)?;
        Ok((ARGUMENT_NAMES_BYTES_MAX < name.len()).then(|| Self(xxh3_128(name.as_bytes()))))
    }

    fn try_new(args: &[Expr], casts: CastHashing) -> Result<Option<Self>> {
        let mut nodes_left = NODES_MAX;
        if args.iter().all(|arg| has_few_nodes(arg, &mut nodes_left)) {
            return Ok(None);
        }
        let mut hasher = NameHasher { hasher: Xxh3Default::new(), casts };
        hasher.add_all(args)?;
        Ok(Some(Self(hasher.hasher.digest128())))
    }

    /// Returns the hash that a call was built with.
    fn from_function(function: &ScalarUDF) -> Option<Self> {
        let function = function.inner();
        if let Some(named) = function.downcast_ref::<UnresolvedFunction>() {
            return named.arguments_hash();
        }
        if let Some(lazy) = function.downcast_ref::<LazyFunction>() {
            return lazy.arguments_hash();
        }
        function.downcast_ref::<ResolvedFunction>().and_then(ResolvedFunction::arguments_hash)
    }
}

/// Returns whether an expression has at most `nodes_left` of the nodes that [`NameHasher`] visits, and subtracts
/// them.
fn has_few_nodes(expr: &Expr, nodes_left: &mut usize) -> bool {
    let Some(left) = nodes_left.checked_sub(1) else { return false };
    *nodes_left = left;
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            has_few_nodes(left, nodes_left) && has_few_nodes(right, nodes_left)
        }
        Expr::ScalarFunction(call) => {
            ArgumentsHash::from_function(&call.func).is_none()
                && call.args.iter().all(|arg| has_few_nodes(arg, nodes_left))
        }
        _ => true,
    }
}

/// Hasher of the information in expressions' names, without writing the names.
struct NameHasher {
    hasher: Xxh3Default,
    casts: CastHashing,
}

impl NameHasher {
    fn add_all(&mut self, args: &[Expr]) -> Result<()> {
        args.len().hash(&mut self.hasher);
        args.iter().try_for_each(|arg| self.add(arg))
    }

    fn add(&mut self, expr: &Expr) -> Result<()> {
        let hasher = &mut self.hasher;
        match expr {
            Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
                if self.casts == CastHashing::Included {
                    (6, field).hash(hasher);
                }
                return self.add(expr);
            }
            Expr::Column(column) => (0, &column.relation, &column.name).hash(hasher),
            Expr::Literal(value, _) => (1, value).hash(hasher),
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                (2, op).hash(hasher);
                self.add(left)?;
                self.add(right)?;
            }
            Expr::ScalarFunction(call) => {
                (3, call.func.name()).hash(hasher);
                match ArgumentsHash::from_function(&call.func) {
                    Some(ArgumentsHash(kept)) => (5, kept).hash(hasher),
                    None => self.add_all(&call.args)?,
                }
            }
            other => {
                4.hash(hasher);
                write!(self, "{}", other.schema_name())?;
            }
        }
        Ok(())
    }
}

impl Write for NameHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.hasher.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::logical_expr::{col, lit};
    use session_context::EvaluationContext;
    use types::SessionZone;
    use types::text::DateOrder;

    use super::*;

    #[test]
    fn short_names_say_all() {
        assert_eq!(column_name("f", &[]).unwrap(), "f()");
        assert_eq!(column_name("f", &[col("a"), lit(1)]).unwrap(), "f(a,Int32(1))");
    }

    #[test]
    fn long_names_are_bounded_and_differ() {
        let name = |text: &str| column_name("f", &[lit(text)]).unwrap();
        let (one, other) = (name(&"ä".repeat(1_000)), name(&format!("{}b", "ä".repeat(999))));
        assert!(one != other && one.len() < NAME_BYTES_MAX + 64, "{one} and {other}");
        assert_eq!(one, name(&"ä".repeat(1_000)));
    }

    #[test]
    fn names_of_many_nodes_are_short_and_differ() {
        let name = |last: i32| {
            let sum = (0..100).fold(lit(last), |sum, number| sum + lit(number));
            column_name("f", &[sum]).unwrap()
        };
        assert_eq!(name(1), name(1));
        assert!(name(1) != name(2) && name(1).len() < 64, "{}", name(1));
    }

    #[test]
    fn calls_that_keep_a_hash_have_names_of_their_own_whatever_their_depth() {
        let zone = SessionZone::parse("UTC").unwrap();
        let session = Arc::new(EvaluationContext::without_context(zone, DateOrder::DayMonthYear, 0, 0));
        let sum = |first: i32, count: i32| {
            (0..count).fold(lit(first), |sum, number| {
                let call = crate::scalar_call("+", &session, vec![sum, lit(number)]);
                call.expect("it can be named").expect("there is a +")
            })
        };
        let name = |expr: &Expr| expr.schema_name().to_string();
        let keeps = |expr: &Expr| {
            let Expr::ScalarFunction(call) = expr else { panic!("a call") };
            ArgumentsHash::from_function(&call.func).is_some()
        };
        assert!(!keeps(&sum(1, 10)) && keeps(&sum(1, 20)));
        assert_eq!(name(&sum(1, 500)), name(&sum(1, 500)));
        assert_ne!(name(&sum(1, 500)), name(&sum(2, 500)), "another operand at the bottom");
        assert_ne!(name(&sum(1, 500)), name(&sum(1, 501)));
        assert!(name(&sum(1, 500)).len() < 64);
        let cast = Expr::Cast(Cast::new(Box::new(lit(1)), arrow::datatypes::DataType::Int64));
        let of = |first: Expr| ArgumentsHash::from_arguments(&[first, sum(1, 50)]).expect("it can be named");
        assert!(of(lit(1)).is_some() && of(lit(1)) != of(cast), "a cast is another call");
    }

    #[test]
    fn a_cast_or_another_value_of_an_alias_changes_no_name() {
        let name = |last: Expr| {
            let sum = (0..100).fold(last, |sum, number| sum + lit(number));
            column_name("f", &[sum]).unwrap()
        };
        let cast = |expr: Expr| Expr::Cast(Cast::new(Box::new(expr), arrow::datatypes::DataType::Int64));
        assert_eq!(name(col("a")), name(cast(col("a"))));
        assert_eq!(name(col("a").alias("b")), name(cast(col("c")).alias("b")));
        assert_ne!(name(col("a")), name(col("b")));
    }
}
