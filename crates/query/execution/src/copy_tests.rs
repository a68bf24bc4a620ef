//! Tests of COPY FROM: the rows in the table afterwards.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use arrow::datatypes::Schema;
use binder::write::{CopyFormat, CopyHeader, CopyOptions, ForcedColumns, OnError};
use binder::{CopyFromPlan, CopySource, CopyTarget, CopyToPlan, WritePlan};
use bytes::Bytes;
use catalog::{Table, TableOrder};
use copy::CopyFromOutcome;
use futures::{StreamExt, stream};
use shards::{ColumnDef, Encoder, WriteOptions};
use types::{ColumnId, Condition, SqlResult, SqlType};

use crate::fixtures::{TABLE, Warehouse, batch, context, fed_query, table, write_plan};

fn options(format: CopyFormat) -> CopyOptions {
    let is_csv = format == CopyFormat::Csv;
    CopyOptions {
        format,
        header: CopyHeader::Absent,
        delimiter: if is_csv { b',' } else { b'\t' },
        null: if is_csv { String::new() } else { "\\N".to_owned() },
        default: None,
        quote: b'"',
        escape: b'"',
        force_quote: ForcedColumns::None,
        force_not_null: ForcedColumns::None,
        force_null: ForcedColumns::None,
        on_error: OnError::Stop,
        reject_limit: None,
    }
}

async fn copy(
    warehouse: &Warehouse,
    source: CopySource,
    options: CopyOptions,
    data: &[&str],
) -> SqlResult<CopyFromOutcome> {
    let table = table(TableOrder::None);
    if warehouse.transactions.current().state.table(TABLE).is_none() {
        warehouse.create(&table).await;
    }
    let (input, query) = fed_query(&table);
    let write = WritePlan {
        table: Arc::clone(&table),
        changes_before: Vec::new(),
        input: Some(query),
        command_tag: "COPY",
        notices: Vec::new(),
        returning: None,
        conflict: None,
    };
    let plan = CopyFromPlan { columns: table.columns.clone(), table, source, options, write, input };
    let data: Vec<_> = data.iter().map(|piece| Ok(Bytes::copy_from_slice(piece.as_bytes()))).collect();
    let mut transaction = warehouse.begin();
    let stdin = (plan.source == CopySource::Stdin).then(|| stream::iter(data).boxed());
    let copied = warehouse.execution.copier().copy_from(&plan, stdin, &mut transaction, &context()).await?;
    transaction.commit().await.unwrap();
    Ok(copied)
}

#[tokio::test]
async fn a_clients_rows_are_in_the_table() {
    let warehouse = Warehouse::new();
    let copied =
        copy(&warehouse, CopySource::Stdin, options(CopyFormat::Csv), &["1,one\n2", ",two\n3,\n"]).await.unwrap();
    assert_eq!(copied, CopyFromOutcome { rows: 3, notices: Vec::new() });
    let shards = warehouse.shards();
    assert_eq!((shards.len(), shards[0].rows, shards[0].columns[1].nulls), (1, 3, 1));
}

#[tokio::test]
async fn rows_stay_in_the_order_of_the_input() {
    let warehouse = Warehouse::new();
    let data: String = (0..300_000).map(|row| format!("{row}\tthe text of row {row}\n")).collect();
    let pieces: Vec<&str> = data.as_bytes().chunks(60_000).map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    let copied = copy(&warehouse, CopySource::Stdin, options(CopyFormat::Text), &pieces).await.unwrap();
    assert_eq!(copied.rows, 300_000);
    assert!(warehouse.shards().iter().all(|shard| shard.columns[0].strictly_ascending));
}

#[tokio::test]
async fn a_bad_value_says_where_it_is_and_nothing_is_loaded() {
    let warehouse = Warehouse::new();
    let failed = copy(&warehouse, CopySource::Stdin, options(CopyFormat::Csv), &["1,one\nx,two\n"]).await.unwrap_err();
    assert_eq!(failed.condition, Condition::InvalidTextRepresentation);
    assert_eq!(failed.message, "invalid input syntax for type integer: \"x\"");
    assert_eq!(failed.context.as_deref(), Some("COPY t, line 2, column a: \"x\""));
    assert!(warehouse.shards().is_empty());
}

#[tokio::test]
async fn bad_rows_are_left_out_where_that_is_wanted() {
    let warehouse = Warehouse::new();
    let ignoring = CopyOptions { on_error: OnError::Ignore, ..options(CopyFormat::Csv) };
    let copied = copy(&warehouse, CopySource::Stdin, ignoring, &["1,one\nx,two\n3,three\n"]).await.unwrap();
    assert_eq!(copied.rows, 2);
    assert_eq!(copied.notices[0].message, "1 row was skipped due to data type incompatibility");
}

#[tokio::test]
async fn files_are_read_in_the_order_of_their_names() {
    let warehouse = Warehouse::new();
    let folder = tempfile::tempdir().unwrap();
    for (name, rows) in [("b.csv", "a,b\n3,x\n"), ("a.csv", "a,b\n1,x\n2,x\n"), ("c.txt", "no")] {
        std::fs::write(folder.path().join(name), rows).unwrap();
    }
    let pattern = folder.path().join("*.csv").display().to_string();
    let headed = || CopyOptions { header: CopyHeader::Present, ..options(CopyFormat::Csv) };
    let copied = copy(&warehouse, CopySource::File(pattern.clone()), headed(), &[]).await.unwrap();
    assert_eq!(copied.rows, 3);
    assert!(warehouse.shards()[0].columns[0].strictly_ascending);
    let copied = copy(&warehouse, CopySource::Url(format!("file://{pattern}")), headed(), &[]).await.unwrap();
    assert_eq!(copied.rows, 3);
    let missing = copy(&warehouse, CopySource::File("/nowhere/t.csv".to_owned()), headed(), &[]).await.unwrap_err();
    assert_eq!(missing.condition, Condition::UndefinedFile);
}

/// Returns a Parquet file with one column `a`.
async fn parquet_file(sql_type: SqlType, values: ArrayRef) -> Bytes {
    let column = ColumnDef { id: ColumnId(1), name: "A".to_owned(), sql_type, nullable: true, missing: None };
    let field = column.sql_type.arrow_field(&column.name, true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![values]).unwrap();
    let mut encoder = Encoder::new("a.parquet", &[column], WriteOptions::default());
    assert!(encoder.write(&batch).await.unwrap().is_empty(), "one row group has not ended");
    let encoded = encoder.finish().await.unwrap();
    [encoded.pages, encoded.tail].concat().into()
}

#[tokio::test]
async fn a_parquet_file_that_was_written_is_read_back() {
    let warehouse = Warehouse::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet").display().to_string();
    let rows = write_plan(&table(TableOrder::None), vec![vec![Ok(batch(0..1_000)), Ok(batch(1_000..1_234))]]);
    let plan = CopyToPlan {
        query: rows.input.unwrap(),
        target: CopyTarget::File(path.clone()),
        options: options(CopyFormat::Parquet),
    };
    assert_eq!(warehouse.execution.copier().copy_to_file(&plan, &context()).await.unwrap(), 1_234);
    let copied = copy(&warehouse, CopySource::File(path), options(CopyFormat::Parquet), &[]).await.unwrap();
    assert_eq!(copied.rows, 1_234);
    let shards = warehouse.shards();
    assert!(shards[0].columns[0].strictly_ascending && shards[0].columns[1].distinct.estimate().abs_diff(1_234) < 60);
}

#[tokio::test]
async fn columns_of_a_parquet_file_are_found_by_name_and_must_fit() {
    let warehouse = Warehouse::new();
    let table = table(TableOrder::None);
    warehouse.create(&table).await;
    let run = async |file: Bytes| {
        let only_a = Arc::new(Table { columns: table.columns[..1].to_vec(), ..table.as_ref().clone() });
        let (input, query) = fed_query(&only_a);
        let write = WritePlan { input: Some(query), ..write_plan(&only_a, Vec::new()) };
        let columns = only_a.columns.clone();
        let options = options(CopyFormat::Parquet);
        let plan = CopyFromPlan { table: only_a, columns, source: CopySource::Stdin, options, write, input };
        let stdin = stream::iter([Ok(file)]).boxed();
        warehouse.execution.copier().copy_from(&plan, Some(stdin), &mut warehouse.begin(), &context()).await
    };
    let longs: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    assert_eq!(run(parquet_file(SqlType::Int8, Arc::clone(&longs)).await).await.unwrap().rows, 2);
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["1", "x"]));
    let failed = run(parquet_file(SqlType::Text, text).await).await.unwrap_err();
    assert_eq!(failed.message, "invalid input syntax for type integer: \"x\"");
    assert_eq!(failed.context.as_deref(), Some("COPY t, file \"STDIN\""));
    let large: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX]));
    let failed = run(parquet_file(SqlType::Int8, large).await).await.unwrap_err();
    assert_eq!(failed.condition, Condition::NumericValueOutOfRange);
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    let failed = run(parquet_file(SqlType::Float8, floats).await).await.unwrap_err();
    assert_eq!(failed.message, "column \"a\" is of type integer but that of the file is of type double precision");
    let failed = run(Bytes::from_static(b"no Parquet file at all")).await.unwrap_err();
    assert_eq!(failed.condition, Condition::BadCopyFileFormat);
}
