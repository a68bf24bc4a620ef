//! Planning of MERGE: for each row of a join, the action of the first clause that applies.

use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::Table;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, Join, JoinConstraint, JoinOperator, TableFactor,
    TableWithJoins, Value,
};
use syntax::Walk;
use syntax::statement::{Merge, MergeAction, MergeClause, MergeWhen, is_default};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::insert_values::infer_parameter_type;
use super::new_rows::{MergeClauses, RowsRead, plan_columns, positions_of};
use super::set_clause::{AssignedExpr, NewValue, SetClause};
use super::target::WriteTarget;
use super::{identity_values, insert, insert_values, referential_actions};
use crate::bind::modification::{
    Clause, MergeComposition, Modification, ModificationSource, ReturningRow, RowPresence, ValueKind, WrittenValue,
    target_as_from_item,
};
use crate::bind::{Binder, resolved_types};
use crate::statement_plan::{Action, ModifyPlan};

/// Plans a MERGE. `declared` are the parameter types declared by the client.
///
/// # Errors
/// SQLSTATE 42P01, 42703 and 42712 for wrong names, 42804 for a type without an assignment cast, 42501 without the
/// privilege, 0A000 for volatile conditions; errors of its expressions.
pub fn plan_merge(binder: &Binder<'_>, merge: &Merge, declared: &[Option<SqlType>]) -> SqlResult<ModifyPlan> {
    let target = WriteTarget::resolve(binder, &merge.target.name, "merge into")?;
    let changed = target.with_alias(merge.target.alias.as_ref());
    let mut declared = declared.to_vec();
    let (mut guards, mut values) = ClauseGuards::new(&merge.clauses)?;
    let mut clauses = MergeClauses::default();
    for (number, clause) in merge.clauses.iter().enumerate() {
        // The first value is the clause's number.
        let made = resolve_clause(&target.table, clause, 1 + guards.clauses_of_values.len(), &mut declared)?;
        let place = match clause.when {
            MergeWhen::NotMatched => Clause::MergeInsert,
            MergeWhen::Matched | MergeWhen::NotMatchedBySource => Clause::Update,
        };
        for value in made.values {
            values.push(value.into_written(place));
            guards.clauses_of_values.push(number);
        }
        clauses.push(made.action, made.columns);
    }
    let compose = |resolved: Vec<Expr>, presence: &RowPresence| guards.compose(resolved, presence);
    let is_set = |at: usize| clauses.may_change(at);
    let mut old = target.referenced_columns(binder);
    old.retain(|id| target.table.columns.iter().zip(0..).any(|(column, at)| column.id == *id && is_set(at)));
    let columns = plan_columns(&target, &positions_of(&target, &old));
    let bound = binder.resolve_modification(Modification {
        with: merge.with.as_ref(),
        source: ModificationSource::From(vec![join_source(target_as_from_item(&changed), merge)]),
        target: changed,
        condition: None,
        values,
        merge: Some(MergeComposition {
            compose: &compose,
            needs_source_presence: has_clause(merge, MergeWhen::NotMatchedBySource),
        }),
        returning: merge.returning.as_ref(),
        returning_row: ReturningRow::OldIfDeleted,
    })?;
    let (mut input, returning) = binder.plan_modification(&bound, &declared, &columns, |plan| {
        RowsRead::new(binder, &target, plan, bound.other_column_count)?.apply_merge_clauses(&clauses)
    })?;
    input.parameters = resolved_types(input.parameters.into_iter().map(Some).collect())?;
    let references = referential_actions::plan_referential_actions(binder, &target.table, &old)?;
    let (table, notices) = (Arc::clone(&target.table), Vec::new());
    Ok(ModifyPlan { table, input, old_columns: old, references, returning, command_tag: "MERGE", notices })
}

/// Action and new values of a clause.
struct ResolvedClause {
    action: Action,
    columns: Vec<NewValue>,
    values: Vec<AssignedExpr>,
}

fn resolve_clause(
    table: &Table,
    clause: &MergeClause,
    first: usize,
    parameters: &mut Vec<Option<SqlType>>,
) -> SqlResult<ResolvedClause> {
    let nothing =
        |action| ResolvedClause { action, columns: vec![NewValue::Null; table.columns.len()], values: Vec::new() };
    Ok(match &clause.action {
        MergeAction::Nothing => nothing(Action::Nothing),
        MergeAction::Delete => nothing(Action::Delete),
        MergeAction::Update(assignments) => {
            let SetClause { columns, values } = SetClause::resolve(table, assignments, first, parameters)?;
            ResolvedClause { action: Action::Update, columns, values }
        }
        MergeAction::Insert { columns, overriding, values } => {
            let positions = insert::column_positions(table, columns)?;
            let written = values.as_deref().unwrap_or_default();
            let filled = match values {
                Some(_) => insert_values::filled_positions(&positions, written.len(), !columns.is_empty())?,
                None => Vec::new(),
            };
            let mut made = ResolvedClause {
                action: Action::Insert,
                columns: vec![NewValue::Default; table.columns.len()],
                values: Vec::new(),
            };
            for (position, value) in filled.into_iter().zip(written).filter(|(_, value)| !is_default(value)) {
                let column = &table.columns[position];
                if identity_values::is_ignored(column, *overriding)? {
                    continue;
                }
                infer_parameter_type(value, &column.sql_type, parameters);
                made.columns[position] = NewValue::Value(first + made.values.len());
                made.values.push(AssignedExpr { expr: value.clone(), row_column: None });
            }
            made
        }
    })
}

/// Joins the target to the source; unmatched rows are preserved if a clause applies to them.
fn join_source(mut target: TableWithJoins, merge: &Merge) -> TableWithJoins {
    let on = JoinConstraint::On(merge.on.clone());
    let keeps_source = has_clause(merge, MergeWhen::NotMatched);
    let keeps_target = has_clause(merge, MergeWhen::NotMatchedBySource);
    let join_operator = match (keeps_source, keeps_target) {
        (false, false) => JoinOperator::Inner(on),
        (true, false) => JoinOperator::RightOuter(on),
        (false, true) => JoinOperator::LeftOuter(on),
        (true, true) => JoinOperator::FullOuter(on),
    };
    let source = merge.source.clone();
    let relation = if source.joins.is_empty() {
        source.relation
    } else {
        TableFactor::NestedJoin { table_with_joins: Box::new(source), alias: None }
    };
    target.joins.push(Join { relation, global: false, join_operator });
    target
}

fn has_clause(merge: &Merge, when: MergeWhen) -> bool {
    merge.clauses.iter().any(|clause| clause.when == when)
}

/// Conditions under which clauses apply to a row, over resolved expressions.
struct ClauseGuards {
    clauses: Vec<GuardedClause>,
    /// Number of the clause of each value.
    clauses_of_values: Vec<usize>,
}

/// Clause with its kind of rows.
struct GuardedClause {
    when: MergeWhen,
    does_nothing: bool,
    /// Index of its condition among all conditions.
    condition: Option<usize>,
}

impl ClauseGuards {
    /// Creates the guards of `clauses`; the second result is their conditions.
    ///
    /// # Errors
    /// SQLSTATE 0A000 for a volatile condition, because conditions are evaluated more than once.
    fn new(clauses: &[MergeClause]) -> SqlResult<(Self, Vec<WrittenValue>)> {
        let (mut guarded, mut conditions) = (Vec::with_capacity(clauses.len()), Vec::new());
        for clause in clauses {
            refuse_volatile(clause)?;
            let condition = clause.condition.as_ref().map(|condition| {
                let hides_target = clause.when == MergeWhen::NotMatched;
                let kind = ValueKind { clause: Clause::MergeWhen, hides_target, row_column: None };
                conditions.push(WrittenValue { expr: condition.clone(), kind });
                conditions.len() - 1
            });
            let does_nothing = matches!(clause.action, MergeAction::Nothing);
            guarded.push(GuardedClause { when: clause.when, does_nothing, condition });
        }
        Ok((Self { clauses: guarded, clauses_of_values: Vec::new() }, conditions))
    }

    /// Returns the number of the clause that applies to a row, then the values, each computed only for rows to which
    /// its clause applies. `resolved` are the conditions, then the values.
    fn compose(&self, mut resolved: Vec<Expr>, presence: &RowPresence) -> Vec<Expr> {
        let values = resolved.split_off(resolved.len() - self.clauses_of_values.len());
        let conditions = resolved;
        let guarded = values.into_iter().zip(&self.clauses_of_values);
        let guarded = guarded.map(|(value, clause)| self.guard_value(*clause, value, &conditions, presence));
        std::iter::once(self.clause_number(&conditions, presence)).chain(guarded).collect()
    }

    /// Builds the number of the clause that applies to a row; NULL for none or DO NOTHING.
    fn clause_number(&self, conditions: &[Expr], presence: &RowPresence) -> Expr {
        let branches = self.clauses.iter().enumerate().map(|(number, clause)| {
            let result = if clause.does_nothing { Value::Null } else { Value::Number(number.to_string(), false) };
            CaseWhen {
                condition: self.clause_condition(clause, conditions, presence),
                result: Expr::Value(result.into()),
            }
        });
        let expr = Box::new(case(branches.collect()));
        Expr::Cast { kind: CastKind::Cast, expr, data_type: DataType::Integer(None), array: false, format: None }
    }

    /// Guards a value, so that it is computed only for rows to which its clause applies.
    fn guard_value(&self, number: usize, value: Expr, conditions: &[Expr], presence: &RowPresence) -> Expr {
        if matches!(value, Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            return value;
        }
        let clause = &self.clauses[number];
        let mut condition = self.clause_condition(clause, conditions, presence);
        for earlier in self.clauses[..number].iter().filter(|earlier| earlier.when == clause.when) {
            if let Some(earlier) = earlier.condition {
                let not = Expr::IsNotTrue(Box::new(Expr::Nested(Box::new(conditions[earlier].clone()))));
                condition = and(not, condition);
            }
        }
        case(vec![CaseWhen { condition, result: value }])
    }

    /// Builds the condition under which a clause applies to a row, regardless of earlier clauses.
    fn clause_condition(&self, clause: &GuardedClause, conditions: &[Expr], presence: &RowPresence) -> Expr {
        let target = Box::new(presence.target.clone());
        let source = presence.source.clone().map(Box::new);
        let kind = match clause.when {
            MergeWhen::NotMatched => Expr::IsNull(target),
            MergeWhen::NotMatchedBySource => {
                Expr::IsNull(source.expect("the source is marked if a clause is for rows without one"))
            }
            // If unmatched rows of the target are preserved, a column distinguishes them.
            MergeWhen::Matched => match source {
                Some(source) => and(Expr::IsNotNull(target), Expr::IsNotNull(source)),
                None => Expr::IsNotNull(target),
            },
        };
        match clause.condition {
            None => kind,
            Some(condition) => and(kind, Expr::Nested(Box::new(conditions[condition].clone()))),
        }
    }
}

/// Rejects a volatile condition, because conditions are evaluated more than once.
fn refuse_volatile(clause: &MergeClause) -> SqlResult<()> {
    let Some(condition) = &clause.condition else { return Ok(()) };
    let found = condition.walk_expressions(|expr| {
        let name = match expr {
            Expr::Function(function) => function.name.0.last().and_then(|part| part.as_ident()),
            _ => None,
        };
        let is_volatile = name.is_some_and(|name| functions::is_volatile(&name.value.to_lowercase()));
        if is_volatile { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    if found.is_break() {
        let message = "a volatile function in a WHEN condition of MERGE is not supported";
        return Err(SqlError::new(Condition::FeatureNotSupported, message));
    }
    Ok(())
}

fn case(conditions: Vec<CaseWhen>) -> Expr {
    Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: None,
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: BinaryOperator::And, right: Box::new(right) }
}
