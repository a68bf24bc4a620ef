//! Catalog with rows in memory, and a planner over it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, new_null_array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use binder::{QueryPlan, StatementPlan};
use catalog::{CatalogState, Change, Column, Distribution, Role, Schema, Table, TableOrder, View};
use datafusion::catalog::Session;
use datafusion::common::{Result as DfResult, ScalarValue};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::sql::sqlparser::ast::Statement;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use operators::operator_planning;
use plan::{ShardTable, TableScanPlanner, schema_of};
use planner::Planner;
use session_context::StatementContext;
use syntax::{ParsedStatement, sql_type};
use types::{ColumnId, Oid, SqlError, SqlResult, SqlType};

use super::super::context::context;

/// Planner and statement context over some tables.
pub(super) struct Fixture {
    pub(super) planner: Planner,
    pub(super) context: Arc<StatementContext>,
}

/// Scans that return in-memory rows by table name.
#[derive(Debug)]
struct MemoryScan {
    rows: HashMap<String, RecordBatch>,
}

impl TableScanPlanner for MemoryScan {
    fn plan_scan(
        &self,
        table: &ShardTable,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
        _session: &dyn Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let schema = schema_of(&table.table.columns);
        let rows = match self.rows.get(&table.table.name) {
            Some(rows) => {
                let places = schema.fields().iter().map(|field| rows.schema_ref().index_of(field.name()));
                rows.project(&places.collect::<Result<Vec<_>, _>>()?)?
            }
            None => RecordBatch::new_empty(Arc::clone(&schema)),
        };
        Ok(MemorySourceConfig::try_new_exec(&[vec![rows]], schema, projection.cloned())?)
    }
}

/// Parses `CREATE TABLE` statements into tables of the schema `public`.
fn tables(ddl: &str) -> Vec<Table> {
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, ddl).expect("the fixture's DDL parses");
    statements
        .into_iter()
        .zip(20_000..)
        .map(|(statement, oid)| {
            let Statement::CreateTable(create) = statement else { panic!("the fixture's DDL has other statements") };
            let columns: Vec<Column> = create
                .columns
                .iter()
                .zip(1..)
                .map(|(column, id)| Column {
                    id: ColumnId(id),
                    name: column.name.value.clone(),
                    sql_type: sql_type(&column.data_type).expect("the fixture's types exist"),
                    not_null: false,
                    default: None,
                    missing: None,
                    comment: None,
                    identity: None,
                    sequences: Vec::new(),
                })
                .collect();
            Table {
                oid: Oid(oid),
                schema: Schema::PUBLIC,
                name: create.name.to_string(),
                owner: Role::BOOTSTRAP,
                next_column: i32::try_from(columns.len()).expect("few columns") + 1,
                columns,
                constraints: Vec::new(),
                distribution: Distribution::Random,
                order: TableOrder::None,
                comment: None,
                storage: catalog::Storage::default(),
                indexes: Vec::new(),
                options: Vec::new(),
                temporary: None,
                cache: types::CachePolicy::default(),
                external: None,
            }
        })
        .collect()
}

impl Fixture {
    /// Returns a fixture with empty tables.
    pub(super) fn with_tables(ddl: &str) -> Self {
        Self::new(tables(ddl), Vec::new(), HashMap::new())
    }

    fn new(tables: Vec<Table>, views: Vec<View>, rows: HashMap<String, RecordBatch>) -> Self {
        let tables = tables.into_iter().map(|table| Change::PutTable(Arc::new(table)));
        let views = views.into_iter().map(|view| Change::PutView(Arc::new(view)));
        let snapshot: CatalogState = tables
            .chain(views)
            .fold(CatalogState::new_warehouse(), |state, change| state.apply(&change).expect("the fixture is sound"));
        let snapshot = Arc::new(snapshot);
        let context = context(snapshot, || Oid(30_000));
        let planner =
            Planner::new(Arc::new(MemoryScan { rows }), operator_planning(), Arc::new(RuntimeEnv::default()), 2);
        Self { planner, context: Arc::new(context) }
    }

    /// Returns a fixture with `t(a, b, n)` of four rows, `u(a, c)` of three, the empty `e(a)`, and the view `v(a,
    /// twice)` over `t`.
    pub(super) fn small() -> Self {
        let tables = tables(
            "CREATE TABLE t (a int, b text, n numeric(10,2)); CREATE TABLE u (a int, c text); CREATE TABLE e (a int)",
        );
        let ints = |values: &[Option<i32>]| Arc::new(values.iter().copied().collect::<arrow::array::Int32Array>());
        let texts = |values: &[&str]| Arc::new(values.iter().map(Some).collect::<arrow::array::StringViewArray>());
        let decimals = |values: &[Option<i128>]| {
            let array = values.iter().copied().collect::<arrow::array::Decimal128Array>();
            Arc::new(array.with_precision_and_scale(10, 2).expect("a valid scale"))
        };
        let t: Vec<ArrayRef> = vec![
            ints(&[Some(1), Some(2), Some(3), None]),
            texts(&["one", "two", "three", "none"]),
            decimals(&[Some(150), Some(250), None, Some(1)]),
        ];
        let u: Vec<ArrayRef> = vec![ints(&[Some(2), Some(2), Some(4)]), texts(&["p", "q", "r"])];
        let rows = tables
            .iter()
            .zip([t, u])
            .map(|(table, columns)| {
                let batch = RecordBatch::try_new(schema_of(&table.columns), columns).expect("columns fit");
                (table.name.clone(), batch)
            })
            .collect();
        let view = View {
            oid: Oid(25_000),
            schema: Schema::PUBLIC,
            name: "v".to_owned(),
            owner: Role::BOOTSTRAP,
            columns: vec![("a".to_owned(), SqlType::Int4), ("twice".to_owned(), SqlType::Int4)],
            definition: "SELECT a, a + a FROM t WHERE a < 3".to_owned(),
            depends_on: vec![tables[0].oid],
            columns_used: vec![(tables[0].oid, ColumnId(1))],
            comment: None,
            column_comments: std::collections::BTreeMap::new(),
        };
        Self::new(tables, vec![view], rows)
    }

    pub(super) fn query(&self, sql: &str) -> SqlResult<QueryPlan> {
        self.parsed_query(&self.planner.parse(sql)?[0])
    }

    pub(super) fn parsed_query(&self, parsed: &ParsedStatement) -> SqlResult<QueryPlan> {
        match self.planner.plan(parsed, &[], &self.context)? {
            StatementPlan::Query(query) => Ok(query),
            other => panic!("{} is planned as {other:?}", parsed.text),
        }
    }

    pub(super) fn parsed(&self, sql: &str) -> ParsedStatement {
        self.planner.parse(sql).expect("it is SQL").swap_remove(0)
    }

    /// Returns the rows of a query, one text per row, or the error as `Condition: message`.
    pub(super) async fn rows(&self, sql: &str) -> Vec<String> {
        self.run(sql, Vec::new())
            .await
            .unwrap_or_else(|error| vec![format!("{:?}: {}", error.condition, error.message)])
    }

    pub(super) async fn run(&self, sql: &str, parameters: Vec<ScalarValue>) -> SqlResult<Vec<String>> {
        let query = self.query(sql)?.with_parameters(parameters)?;
        let batches = crate::planner_tests::write::run(&query).await?;
        batches.iter().map(shown).collect::<SqlResult<Vec<_>>>().map(|rows| rows.concat())
    }
}

fn shown(batch: &RecordBatch) -> SqlResult<Vec<String>> {
    let internal = |error: arrow::error::ArrowError| SqlError::internal(error.to_string());
    let columns = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Null => Ok(new_null_array(&DataType::Utf8, column.len())),
            DataType::List(_) => {
                let options = arrow::util::display::FormatOptions::default();
                let formatter = arrow::util::display::ArrayFormatter::try_new(column, &options).map_err(internal)?;
                let texts = (0..column.len()).map(|row| Some(formatter.value(row).to_string()));
                Ok(Arc::new(texts.collect::<arrow::array::StringArray>()) as ArrayRef)
            }
            _ => cast(column, &DataType::Utf8).map_err(internal),
        })
        .collect::<SqlResult<Vec<_>>>()?;
    Ok((0..batch.num_rows())
        .map(|row| {
            let values = columns.iter().map(|column| {
                let texts = column.as_string::<i32>();
                if arrow::array::Array::is_null(texts, row) { "NULL" } else { texts.value(row) }
            });
            values.collect::<Vec<_>>().join(" ")
        })
        .collect())
}
