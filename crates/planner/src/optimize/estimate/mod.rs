//! How many rows a plan gives and what its columns hold, guessed from the catalog's statistics and samples.
//!
//! Estimates choose between plans that mean the same; no rewrite's correctness rests on them. Start at [`Relation::of`].

mod column;
mod expected;
mod grouping;
mod join;
mod predicate;
mod sample;
mod scan;

#[cfg(test)]
mod tests;

use datafusion::common::DFSchema;
use datafusion::logical_expr::{Distinct, Expr, FetchType, LogicalPlan, SkipType};

pub(crate) use self::column::ColumnFacts;
use self::expected::Noted;
pub use self::expected::{Expected, ExpectedOf};
pub(crate) use self::grouping::groups;
pub(crate) use self::join::{
    FILTER, Keys, absence_share, composite_selectivity, existence_share, match_selectivity, share_in_common,
};
pub(crate) use self::scan::KnownRows;

/// What is believed about the rows of a plan. Counts are fractions of rows where that is what arithmetic gives.
#[derive(Debug, Clone)]
pub(crate) struct Relation {
    pub(crate) rows: f64,
    /// One per field of the plan's schema, in its order.
    pub(crate) columns: Vec<ColumnFacts>,
}

/// Rows of what nothing is known about.
const UNKNOWN_ROWS: f64 = 1_000.0;

impl Relation {
    /// The estimate for `plan`.
    pub(crate) fn of(plan: &LogicalPlan) -> Relation {
        Relation::noted(plan, &mut Noted::default())
    }

    /// Likewise; what the parts of `plan` give is noted on the way.
    fn noted(plan: &LogicalPlan, noted: &mut Noted) -> Relation {
        let relation = match plan {
            LogicalPlan::TableScan(scan) => scan::relation(scan),
            LogicalPlan::Filter(filter) => filtered(&filter.input, &filter.predicate, noted),
            LogicalPlan::Projection(projection) => {
                let input = Relation::noted(&projection.input, noted);
                let schema = projection.input.schema();
                let columns = projection.expr.iter().map(|expr| input.facts(expr, schema)).collect();
                Relation { rows: input.rows, columns }
            }
            LogicalPlan::Join(join) => join::relation(join, noted),
            LogicalPlan::Aggregate(aggregate) => grouping::aggregate(aggregate, noted),
            LogicalPlan::Distinct(Distinct::All(input)) => grouping::distinct(input, noted),
            LogicalPlan::Distinct(Distinct::On(on)) => Relation::unknown(plan, Relation::noted(&on.input, noted).rows),
            LogicalPlan::Union(union) => {
                let inputs: Vec<Relation> = union.inputs.iter().map(|input| Relation::noted(input, noted)).collect();
                Relation {
                    rows: inputs.iter().map(|input| input.rows).sum(),
                    columns: (0..plan.schema().fields().len())
                        .map(|index| ColumnFacts::union(inputs.iter().filter_map(|input| input.columns.get(index))))
                        .collect(),
                }
            }
            LogicalPlan::Limit(limit) => {
                let input = Relation::noted(&limit.input, noted);
                let rows = match (limit.get_skip_type(), limit.get_fetch_type()) {
                    (Ok(SkipType::Literal(skip)), Ok(FetchType::Literal(Some(fetch)))) => {
                        (input.rows - skip as f64).clamp(0.0, fetch as f64)
                    }
                    _ => input.rows,
                };
                input.with_rows(rows)
            }
            LogicalPlan::Values(values) => Relation::unknown(plan, values.values.len() as f64),
            LogicalPlan::EmptyRelation(empty) => Relation::unknown(plan, f64::from(u8::from(empty.produce_one_row))),
            LogicalPlan::Subquery(subquery) => Relation::noted(&subquery.subquery, noted),
            other => match other.inputs().as_slice() {
                // Sort, SubqueryAlias, Repartition, Window: the input's rows, its columns first.
                [input] => Relation::noted(input, noted),
                inputs => {
                    let rows = inputs.iter().map(|input| Relation::noted(input, noted).rows);
                    let rows = rows.fold(f64::NAN, f64::max);
                    Relation::unknown(plan, if rows.is_nan() { UNKNOWN_ROWS } else { rows })
                }
            },
        };
        let relation = relation.with_width(plan);
        noted.add(plan, relation.rows);
        relation
    }

    fn unknown(plan: &LogicalPlan, rows: f64) -> Relation {
        Relation { rows, columns: vec![ColumnFacts::unknown(rows); plan.schema().fields().len()] }
    }

    /// As many columns as the plan has, for nodes that add some to their input's.
    fn with_width(mut self, plan: &LogicalPlan) -> Relation {
        let unknown = ColumnFacts::unknown(self.rows);
        self.columns.resize(plan.schema().fields().len(), unknown);
        self
    }

    /// The same columns in fewer rows, taken without regard to their values.
    pub(crate) fn with_rows(mut self, rows: f64) -> Relation {
        if rows < self.rows {
            let before = self.rows;
            self.columns.iter_mut().for_each(|column| column.thin(before, rows));
        }
        self.rows = rows;
        self
    }

    /// What is known about the values of an expression over the columns of `schema`.
    pub(crate) fn facts(&self, expr: &Expr, schema: &DFSchema) -> ColumnFacts {
        match expr {
            Expr::Column(column) => schema
                .maybe_index_of_column(column)
                .and_then(|index| self.columns.get(index).cloned())
                .unwrap_or_else(|| ColumnFacts::unknown(self.rows)),
            Expr::Alias(alias) => self.facts(&alias.expr, schema),
            Expr::Cast(cast) => self.facts(&cast.expr, schema),
            Expr::TryCast(cast) => self.facts(&cast.expr, schema),
            Expr::Literal(..) => ColumnFacts { distinct: 1.0, domain: 1.0, ..ColumnFacts::unknown(self.rows) },
            other => {
                let distinct: f64 = other
                    .column_refs()
                    .iter()
                    .filter_map(|column| self.columns.get(schema.maybe_index_of_column(column)?))
                    .map(|facts| facts.distinct.max(1.0))
                    .product();
                let distinct = distinct.min(self.rows.max(1.0));
                ColumnFacts { distinct, domain: distinct, ..ColumnFacts::unknown(self.rows) }
            }
        }
    }

    /// Bytes of a row in memory, roughly.
    pub(crate) fn row_bytes(&self) -> f64 {
        self.columns.iter().map(|column| column.width).sum::<f64>().max(8.0)
    }
}

/// A filter right above a scan is tried on the table's sample; elsewhere its conjuncts are guessed one by one.
fn filtered(input: &LogicalPlan, predicate: &Expr, noted: &mut Noted) -> Relation {
    let known = match input {
        LogicalPlan::TableScan(scan) => scan::filtered(scan, predicate, |all, schema| {
            passing(all, schema, predicate, sample::try_filter(scan, predicate))
        }),
        _ => None,
    };
    known.unwrap_or_else(|| passing(Relation::noted(input, noted), input.schema(), predicate, None))
}

fn passing(relation: Relation, schema: &DFSchema, predicate: &Expr, tried: Option<sample::Tried>) -> Relation {
    let guessed = predicate::selectivity(predicate, &relation, schema);
    let selectivity = tried.as_ref().map_or(guessed, |tried| tried.selectivity(guessed));
    let Some(tried) = tried else { return predicate::apply(relation, predicate, schema, selectivity) };
    let mut kept = predicate::apply(relation.clone(), predicate, schema, selectivity);
    tried.narrow(&mut kept, &relation, schema);
    kept
}
