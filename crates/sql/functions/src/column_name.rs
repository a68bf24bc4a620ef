//! Names of the columns that calls become while they have no alias: DataFusion tells expressions apart by them.
//!
//! DataFusion's own name of a call repeats those of its arguments, so that the names of nested calls are together as long as the square of their
//! depth, and it asks for them at every level. A call whose arguments have many nodes has their hash in its name instead.

use std::fmt::{self, Write};
use std::hash::{Hash, Hasher};

use datafusion::common::Result;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{BinaryExpr, Expr};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

/// Arguments with more nodes in their expression trees than this are not written out.
const NODES_MAX: usize = 32;

/// Names are as long at most, in bytes, apart from their hash.
const NAME_BYTES_MAX: usize = 512;

/// The name of the column that a call of `function` becomes: it tells apart what DataFusion's own name does.
///
/// It says no more than DataFusion's either: rewrites that leave that name as it is, as of a subquery's plan or the type of a cast, leave this one too.
///
/// # Errors
/// An argument whose name cannot be formatted.
pub(super) fn column_name(function: &str, args: &[Expr]) -> Result<String> {
    let mut nodes_left = NODES_MAX;
    if !args.iter().all(|arg| has_few_nodes(arg, &mut nodes_left)) {
        let mut hasher = Xxh3Default::new();
        hash_all(args, &mut hasher)?;
        return Ok(format!("{function}(… {:032x})", hasher.digest128()));
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

/// Whether an expression has no more than `nodes_left`, which are fewer then, of the nodes that [`hash`] looks at.
fn has_few_nodes(expr: &Expr, nodes_left: &mut usize) -> bool {
    let Some(left) = nodes_left.checked_sub(1) else { return false };
    *nodes_left = left;
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            has_few_nodes(left, nodes_left) && has_few_nodes(right, nodes_left)
        }
        Expr::ScalarFunction(call) => call.args.iter().all(|arg| has_few_nodes(arg, nodes_left)),
        _ => true,
    }
}

fn hash_all(args: &[Expr], hasher: &mut Xxh3Default) -> Result<()> {
    args.len().hash(hasher);
    args.iter().try_for_each(|arg| hash(arg, hasher))
}

/// Adds what the name of an expression says, without writing it.
fn hash(expr: &Expr, hasher: &mut Xxh3Default) -> Result<()> {
    match expr {
        // Names do not say that something is cast.
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => return hash(expr, hasher),
        Expr::Column(column) => (0, &column.relation, &column.name).hash(hasher),
        Expr::Literal(value, _) => (1, value).hash(hasher),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            (2, op).hash(hasher);
            hash(left, hasher)?;
            hash(right, hasher)?;
        }
        Expr::ScalarFunction(call) => {
            (3, call.func.name()).hash(hasher);
            hash_all(&call.args, hasher)?;
        }
        other => {
            4.hash(hasher);
            write!(Hashing(hasher), "{}", other.schema_name())?;
        }
    }
    Ok(())
}

/// Text that is hashed as it is written.
struct Hashing<'a>(&'a mut Xxh3Default);

impl Write for Hashing<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

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
