//! UNNEST: adds the SQL type of the array's elements to its columns, which Arrow types do not determine.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::metadata::FieldMetadata;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, Unnest};
use types::SqlType;

/// Adds the element types to the columns of an UNNEST, in a projection if any column needs it.
pub(super) fn add_element_types(unnest: Unnest) -> Result<LogicalPlan> {
    let input = unnest.input.schema();
    let marks: Vec<Option<FieldMetadata>> = (unnest.dependency_indices.iter())
        .map(|at| {
            unnest.list_type_columns.iter().find(|(list, _)| list == at)?;
            let metadata = SqlType::from_arrow_field(input.field(*at))?.element()?.arrow_metadata();
            (!metadata.is_empty()).then(|| FieldMetadata::from(metadata))
        })
        .collect();
    if marks.iter().all(Option::is_none) {
        return Ok(LogicalPlan::Unnest(unnest));
    }
    let columns = unnest.schema.columns().into_iter().zip(marks);
    let columns = columns.map(|(column, mark)| match mark {
        Some(mark) => {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            Expr::Column(column).alias_qualified_with_metadata(relation, name, Some(mark))
        }
        None => Expr::Column(column),
    });
    let columns = columns.collect();
    Projection::try_new(columns, Arc::new(LogicalPlan::Unnest(unnest))).map(LogicalPlan::Projection)
}
