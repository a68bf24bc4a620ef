//! COALESCE, GREATEST, LEAST and NULLIF: the analyzer gives their arguments one type.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;
use types::{SqlResult, SqlType};

use super::definition::{Definition, Gives, Overload, Takes};
use crate::semantics::type_rules::common_type_of;

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new("coalesce", &[Overload::builtin(&[Takes::Any], Gives::Computed(common), coalesce).variadic()]),
    Definition::new("greatest", &[Overload::builtin(&[Takes::Any], Gives::Computed(common), greatest).variadic()]),
    Definition::new("least", &[Overload::builtin(&[Takes::Any], Gives::Computed(common), least).variadic()]),
    Definition::new("nullif", &[Overload::builtin(&[Takes::Any, Takes::Any], Gives::Same(0), coalesce)]),
];

fn common(arguments: &[SqlType]) -> SqlResult<SqlType> {
    common_type_of(arguments, "COALESCE")
}

fn coalesce() -> Arc<ScalarUDF> {
    datafusion::functions::core::coalesce()
}

fn greatest() -> Arc<ScalarUDF> {
    datafusion::functions::core::greatest()
}

fn least() -> Arc<ScalarUDF> {
    datafusion::functions::core::least()
}
