//! Tests of UPDATE, DELETE and MERGE: the planned changes of rows.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::DataType;
use binder::{ModifyPlan, StatementPlan};
use datafusion::common::ScalarValue;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use types::{ColumnId, Condition, SqlError, SqlResult, SqlType};

use super::{Fixture, run, shown};

impl Fixture {
    fn modify(&self, sql: &str) -> SqlResult<ModifyPlan> {
        match self.plan(sql)? {
            StatementPlan::Modify(modify) => Ok(modify),
            other => panic!("{sql} is planned as {other:?}"),
        }
    }

    /// Returns the rows of a statement's plan, one text per row, sorted.
    async fn modified(&self, sql: &str) -> SqlResult<Vec<String>> {
        self.modified_with(sql, Vec::new()).await
    }

    async fn modified_with(&self, sql: &str, parameters: Vec<ScalarValue>) -> SqlResult<Vec<String>> {
        let plan = self.modify(sql)?;
        let input = plan.input.with_parameters(parameters)?;
        let batches = run(&input).await?;
        for batch in &batches {
            assert_eq!(batch.num_columns(), input.columns.len(), "{sql}");
            let types: Vec<&DataType> = batch.columns()[..3].iter().map(|values| values.data_type()).collect();
            assert_eq!(types, [&DataType::Int8, &DataType::Int64, &DataType::Int64], "{sql}");
            for (column, values) in plan.table.columns.iter().zip(&batch.columns()[3..]) {
                assert_eq!(*values.data_type(), column.sql_type.arrow_type(), "{sql}: {}", column.name);
            }
        }
        let mut rows: Vec<String> = batches.iter().flat_map(shown).collect();
        rows.sort();
        Ok(rows)
    }

    async fn refusal(&self, sql: &str) -> SqlError {
        self.modified(sql).await.expect_err(sql)
    }
}

const ITEMS: &str = "CREATE TABLE items (id int NOT NULL, name varchar(5) DEFAULT 'none', price numeric(6,2), CHECK (price >= 0)); \
     CREATE TABLE stock (item int, n int, note text); CREATE VIEW dear AS SELECT * FROM items WHERE price > 5";

async fn items() -> Fixture {
    let fixture = Fixture::of(ITEMS);
    fixture.fill("INSERT INTO items VALUES (1, 'pen', 1.50), (2, 'ink', 9), (3, NULL, NULL)").await;
    fixture.fill("INSERT INTO stock VALUES (1, 10, 'a'), (2, 20, 'b'), (2, 21, 'c'), (9, 90, 'd')").await;
    fixture
}

#[tokio::test]
async fn update_gives_whole_rows() {
    let fixture = items().await;
    let rows = fixture.modified("UPDATE items SET price = price * 2, name = DEFAULT WHERE id < 3").await.unwrap();
    assert_eq!(rows, ["2|1|-1|1|none|3.00", "2|2|-1|2|none|18.00"]);
    let rows = fixture.modified("UPDATE ONLY items AS i SET (id, name) = (i.id + 10, 'x') WHERE name IS NULL").await;
    assert_eq!(rows.unwrap(), ["2|3|-1|13|x|NULL"]);
    let rows = fixture.modified("UPDATE items * SET (name, price) = ROW(DEFAULT, '7') WHERE id = 1").await.unwrap();
    assert_eq!(rows, ["2|1|-1|1|none|7.00"]);
    // Both values come from the old row.
    let rows = fixture.modified("UPDATE items SET id = 100 + id, price = id WHERE id = 2").await.unwrap();
    assert_eq!(rows, ["2|2|-1|102|ink|2.00"]);
}

#[tokio::test]
async fn update_reads_other_relations() {
    let fixture = items().await;
    let sql = "UPDATE items i SET price = s.n FROM stock s WHERE s.item = i.id AND s.n <> 21";
    assert_eq!(fixture.modified(sql).await.unwrap(), ["2|1|-1|1|pen|10.00", "2|2|-1|2|ink|20.00"]);
    let sql =
        "UPDATE items SET price = (SELECT sum(n) FROM stock WHERE item = id) WHERE id IN (SELECT item FROM stock)";
    assert_eq!(fixture.modified(sql).await.unwrap(), ["2|1|-1|1|pen|10.00", "2|2|-1|2|ink|41.00"]);
    let sql = "UPDATE items SET (name, price) = (SELECT note, n FROM stock WHERE item = id AND n < 21)";
    let expected = ["2|1|-1|1|a|10.00", "2|2|-1|2|b|20.00", "2|3|-1|3|NULL|NULL"];
    assert_eq!(fixture.modified(sql).await.unwrap(), expected);
    let sql = "WITH most AS (SELECT max(n) AS n FROM stock) UPDATE items SET price = most.n FROM most WHERE id = 1";
    assert_eq!(fixture.modified(sql).await.unwrap(), ["2|1|-1|1|pen|90.00"]);
    let sql = "UPDATE items SET price = o.price FROM items o LEFT JOIN stock s ON s.item = o.id \
               WHERE o.id = 2 AND items.id = 1 AND s.n = 20";
    assert_eq!(fixture.modified(sql).await.unwrap(), ["2|1|-1|1|pen|9.00"]);
}

#[tokio::test]
async fn delete_gives_no_values() {
    let fixture = items().await;
    let rows = fixture.modified("DELETE FROM items WHERE id <> 2").await.unwrap();
    assert_eq!(rows, ["3|1|-1|NULL|NULL|NULL", "3|3|-1|NULL|NULL|NULL"]);
    let rows = fixture.modified("DELETE FROM stock s USING items i WHERE i.id = s.item AND i.name = 'ink'").await;
    assert_eq!(rows.unwrap(), ["3|2|-1|NULL|NULL|NULL", "3|3|-1|NULL|NULL|NULL"]);
    assert_eq!(fixture.modified("DELETE FROM stock").await.unwrap().len(), 4);
    let sql = "DELETE FROM stock WHERE NOT EXISTS (SELECT FROM items WHERE id = item)";
    assert_eq!(fixture.modified(sql).await.unwrap(), ["3|4|-1|NULL|NULL|NULL"]);
}

#[tokio::test]
async fn returning_gives_old_and_new_rows() {
    let fixture = items().await;
    let sql = "UPDATE items i SET price = price + 1 FROM stock s WHERE s.item = i.id AND id = 1 \
               RETURNING *, i.price * 2 AS double, old.price, new.price, 'x', (SELECT count(*) FROM stock)";
    let plan = fixture.modify(sql).unwrap();
    let names: Vec<String> = plan.returning.unwrap().into_iter().map(|column| column.name).collect();
    let expected = ["id", "name", "price", "item", "n", "note", "double", "price", "price", "?column?", "count"];
    assert_eq!(names, expected);
    let rows = fixture.modified(sql).await.unwrap();
    assert_eq!(rows, ["2|1|-1|1|pen|2.50|1|pen|2.50|1|10|a|5.00|1.50|2.50|x|4"]);
    let rows =
        fixture.modified("DELETE FROM items WHERE id = 2 RETURNING name, old.id, new.id, items.*").await.unwrap();
    assert_eq!(rows, ["3|2|-1|NULL|NULL|NULL|ink|2|NULL|2|ink|9.00"]);
    let sql = "DELETE FROM items WHERE id = 2 RETURNING WITH (OLD AS o) o.name";
    assert_eq!(fixture.modified(sql).await.unwrap(), ["3|2|-1|NULL|NULL|NULL|ink"]);
    let sql =
        "WITH w AS (SELECT 5 AS five) UPDATE items SET id = five FROM w WHERE id = 1 RETURNING (SELECT five FROM w)";
    assert_eq!(fixture.modified(sql).await.unwrap(), ["2|1|-1|5|pen|1.50|5"]);
}

#[tokio::test]
async fn a_volatile_value_is_the_same_wherever_it_goes() {
    let fixture = Fixture::of("CREATE TABLE r (x float8 NOT NULL, CHECK (x < 2))");
    fixture.fill("INSERT INTO r VALUES (0), (1)").await;
    for sql in ["UPDATE r SET x = random() RETURNING x, new.x", "INSERT INTO r SELECT random() FROM r RETURNING x, x"] {
        let rows = match fixture.plan(sql).unwrap() {
            StatementPlan::Write(_) => fixture.rows(sql).await.unwrap(),
            _ => fixture.modified(sql).await.unwrap(),
        };
        assert_eq!(rows.len(), 2);
        for row in rows {
            let values: Vec<&str> = row.split('|').rev().take(3).collect();
            assert!(values.iter().all(|value| *value == values[0]), "{sql}: {row}");
        }
    }
}

#[tokio::test]
async fn inserted_rows_are_returned() {
    let fixture = items().await;
    let sql = "INSERT INTO items AS i (id, price) VALUES (7, 1), (8, 2) RETURNING id + 1, i.name, old.id, new.price";
    assert_eq!(fixture.rows(sql).await.unwrap(), ["7|none|1.00|8|none|NULL|1.00", "8|none|2.00|9|none|NULL|2.00"]);
    let write = fixture.write("INSERT INTO items VALUES (1) RETURNING *").unwrap();
    let names: Vec<String> = write.returning.unwrap().into_iter().map(|column| column.name).collect();
    assert_eq!(names, ["id", "name", "price"]);
    let sql = "WITH w AS (SELECT 4 AS four) INSERT INTO items (id) SELECT four FROM w RETURNING (SELECT four FROM w)";
    assert_eq!(fixture.rows(sql).await.unwrap(), ["4|none|NULL|4"]);
    assert!(fixture.plan("INSERT INTO items VALUES (1)").unwrap().columns().is_none());
}

#[tokio::test]
async fn new_rows_are_asked_for_their_constraints() {
    let fixture = items().await;
    let error = fixture.refusal("UPDATE items SET price = -1 WHERE id = 1").await;
    assert_eq!(error.message, "new row for relation \"items\" violates check constraint \"items_price_check\"");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (1, pen, -1.00)."));
    let error = fixture.refusal("UPDATE items SET id = NULL WHERE id = 2").await;
    assert_eq!(error.condition, Condition::NotNullViolation);
    assert_eq!(
        fixture.refusal("UPDATE items SET name = 'too long'").await.condition,
        Condition::StringDataRightTruncation
    );
    assert!(fixture.modified("UPDATE items SET price = -1 WHERE false").await.unwrap().is_empty());
}

#[tokio::test]
async fn what_is_wrong_with_a_change_is_told_as_by_postgresql() {
    let fixture = items().await;
    let cases = [
        ("UPDATE items SET nosuch = 1", "column \"nosuch\" of relation \"items\" does not exist"),
        ("UPDATE items SET id = 1, id = 2", "multiple assignments to same column \"id\""),
        ("UPDATE items SET id = nosuch", "column \"nosuch\" does not exist"),
        ("UPDATE nosuch SET id = 1", "relation \"nosuch\" does not exist"),
        ("UPDATE items SET id = 1 FROM items", "table name \"items\" specified more than once"),
        ("UPDATE items SET id = 'x'::text", "column \"id\" is of type integer but expression is of type text"),
        ("UPDATE items SET id = 1 WHERE id", "argument of WHERE must be type boolean, not type integer"),
        ("UPDATE items SET id = sum(id)", "aggregate functions are not allowed in UPDATE"),
        ("UPDATE items SET id = row_number() OVER ()", "window functions are not allowed in UPDATE"),
        ("UPDATE items SET id = generate_series(1, 2)", "set-returning functions are not allowed in UPDATE"),
        ("DELETE FROM items WHERE max(id) = 1", "aggregate functions are not allowed in WHERE"),
        ("DELETE FROM items RETURNING max(id)", "aggregate functions are not allowed in RETURNING"),
        ("UPDATE items SET id = __row_id", "column \"__row_id\" does not exist"),
        ("DELETE FROM items RETURNING __place", "column \"__place\" does not exist"),
        ("UPDATE items i SET id = items.id", "missing FROM-clause entry for table \"items\""),
        ("UPDATE dear SET id = 1", "cannot update view \"dear\""),
        ("DELETE FROM dear", "cannot delete from view \"dear\""),
        ("UPDATE pg_class SET relname = 'x'", "permission denied: \"pg_class\" is a system catalog"),
        ("UPDATE items SET (id, name) = (SELECT 1)", "number of columns does not match number of values"),
        ("UPDATE items SET (id, name) = (1, 'x', 2)", "number of columns does not match number of values"),
        (
            "UPDATE items SET (id) = (1)",
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        ),
        (
            "UPDATE items SET id = (SELECT item FROM stock)",
            "more than one row returned by a subquery used as an expression",
        ),
    ];
    for (sql, message) in cases {
        assert_eq!(fixture.refusal(sql).await.message, message, "{sql}");
    }
    assert_eq!(fixture.plan("SELECT __row_id FROM items").unwrap_err().condition, Condition::UndefinedColumn);
}

#[tokio::test]
async fn parameters_of_changes_have_the_types_of_columns() {
    let fixture = items().await;
    let sql = "UPDATE items SET name = $1, price = price + $2 WHERE id = $3 RETURNING $4::int + id";
    let plan = fixture.plan(sql).unwrap();
    let numeric = SqlType::Numeric { precision: 6, scale: 2 };
    assert_eq!(plan.parameters()[0], SqlType::Varchar(None));
    assert!(matches!(plan.parameters()[1], SqlType::Numeric { .. }), "{:?} for {numeric:?}", plan.parameters()[1]);
    assert_eq!(plan.parameters()[2..], [SqlType::Int4, SqlType::Int4]);
    let values = vec![
        ScalarValue::Utf8View(Some("new".to_owned())),
        ScalarValue::try_from(&plan.parameters()[1].arrow_type()).unwrap(),
        ScalarValue::Int32(Some(2)),
        ScalarValue::Int32(Some(100)),
    ];
    assert_eq!(fixture.modified_with(sql, values).await.unwrap(), ["2|2|-1|2|new|NULL|102"]);
    assert_eq!(fixture.plan("DELETE FROM stock WHERE n < $1").unwrap().parameters(), [SqlType::Int4]);
}

#[test]
fn old_values_are_those_that_foreign_keys_refer_to() {
    let fixture = Fixture::of("CREATE TABLE free (a int PRIMARY KEY, b int); CREATE TABLE f (a int REFERENCES free)");
    assert!(fixture.modify("DELETE FROM free").unwrap().old_columns.is_empty());
    let fixture = Fixture::of(
        "CREATE TABLE p (a int, b int, PRIMARY KEY (b) ENFORCED); CREATE TABLE f (c int REFERENCES p ENFORCED)",
    );
    let old = |sql: &str| fixture.modify(sql).unwrap().old_columns;
    assert_eq!(old("DELETE FROM p"), [ColumnId(2)]);
    assert_eq!(old("UPDATE p SET b = 1"), [ColumnId(2)]);
    assert!(old("UPDATE p SET a = 1").is_empty() && old("DELETE FROM f").is_empty());
}

#[tokio::test]
async fn merge_does_what_the_first_clause_for_a_row_says() {
    let fixture = items().await;
    let sql = "MERGE INTO items i USING stock s ON s.item = i.id AND s.n <> 21 \
               WHEN MATCHED AND n = 10 THEN DELETE \
               WHEN MATCHED THEN UPDATE SET price = 100 / (n - 10), name = 'two' \
               WHEN NOT MATCHED AND n = 21 THEN DO NOTHING \
               WHEN NOT MATCHED THEN INSERT (id, name) VALUES (item, note || '!')";
    let expected = ["1|NULL|NULL|9|d!|NULL", "2|2|-1|2|two|10.00", "3|1|-1|NULL|NULL|NULL"];
    assert_eq!(fixture.modified(sql).await.unwrap(), expected);
    let returning = fixture.modified(&format!("{sql} RETURNING i.id, old.id, new.name, s.n")).await.unwrap();
    let expected =
        ["1|NULL|NULL|9|d!|NULL|9|NULL|d!|90", "2|2|-1|2|two|10.00|2|2|two|20", "3|1|-1|NULL|NULL|NULL|1|1|NULL|10"];
    assert_eq!(returning, expected);
    let sql = "MERGE INTO items USING (SELECT 1 AS k) s ON id = k \
               WHEN MATCHED THEN UPDATE SET (id, price) = (SELECT 7, 8) \
               WHEN NOT MATCHED BY SOURCE AND id = 2 THEN DELETE \
               WHEN NOT MATCHED BY SOURCE THEN UPDATE SET name = 'alone'";
    let expected = ["2|1|-1|7|pen|8.00", "2|3|-1|3|alone|NULL", "3|2|-1|NULL|NULL|NULL"];
    assert_eq!(fixture.modified(sql).await.unwrap(), expected);
    let sql = "MERGE INTO items USING (VALUES (1), (4)) s (k) ON id = k \
               WHEN NOT MATCHED BY SOURCE THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (k, DEFAULT, '2.5') RETURNING *";
    let expected = [
        "1|NULL|NULL|4|none|2.50|4|none|2.50|4",
        "3|2|-1|NULL|NULL|NULL|2|ink|9.00|NULL",
        "3|3|-1|NULL|NULL|NULL|3|NULL|NULL|NULL",
    ];
    assert_eq!(fixture.modified(sql).await.unwrap(), expected);
    let sql = "MERGE INTO items USING (VALUES (1), (4)) s (k) ON id = k \
               WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id) VALUES (k) RETURNING merge_action(), id";
    let expected = ["1|NULL|NULL|4|none|NULL|INSERT|4", "3|1|-1|NULL|NULL|NULL|DELETE|1"];
    assert_eq!(fixture.modified(sql).await.unwrap(), expected);
    let sql = "MERGE INTO items USING stock ON id = item WHEN NOT MATCHED THEN INSERT (name) VALUES (note)";
    assert_eq!(fixture.refusal(sql).await.condition, Condition::NotNullViolation);
    for (sql, message) in [
        (
            "MERGE INTO items USING stock ON true WHEN NOT MATCHED THEN INSERT (id) VALUES (items.id)",
            "missing FROM-clause entry for table \"items\"",
        ),
        (
            "MERGE INTO items USING stock ON true WHEN MATCHED THEN DELETE WHEN MATCHED THEN DO NOTHING",
            "unreachable WHEN clause specified after unconditional WHEN clause",
        ),
        (
            "MERGE INTO items USING stock ON true WHEN MATCHED AND random() < 1 THEN DELETE",
            "a volatile function in a WHEN condition of MERGE is not supported",
        ),
        (
            "MERGE INTO items USING stock ON true WHEN MATCHED AND max(n) = 1 THEN DELETE",
            "aggregate functions are not allowed in MERGE WHEN conditions",
        ),
    ] {
        assert_eq!(fixture.refusal(sql).await.message, message, "{sql}");
    }
}

#[tokio::test]
async fn a_conflict_is_about_keys_that_are_enforced() {
    let fixture = Fixture::of(
        "CREATE TABLE k (id int, v text, w int UNIQUE, PRIMARY KEY (id) ENFORCED); \
         CREATE UNIQUE INDEX k_v ON k (v); CREATE INDEX plain ON k (w)",
    );
    let table = &fixture.write("INSERT INTO k VALUES (1)").unwrap().table;
    let key = |name: &str| table.constraints.iter().find(|it| it.name == name).unwrap().oid;
    let index = table.indexes.iter().find(|it| it.name == "k_v").unwrap().oid;
    let arbiters = |clause: &str| {
        let write = fixture.write(&format!("INSERT INTO k VALUES (1) ON CONFLICT {clause}"))?;
        Ok::<_, SqlError>(write.conflict.unwrap().arbiters)
    };
    assert_eq!(arbiters("DO NOTHING").unwrap(), [key("k_pkey"), index]);
    assert_eq!(arbiters("(id) DO NOTHING").unwrap(), [key("k_pkey")]);
    assert_eq!(arbiters("(v) DO NOTHING").unwrap(), [index]);
    assert_eq!(arbiters("ON CONSTRAINT k_pkey DO UPDATE SET v = 'x'").unwrap(), [key("k_pkey")]);
    for clause in ["(w) DO NOTHING", "(id, v) DO NOTHING", "ON CONSTRAINT k_w_key DO NOTHING"] {
        assert_eq!(arbiters(clause).unwrap_err().condition, Condition::InvalidColumnReference, "{clause}");
    }
    assert_eq!(arbiters("ON CONSTRAINT k_v DO NOTHING").unwrap_err().condition, Condition::UndefinedObject);
    assert_eq!(arbiters("DO UPDATE SET v = 'x'").unwrap_err().condition, Condition::SyntaxError);
    assert_eq!(arbiters("(id) DO UPDATE SET v = v").unwrap_err().condition, Condition::AmbiguousColumn);
}

#[tokio::test]
async fn conflicting_rows_are_updated_with_what_was_to_be_inserted() {
    let fixture = Fixture::of("CREATE TABLE k (id int, n int CHECK (n < 100), v text, PRIMARY KEY (id) ENFORCED)");
    let sql = "INSERT INTO k AS t VALUES ($1, $3, 'a') ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n + $2, v = excluded.v \
               WHERE t.n < 50 RETURNING *, old.n";
    let write = fixture.write(sql).unwrap();
    let input = write.input.unwrap();
    assert_eq!(input.parameters, [SqlType::Int4, SqlType::Int4, SqlType::Int4]);
    let update = write.conflict.unwrap().update.unwrap();
    assert_eq!(update.plan.parameters, input.parameters);
    let fed = |rows: Vec<[Option<i64>; 4]>| {
        let schema = datafusion::catalog::TableProvider::schema(update.input.as_ref());
        let column = |at: usize| -> Vec<Option<i64>> {
            // `__row_id`, `__place`, id, n, v, then the row that INSERT proposed.
            rows.iter().map(|row| [row[0], Some(-1), row[1], row[2], None, row[1], row[3], None][at]).collect()
        };
        let columns = schema.fields().iter().enumerate().map(|(at, field)| {
            let values: ArrayRef = Arc::new(Int64Array::from(column(at)));
            arrow::compute::cast(&values, field.data_type()).unwrap()
        });
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns.collect()).unwrap();
        let stream = futures::stream::once(async move { Ok(batch) });
        let stream = Box::pin(RecordBatchStreamAdapter::new(schema, stream));
        let values = [1, 5, 7].map(|value| ScalarValue::Int32(Some(value))).to_vec();
        let plan = update.plan.clone().with_parameters(values).expect("there is a value for each");
        plan.with_input_streams(&update.input, vec![stream])
    };
    let batches = run(&fed(vec![[Some(7), Some(1), Some(10), Some(20)], [Some(8), Some(2), Some(60), Some(1)]]))
        .await
        .expect("it has rows");
    let rows: Vec<String> = batches.iter().flat_map(shown).collect();
    assert_eq!(rows, ["2|7|-1|1|35|NULL|1|35|NULL|10"]);
    let error = run(&fed(vec![[Some(7), Some(1), Some(45), Some(90)]])).await.unwrap_err();
    assert_eq!(error.condition, Condition::CheckViolation);
}
