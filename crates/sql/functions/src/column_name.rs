//! Names of the columns that calls become while they have no alias: DataFusion tells expressions apart by them.
//!
//! DataFusion's own name of a call repeats those of its arguments, so that the names of nested calls are together as long as the square of their
//! depth, and it asks for them at every level. A call whose arguments have many nodes has their hash in its name instead.

use std::fmt::{self, Write as _};
use std::hash::{Hash, Hasher};
use std::mem::discriminant;

use datafusion::common::Result;
use datafusion::logical_expr::expr::{Cast, TryCast};
use datafusion::logical_expr::{BinaryExpr, Expr};
use xxhash_rust::xxh3::xxh3_128;

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
        let mut summary = Summary(Vec::with_capacity(4_096));
        summary.add_all(args)?;
        return Ok(format!("{function}(… {:032x})", xxh3_128(&summary.0)));
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

/// Whether an expression has no more than `nodes_left`, which are fewer then, of the nodes that [`Summary::add`] looks at.
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

/// Bytes that tell expressions apart. They are hashed at once: a hasher that is fed a few bytes at a time takes most of the time of naming.
struct Summary(Vec<u8>);

impl Summary {
    fn add_all(&mut self, args: &[Expr]) -> Result<()> {
        self.write_usize(args.len());
        args.iter().try_for_each(|arg| self.add(arg))
    }

    /// Adds what the name of an expression says, without writing the name.
    fn add(&mut self, expr: &Expr) -> Result<()> {
        match expr {
            // Names do not say that something is cast.
            Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => return self.add(expr),
            Expr::Column(column) => {
                self.write_u8(0);
                column.relation.hash(self);
                self.add_text(&column.name);
            }
            Expr::Literal(value, _) => {
                self.write_u8(1);
                // Values of different types may hash alike.
                discriminant(value).hash(self);
                self.add_sized(|summary| {
                    value.hash(summary);
                    Ok(())
                })?;
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                self.write_u8(2);
                op.hash(self);
                self.add(left)?;
                self.add(right)?;
            }
            Expr::ScalarFunction(call) => {
                self.write_u8(3);
                self.add_text(call.func.name());
                self.add_all(&call.args)?;
            }
            other => {
                self.write_u8(4);
                self.add_sized(|summary| Ok(write!(summary, "{}", other.schema_name())?))?;
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: &str) {
        self.write_usize(text.len());
        self.write(text.as_bytes());
    }

    /// Adds what `add` does, after its length: without it the bytes of two parts could be those of two others.
    fn add_sized(&mut self, add: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let at = self.0.len();
        self.write_usize(0);
        let start = self.0.len();
        add(self)?;
        let length = self.0.len() - start;
        self.0[at..start].copy_from_slice(&length.to_ne_bytes());
        Ok(())
    }
}

impl fmt::Write for Summary {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

impl Hasher for Summary {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&self.0)
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
    fn values_side_by_side_are_told_from_others_of_the_same_bytes() {
        use datafusion::common::ScalarValue;
        let name = |values: [ScalarValue; 2]| {
            let sum = (0..100).fold(lit(0), |sum, number| sum + lit(number));
            column_name("f", &[sum, lit(values[0].clone()), lit(values[1].clone())]).unwrap()
        };
        let boolean = |value| ScalarValue::Boolean(Some(value));
        let int2 = |value| ScalarValue::Int16(Some(value));
        assert_ne!(name([boolean(true), boolean(false)]), name([int2(257), ScalarValue::Null]));
        assert_ne!(name([boolean(false), boolean(false)]), name([int2(256), ScalarValue::Null]));
        assert_ne!(name([lit_text("a"), boolean(true)]), name([int2(-159), boolean(true)]));
    }

    fn lit_text(text: &str) -> datafusion::common::ScalarValue {
        datafusion::common::ScalarValue::Utf8(Some(text.to_owned()))
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
