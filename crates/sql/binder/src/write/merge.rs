//! Planning of MERGE: for each row of a join, the action of the first clause that applies.

use std::ops::ControlFlow;
use std::sync::Arc;

use catalog::Table;
use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, Expr, Ident, Join, JoinConstraint, JoinOperator, TableAlias,
    TableFactor, TableWithJoins, Value,
};
use syntax::statement::{Merge, MergeAction, MergeClause, MergeWhen, is_default};
use syntax::{Walk, parse_stored_expr};
use types::{Condition, SqlError, SqlResult, SqlType};

use super::new_rows::{MergeClauses, RowsRead, plan_columns, positions_of};
use super::set_clause::{NewValue, SetClause};
use super::target::WriteTarget;
use super::values::infer_parameter_type;
use super::{identity, insert, references, values};
use crate::bind::modification::{Clause, Modification, ModificationSource, ReturningRow, target_in_from};
use crate::bind::plan_names::{SOURCE_PRESENT, TARGET_PRESENT};
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
    let mut values = vec![(clause_number(&merge.clauses)?, Clause::MergeWhen)];
    let mut clauses = MergeClauses::default();
    for (number, clause) in merge.clauses.iter().enumerate() {
        let made = resolve_clause(&target.table, clause, values.len(), &mut declared)?;
        let place = match clause.when {
            MergeWhen::NotMatched => Clause::MergeInsert,
            MergeWhen::Matched | MergeWhen::NotMatchedBySource => Clause::Update,
        };
        for value in made.values {
            values.push((guard_value(&merge.clauses, number, value), place));
        }
        clauses.push(made.action, made.columns);
    }
    let is_set = |at: usize| clauses.may_change(at);
    let mut old = target.referenced_columns(binder);
    old.retain(|id| target.table.columns.iter().zip(0..).any(|(column, at)| column.id == *id && is_set(at)));
    let columns = plan_columns(&target, &positions_of(&target, &old));
    let bound = binder.resolve_modification(Modification {
        with: merge.with.as_ref(),
        source: ModificationSource::From(vec![join_source(target_in_from(&changed), merge)?]),
        target: changed,
        condition: None,
        values,
        returning: merge.returning.as_ref(),
        returning_row: ReturningRow::OldIfDeleted,
    })?;
    let (mut input, returning) = binder.plan_modification(&bound, &declared, &columns, |plan| {
        RowsRead::new(binder, &target, plan, bound.other_column_count)?.apply_merge_clauses(&clauses)
    })?;
    input.parameters = resolved_types(input.parameters.into_iter().map(Some).collect())?;
    let references = references::plan_referential_actions(binder, &target.table, &old)?;
    let (table, notices) = (Arc::clone(&target.table), Vec::new());
    Ok(ModifyPlan { table, input, old_columns: old, references, returning, command_tag: "MERGE", notices })
}

/// Action and new values of a clause.
struct ResolvedClause {
    action: Action,
    columns: Vec<NewValue>,
    values: Vec<Expr>,
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
                Some(_) => values::filled_positions(&positions, written.len(), !columns.is_empty())?,
                None => Vec::new(),
            };
            let mut made = ResolvedClause {
                action: Action::Insert,
                columns: vec![NewValue::Default; table.columns.len()],
                values: Vec::new(),
            };
            for (position, value) in filled.into_iter().zip(written).filter(|(_, value)| !is_default(value)) {
                let column = &table.columns[position];
                if identity::is_ignored(column, *overriding)? {
                    continue;
                }
                infer_parameter_type(value, &column.sql_type, parameters);
                made.columns[position] = NewValue::Value(first + made.values.len());
                made.values.push(value.clone());
            }
            made
        }
    })
}

/// Joins the target to the source; unmatched rows are preserved if a clause applies to them.
fn join_source(mut target: TableWithJoins, merge: &Merge) -> SqlResult<TableWithJoins> {
    let has = |when| merge.clauses.iter().any(|clause| clause.when == when);
    let on = JoinConstraint::On(merge.on.clone());
    let (keeps_source, keeps_target) = (has(MergeWhen::NotMatched), has(MergeWhen::NotMatchedBySource));
    let join_operator = match (keeps_source, keeps_target) {
        (false, false) => JoinOperator::Inner(on),
        (true, false) => JoinOperator::RightOuter(on),
        (false, true) => JoinOperator::LeftOuter(on),
        (true, true) => JoinOperator::FullOuter(on),
    };
    let mut source = merge.source.clone();
    if keeps_target {
        source.joins.push(source_present_join()?);
    }
    let relation = if source.joins.is_empty() {
        source.relation
    } else {
        TableFactor::NestedJoin { table_with_joins: Box::new(source), alias: None }
    };
    target.joins.push(Join { relation, global: false, join_operator });
    Ok(target)
}

/// Builds `CROSS JOIN (SELECT true)`: a column that is true in rows of the source, and NULL in rows without one.
fn source_present_join() -> SqlResult<Join> {
    let Expr::Subquery(subquery) = parse_stored_expr(&format!("(SELECT true AS \"{SOURCE_PRESENT}\")"))? else {
        return Err(SqlError::internal("SELECT true does not parse as a subquery"));
    };
    let name = Ident::with_quote('"', SOURCE_PRESENT);
    let alias = TableAlias { explicit: true, name, columns: Vec::new(), at: None };
    let relation = TableFactor::Derived { lateral: false, subquery, alias: Some(alias), sample: None };
    Ok(Join { relation, global: false, join_operator: JoinOperator::CrossJoin(JoinConstraint::None) })
}

/// Builds the number of the clause that applies to a row; NULL for none or DO NOTHING.
fn clause_number(clauses: &[MergeClause]) -> SqlResult<Expr> {
    let mut conditions = Vec::with_capacity(clauses.len());
    for (number, clause) in clauses.iter().enumerate() {
        refuse_volatile(clause)?;
        let result = match clause.action {
            MergeAction::Nothing => Value::Null,
            _ => Value::Number(number.to_string(), false),
        };
        conditions.push(CaseWhen { condition: clause_condition(clauses, clause), result: Expr::Value(result.into()) });
    }
    let expr = Box::new(case(conditions));
    Ok(Expr::Cast { kind: CastKind::Cast, expr, data_type: DataType::Integer(None), array: false, format: None })
}

/// Guards a value, so that it is computed only for rows to which its clause applies.
fn guard_value(clauses: &[MergeClause], number: usize, value: Expr) -> Expr {
    if matches!(value, Expr::Value(_) | Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
        return value;
    }
    let clause = &clauses[number];
    let mut condition = clause_condition(clauses, clause);
    for earlier in clauses[..number].iter().filter(|earlier| earlier.when == clause.when) {
        if let Some(earlier) = &earlier.condition {
            let not = Expr::IsNotTrue(Box::new(Expr::Nested(Box::new(earlier.clone()))));
            condition = and(not, condition);
        }
    }
    case(vec![CaseWhen { condition, result: value }])
}

/// Builds the condition under which a clause applies to a row, regardless of earlier clauses.
fn clause_condition(clauses: &[MergeClause], clause: &MergeClause) -> Expr {
    let there = |name: &str| Expr::IsNotNull(Box::new(Expr::Identifier(Ident::with_quote('"', name))));
    let absent = |name: &str| Expr::IsNull(Box::new(Expr::Identifier(Ident::with_quote('"', name))));
    let kind = match clause.when {
        MergeWhen::NotMatched => absent(TARGET_PRESENT),
        MergeWhen::NotMatchedBySource => absent(SOURCE_PRESENT),
        // If unmatched rows of the target are preserved, a column distinguishes them.
        MergeWhen::Matched if clauses.iter().any(|other| other.when == MergeWhen::NotMatchedBySource) => {
            and(there(TARGET_PRESENT), there(SOURCE_PRESENT))
        }
        MergeWhen::Matched => there(TARGET_PRESENT),
    };
    match &clause.condition {
        None => kind,
        Some(condition) => and(kind, Expr::Nested(Box::new(condition.clone()))),
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
