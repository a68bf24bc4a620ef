//! Conversion of filters to tests that statistics can answer. A test may pass more rows than its filter, never fewer.

use std::sync::Arc;

use blocks::LikePattern;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, Column, DynamicFilterPhysicalExpr, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr, Literal,
};
use datafusion::physical_expr::{PhysicalExpr, utils::collect_columns};
use shards::{ColumnDef, CompareOp, Datum, Predicate, Test};
use types::SqlType;

use self::literal_conversion::literal_to_datum;

mod literal_conversion;
#[cfg(test)]
mod tests;

/// Maximum length of a list that is tested value by value; longer lists are tested by their bounds.
const LIST_VALUES_MAX: usize = 1_024;

/// Returns what `filter` implies for each of its columns; its column indexes refer to `columns`.
pub fn extract_predicates(filter: &Arc<dyn PhysicalExpr>, columns: &[ColumnDef]) -> Vec<Predicate> {
    let Some(filter) = current_filter(filter) else { return Vec::new() };
    let mut used: Vec<usize> = collect_columns(&filter).iter().map(Column::index).collect();
    used.sort_unstable();
    used.dedup();
    let predicate = |index: usize| {
        let column = columns.get(index)?;
        let test = ColumnTestExtractor { index, column }.test(&filter)?;
        Some(Predicate { column: column.id, test })
    };
    used.into_iter().filter_map(predicate).collect()
}

/// Returns true if a filter passes all rows in its present state.
pub fn passes_all(filter: &Arc<dyn PhysicalExpr>) -> bool {
    let literal =
        |filter: &Arc<dyn PhysicalExpr>| filter.downcast_ref::<Literal>().map(|literal| literal.value().clone());
    current_filter(filter).as_ref().and_then(literal) == Some(ScalarValue::Boolean(Some(true)))
}

/// Returns the present state of a dynamic filter, or the filter itself.
fn current_filter(filter: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    match filter.downcast_ref::<DynamicFilterPhysicalExpr>() {
        Some(dynamic) => dynamic.current().ok(),
        None => Some(Arc::clone(filter)),
    }
}

/// Reader of filters for the sake of one column.
struct ColumnTestExtractor<'a> {
    index: usize,
    column: &'a ColumnDef,
}

impl ColumnTestExtractor<'_> {
    /// Returns the test that the column passes wherever `filter` is true; `None` if the filter implies nothing about
    /// this column alone.
    fn test(&self, filter: &Arc<dyn PhysicalExpr>) -> Option<Test> {
        let filter = current_filter(filter)?;
        if let Some(literal) = filter.downcast_ref::<Literal>() {
            // A literal other than true passes no row.
            return (*literal.value() != ScalarValue::Boolean(Some(true))).then(|| Test::Any(Vec::new()));
        }
        if let Some(binary) = filter.downcast_ref::<BinaryExpr>() {
            return self.binary_test(binary);
        }
        if let Some(test) = filter.downcast_ref::<IsNullExpr>() {
            return self.is_column(test.arg()).then_some(Test::IsNull);
        }
        if let Some(test) = filter.downcast_ref::<IsNotNullExpr>() {
            return self.is_column(test.arg()).then_some(Test::IsNotNull);
        }
        if let Some(list) = filter.downcast_ref::<InListExpr>() {
            return self.in_list_test(list);
        }
        if let Some(like) = filter.downcast_ref::<LikeExpr>() {
            return self.like_test(like);
        }
        if let Some(case) = filter.downcast_ref::<CaseExpr>() {
            // Filters of a partitioned join: one for each partition.
            let branches = case.when_then_expr().iter().map(|(_, then)| then).chain(case.else_expr());
            return branches.map(|branch| self.test(branch)).collect::<Option<_>>().map(Test::Any);
        }
        // A boolean column as a condition.
        let is_flag = self.is_column(&filter) && self.column.sql_type == SqlType::Bool;
        is_flag.then_some(Test::Compare(CompareOp::Eq, Datum::Bool(true)))
    }

    fn binary_test(&self, binary: &BinaryExpr) -> Option<Test> {
        let (left, right) = (binary.left(), binary.right());
        match binary.op() {
            Operator::And => match (self.test(left), self.test(right)) {
                (Some(left), Some(right)) => Some(Test::All(vec![left, right])),
                (left, right) => left.or(right),
            },
            Operator::Or => Some(Test::Any(vec![self.test(left)?, self.test(right)?])),
            operator => {
                if self.is_column(left) {
                    self.comparison_test(*operator, right)
                } else if self.is_column(right) {
                    self.comparison_test(operator.swap()?, left)
                } else {
                    None
                }
            }
        }
    }

    fn comparison_test(&self, operator: Operator, value: &Arc<dyn PhysicalExpr>) -> Option<Test> {
        let value = value.downcast_ref::<Literal>()?.value();
        let op = match operator {
            Operator::Eq => CompareOp::Eq,
            Operator::NotEq => CompareOp::NotEq,
            Operator::Lt => CompareOp::Less,
            Operator::LtEq => CompareOp::LessEq,
            Operator::Gt => CompareOp::Greater,
            Operator::GtEq => CompareOp::GreaterEq,
            _ => return None,
        };
        if value.is_null() {
            return Some(Test::Any(Vec::new()));
        }
        Some(Test::Compare(op, literal_to_datum(value, &self.column.sql_type)?))
    }

    fn in_list_test(&self, list: &InListExpr) -> Option<Test> {
        if list.negated() || !self.is_column(list.expr()) {
            return None;
        }
        let mut values = Vec::with_capacity(list.len());
        for value in list.list() {
            let value = value.downcast_ref::<Literal>()?.value();
            if !value.is_null() {
                values.push(literal_to_datum(value, &self.column.sql_type)?);
            }
        }
        if values.len() <= LIST_VALUES_MAX {
            return Some(Test::In(values));
        }
        let mut low = values.first()?.clone();
        let mut high = low.clone();
        for value in values {
            if value < low {
                low = value;
            } else if value > high {
                high = value;
            }
        }
        Some(Test::Between(low, high))
    }

    /// Converts LIKE. A pattern that cannot be tested on bytes still bounds the text if it begins with plain
    /// characters.
    fn like_test(&self, like: &LikeExpr) -> Option<Test> {
        let is_text = matches!(self.column.sql_type, SqlType::Text | SqlType::Varchar(_));
        if like.case_insensitive() || !self.is_column(like.expr()) || !is_text {
            return None;
        }
        let pattern = like.pattern().downcast_ref::<Literal>()?.value().try_as_str()??;
        if let Some(pattern) = LikePattern::parse(pattern) {
            return Some(Test::Like { pattern, is_negated: like.negated() });
        }
        if like.negated() {
            return None;
        }
        let prefix: String = pattern.chars().take_while(|c| !matches!(c, '%' | '_' | '\\')).collect();
        if prefix.is_empty() {
            return None;
        }
        let from = Test::Compare(CompareOp::GreaterEq, Datum::Text(prefix.clone()));
        // Text with the prefix is less than the prefix with its last character incremented.
        let mut above = prefix;
        let next = above.pop().and_then(|last| char::from_u32(u32::from(last) + 1));
        let Some(next) = next else { return Some(from) };
        above.push(next);
        Some(Test::All(vec![from, Test::Compare(CompareOp::Less, Datum::Text(above))]))
    }

    fn is_column(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        expr.downcast_ref::<Column>().is_some_and(|column| column.index() == self.index)
    }
}
