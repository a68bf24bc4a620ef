use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arrow::array::{Array, ArrayRef, Int32Array, Int64Array, RecordBatch, StringViewArray};
use arrow::compute::concat_batches;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use binder::{QueryPlan, StatementPlan, WritePlan, read_count};
use catalog::{CatalogState, Column};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result as DfResult, ScalarValue};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::{ExecutionPlan, collect};
use functions::error::from_datafusion;
use operators::{operator_planning, plan_query};
use parking_lot::Mutex;
use plan::{ShardTable, TableScanPlanner, schema_of};
use planner::Planner;
use session_context::StatementContext;
use tokio_util::sync::CancellationToken;
use types::{Oid, SqlError, SqlResult, SqlType};

use super::context::context;

mod locking;
mod modify;

/// Rows of tables by name, numbered from 1, none of them flushed.
#[derive(Debug, Default)]
struct Rows(Mutex<HashMap<String, RecordBatch>>);

impl TableScanPlanner for Rows {
    fn plan_scan(
        &self,
        table: &ShardTable,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
        _session: &dyn Session,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let rows = self.0.lock().get(&table.table.name).cloned();
        let rows = rows.unwrap_or_else(|| RecordBatch::new_empty(schema_of(&table.table.columns)));
        let schema = TableProvider::schema(table);
        let of_table = |column: &Column| rows.column_by_name(&column.name).cloned();
        let mut columns: Vec<ArrayRef> = table.table.columns.iter().filter_map(of_table).collect();
        if table.has_row_positions {
            let count = i64::try_from(rows.num_rows()).unwrap();
            columns.push(Arc::new((1..=count).collect::<Int64Array>()));
            columns.push(Arc::new((1..=count).map(|_| -1).collect::<Int64Array>()));
        }
        let rows = RecordBatch::try_new(Arc::clone(&schema), columns)?;
        Ok(MemorySourceConfig::try_new_exec(&[vec![rows]], schema, projection.cloned())?)
    }
}

/// Planner over a catalog made from definitions.
pub(super) struct Fixture {
    pub(super) planner: Planner,
    rows: Arc<Rows>,
    pub(super) context: Arc<StatementContext>,
}

impl Fixture {
    pub(super) fn of(definitions: &str) -> Self {
        let rows = Arc::new(Rows::default());
        let planner = Planner::new(Arc::clone(&rows) as _, operator_planning(), Arc::new(RuntimeEnv::default()), 2);
        let fresh = Arc::new(CatalogState::new_warehouse());
        let next = AtomicU32::new(30_000);
        let mut context = context(fresh, move || Oid(next.fetch_add(1, Ordering::Relaxed)));
        for parsed in planner.parse(definitions).unwrap() {
            let StatementPlan::Define(plan) = planner.plan(&parsed, &[], &Arc::new(context.clone())).unwrap() else {
                panic!("{} defines nothing", parsed.text);
            };
            for change in &plan.changes {
                context.snapshot = Arc::new(context.snapshot.apply(change).unwrap());
            }
        }
        Self { planner, rows, context: Arc::new(context) }
    }

    pub(super) fn plan(&self, sql: &str) -> SqlResult<StatementPlan> {
        self.planner.plan(&self.planner.parse(sql)?[0], &[], &self.context)
    }

    fn write(&self, sql: &str) -> SqlResult<WritePlan> {
        match self.plan(sql)? {
            StatementPlan::Write(write) => Ok(write),
            other => panic!("{sql} is planned as {other:?}"),
        }
    }

    /// Returns the rows that a statement would write, one text per row.
    async fn rows(&self, sql: &str) -> SqlResult<Vec<String>> {
        self.rows_with(sql, Vec::new()).await
    }

    async fn rows_with(&self, sql: &str, parameters: Vec<ScalarValue>) -> SqlResult<Vec<String>> {
        let write = self.write(sql)?;
        let input = write.input.unwrap().with_parameters(parameters)?;
        let batches = run(&input).await?;
        for batch in &batches {
            for (column, values) in write.table.columns.iter().zip(batch.columns()) {
                assert_eq!(*values.data_type(), column.sql_type.arrow_type(), "{sql}: {}", column.name);
            }
        }
        Ok(batches.iter().flat_map(shown).collect())
    }

    /// Fills an empty table.
    pub(super) async fn fill(&self, sql: &str) {
        let write = self.write(sql).unwrap();
        let batches = run(&write.input.unwrap()).await.unwrap();
        let schema = schema_of(&write.table.columns);
        let columns = concat_batches(&batches[0].schema(), &batches).unwrap().columns().to_vec();
        let rows = RecordBatch::try_new(schema, columns).unwrap();
        self.rows.0.lock().insert(write.table.name.clone(), rows);
    }

    async fn error(&self, sql: &str) -> SqlError {
        self.rows(sql).await.expect_err(sql)
    }

    async fn message(&self, sql: &str) -> String {
        self.error(sql).await.message
    }
}

pub(super) async fn run(plan: &QueryPlan) -> SqlResult<Vec<RecordBatch>> {
    let counted =
        Box::pin(plan.with_evaluated_counts(async |count: QueryPlan| read_count(&collected(count).await?))).await?;
    Box::pin(collected(counted)).await
}

async fn collected(plan: QueryPlan) -> SqlResult<Vec<RecordBatch>> {
    let physical = plan_query(&plan, &CancellationToken::new()).await?;
    collect(physical, plan.state.task_ctx()).await.map_err(from_datafusion)
}

fn shown(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> =
        batch.columns().iter().map(|values| ArrayFormatter::try_new(values, &options).unwrap()).collect();
    let row = |row: usize| columns.iter().map(|column| column.value(row).to_string()).collect::<Vec<_>>().join("|");
    (0..batch.num_rows()).map(row).collect()
}

const T: &str = "CREATE TABLE t (id int NOT NULL, name varchar(5) DEFAULT 'none', n numeric(6,2), d date)";

#[tokio::test]
async fn values_become_what_their_columns_store() {
    let fixture = Fixture::of(T);
    let rows = fixture.rows("INSERT INTO t VALUES (1, 'one', 1.005, '2024-01-31'), (2, 2, '7', NULL)").await.unwrap();
    assert_eq!(rows, ["1|one|1.01|2024-01-31", "2|2|7.00|NULL"]);
    let rows = fixture.rows("INSERT INTO t (n, id) VALUES (1 + 1, 3)").await.unwrap();
    assert_eq!(rows, ["3|none|2.00|NULL"]);
    let rows = fixture.rows("INSERT INTO t VALUES (1.5, DEFAULT, DEFAULT), (-7, upper('x'), -2)").await.unwrap();
    assert_eq!(rows, ["2|none|NULL|NULL", "-7|X|-2.00|NULL"]);
}

#[tokio::test]
async fn queries_are_cast_and_completed_alike() {
    let fixture = Fixture::of(T);
    let rows = fixture.rows("INSERT INTO t (id, d) SELECT 1, '2024-01-31'").await.unwrap();
    assert_eq!(rows, ["1|none|NULL|2024-01-31"]);
    let rows = fixture.rows("INSERT INTO t SELECT g, g FROM generate_series(1, 2) g ORDER BY g").await.unwrap();
    assert_eq!(rows, ["1|1|NULL|NULL", "2|2|NULL|NULL"]);
    assert!(fixture.rows("INSERT INTO t SELECT id FROM t").await.unwrap().is_empty());
    let rows = fixture.rows("INSERT INTO t (id, name) VALUES ((SELECT 5), 'a'), ((SELECT 6), 'b')").await.unwrap();
    assert_eq!(rows, ["5|a|NULL|NULL", "6|b|NULL|NULL"]);
}

#[tokio::test]
async fn what_a_column_does_not_take_is_refused() {
    let fixture = Fixture::of(T);
    let error = fixture.error("INSERT INTO t (id) VALUES ('1'::text)").await;
    assert_eq!(error.message, "column \"id\" is of type integer but expression is of type text");
    assert_eq!(error.hint.as_deref(), Some("You will need to rewrite or cast the expression."));
    let cases = [
        ("INSERT INTO t (id) VALUES ('x')", "invalid input syntax for type integer: \"x\""),
        ("INSERT INTO t (id, name) VALUES (1, 'too long')", "value too long for type character varying(5)"),
        ("INSERT INTO t (id, name) SELECT 1, 'too long'", "value too long for type character varying(5)"),
        ("INSERT INTO t (id) VALUES (3000000000)", "integer out of range"),
        ("INSERT INTO t (id, n) VALUES (1, 10000)", "numeric field overflow"),
        ("INSERT INTO t (id) VALUES (1, 2)", "INSERT has more expressions than target columns"),
        ("INSERT INTO t (id, n) VALUES (1)", "INSERT has more target columns than expressions"),
        ("INSERT INTO t (id) VALUES (1), (2, 3)", "VALUES lists must all be the same length"),
        ("INSERT INTO t (nosuch) VALUES (1)", "column \"nosuch\" of relation \"t\" does not exist"),
        ("INSERT INTO t (id, id) VALUES (1, 1)", "column \"id\" specified more than once"),
    ];
    for (sql, message) in cases {
        assert_eq!(fixture.message(sql).await, message, "{sql}");
    }
}

#[tokio::test]
async fn constraints_are_asked_of_every_row() {
    let fixture = Fixture::of(
        "CREATE TABLE c (id int NOT NULL, a int CONSTRAINT positive CHECK (a > 0), b text, CHECK (length(b) < a))",
    );
    assert_eq!(fixture.rows("INSERT INTO c VALUES (1, 3, 'xy'), (2, NULL, 'z')").await.unwrap().len(), 2);
    let error = fixture.error("INSERT INTO c VALUES (1, 3, 'xy'), (NULL, -1, 'é')").await;
    assert_eq!(error.message, "null value in column \"id\" of relation \"c\" violates not-null constraint");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (null, -1, é)."));
    assert_eq!(error.column.as_deref(), Some("id"));
    let error = fixture.error("INSERT INTO c SELECT 1, -1, NULL").await;
    assert_eq!(error.message, "new row for relation \"c\" violates check constraint \"positive\"");
    assert_eq!(error.constraint.as_deref(), Some("positive"));
    let error = fixture.error("INSERT INTO c VALUES (1, 1, 'x')").await;
    assert_eq!(error.message, "new row for relation \"c\" violates check constraint \"c_check\"");
    // Without a row, there is no violation.
    assert!(fixture.rows("INSERT INTO c SELECT NULL WHERE false").await.unwrap().is_empty());
}

#[tokio::test]
async fn parameters_have_the_types_of_their_columns() {
    let fixture = Fixture::of(T);
    let sql = "INSERT INTO t VALUES ($1, $2, $3, $4)";
    let types = fixture.plan(sql).unwrap().parameters();
    assert_eq!(types, [SqlType::Int4, SqlType::Varchar(None), SqlType::BARE_NUMERIC, SqlType::Date]);
    let values = vec![
        ScalarValue::Int32(Some(1)),
        ScalarValue::Utf8View(Some("abc".to_owned())),
        ScalarValue::Decimal128(Some(150), 6, 2),
        ScalarValue::Date32(Some(0)),
    ];
    assert_eq!(fixture.rows_with(sql, values).await.unwrap(), ["1|abc|1.50|1970-01-01"]);
}

#[tokio::test]
async fn lists_are_inserted_as_rows() {
    let fixture = Fixture::of(T);
    for sql in [
        "INSERT INTO t (id, name) SELECT unnest($1::int[]), unnest($2::text[])",
        "INSERT INTO t (id, name) SELECT * FROM unnest($1::int[], $2::text[])",
        "INSERT INTO t (id, name) SELECT a, b FROM unnest($1::int[], $2::text[]) AS x (a, b) RETURNING id",
    ] {
        let parameters = fixture.plan(sql).unwrap().parameters();
        let wanted = [SqlType::Array(Box::new(SqlType::Int4)), SqlType::Array(Box::new(SqlType::Text))];
        assert_eq!(parameters, wanted, "{sql}");
        let list = |values: ArrayRef, sql_type: &SqlType| {
            let list = ScalarValue::List(ScalarValue::new_list_nullable(
                &(0..values.len()).map(|at| ScalarValue::try_from_array(&values, at).unwrap()).collect::<Vec<_>>(),
                values.data_type(),
            ));
            list.cast_to(&sql_type.arrow_type()).unwrap()
        };
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["a", "b"]));
        let values = vec![list(numbers, &wanted[0]), list(texts, &wanted[1])];
        let rows = fixture.rows_with(sql, values).await.unwrap();
        assert_eq!(rows.len(), 2, "{sql}");
        assert!(rows[0].starts_with("1|a|NULL|NULL") && rows[1].starts_with("2|b|NULL|NULL"), "{sql}: {rows:?}");
    }
}

#[tokio::test]
async fn a_conflict_needs_a_key_that_is_enforced() {
    let fixture = Fixture::of("CREATE TABLE k (id int PRIMARY KEY, v text); CREATE TABLE free (id int)");
    let refused = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
    for clause in ["(id) DO NOTHING", "DO NOTHING", "(id) DO UPDATE SET v = 'x'", "ON CONSTRAINT k_pkey DO NOTHING"] {
        assert_eq!(fixture.message(&format!("INSERT INTO k VALUES (1) ON CONFLICT {clause}")).await, refused);
    }
    assert_eq!(fixture.rows("INSERT INTO free VALUES (1) ON CONFLICT DO NOTHING").await.unwrap(), ["1"]);
}

#[tokio::test]
async fn a_query_becomes_a_table() {
    let fixture = Fixture::of(T);
    let sql = "CREATE TABLE made (x) AS SELECT 'a', 1, 2.5 AS n, NULL AS u";
    let write = fixture.write(sql).unwrap();
    let columns: Vec<String> =
        write.table.columns.iter().map(|column| format!("{} {}", column.name, column.sql_type)).collect();
    assert_eq!(columns, ["x text", "?column? integer", "n numeric(2,1)", "u text"]);
    assert_eq!((write.changes_before.len(), write.command_tag), (1, "SELECT"));
    assert_eq!(fixture.rows(sql).await.unwrap(), ["a|1|2.5|NULL"]);
    assert!(fixture.write("CREATE TABLE made AS SELECT 1 AS a WITH NO DATA").unwrap().input.is_none());
    assert_eq!(fixture.message("CREATE TABLE t AS SELECT 1").await, "relation \"t\" already exists");
    let StatementPlan::Define(nothing) = fixture.plan("CREATE TABLE IF NOT EXISTS t AS SELECT 1").unwrap() else {
        panic!("a table that exists is not written");
    };
    assert!(nothing.changes.is_empty() && nothing.notices.len() == 1);
}

#[test]
fn copy_plans_the_columns_it_fills() {
    let fixture = Fixture::of(T);
    let StatementPlan::CopyFrom(copy) = fixture.plan("COPY t (n, id) FROM STDIN (FORMAT csv, HEADER)").unwrap() else {
        panic!("COPY FROM is planned as one");
    };
    let names: Vec<&str> = copy.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["n", "id"]);
    assert_eq!(copy.write.input.unwrap().columns.len(), 4);
    let StatementPlan::CopyTo(copy) = fixture.plan("COPY t (d) TO STDOUT").unwrap() else {
        panic!("COPY TO is planned as one");
    };
    assert_eq!(copy.query.columns.len(), 1);
    let refused = |sql: &str| fixture.plan(sql).unwrap_err().message;
    assert_eq!(refused("COPY t (nosuch) FROM STDIN"), "column \"nosuch\" of relation \"t\" does not exist");
    assert_eq!(refused("COPY t TO 'here'"), "relative path not allowed for COPY to file");
    assert_eq!(
        refused("COPY t (id) FROM STDIN (FORMAT csv, FORCE_NULL (n))"),
        "FORCE_NULL column \"n\" not referenced by COPY"
    );
}
