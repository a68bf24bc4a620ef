//! Types of casts, for DataFusion's planner.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion::common::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::DataType;
use functions::error::to_datafusion;
use syntax::sql_type;

/// Type planner with PostgreSQL's types.
#[derive(Debug)]
pub(super) struct PostgresTypes;

impl TypePlanner for PostgresTypes {
    fn plan_type_field(&self, written: &DataType) -> Result<Option<FieldRef>> {
        let sql_type = sql_type(written).map_err(to_datafusion)?;
        Ok(Some(Arc::new(sql_type.arrow_field("type", true))))
    }
}
