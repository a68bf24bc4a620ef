//! Names of the columns that calls become while they have no alias: DataFusion tells expressions apart by them.
//!
//! DataFusion's own name of a call repeats those of its arguments, so that the names of nested calls are together as long as the square of their
//! depth, and it asks for them at every level. A long one ends in its hash instead.

use std::fmt::Write;

use datafusion::common::Result;
use datafusion::logical_expr::Expr;
use xxhash_rust::xxh3::xxh3_128;

/// Names are as long at most, in bytes, apart from their hash.
const NAME_BYTES_MAX: usize = 512;

/// The name of the column that a call of `function` becomes: it tells apart what DataFusion's own name does.
///
/// # Errors
/// An argument whose name cannot be formatted.
pub(super) fn column_name(function: &str, args: &[Expr]) -> Result<String> {
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
}
