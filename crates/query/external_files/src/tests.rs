use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use arrow::array::{Int32Array, RecordBatch, StringViewArray};
use catalog::{Column, Distribution, External, Role, Schema, Storage, Table, TableOrder};
use plan::schema_of;
use scan::column_defs;
use session_context::ListedFiles;
use shards::external::table_of_cache_id;
use shards::{ColumnDef, Encoder, WriteOptions};
use types::{CachePolicy, Clock, ColumnId, Condition, Oid, SqlResult, SqlType, SystemClock, SystemRandom};

use crate::ExternalFiles;

/// Returns the table `t (a integer, b text)`.
fn table() -> Arc<Table> {
    let column = |id, name: &str, sql_type, not_null| Column {
        id: ColumnId(id),
        name: name.to_owned(),
        sql_type,
        not_null,
        default: None,
        missing: None,
        comment: None,
        identity: None,
        sequences: Vec::new(),
    };
    Arc::new(Table {
        oid: Oid(20_000),
        schema: Schema::PUBLIC,
        name: "t".to_owned(),
        owner: Role::BOOTSTRAP,
        columns: vec![column(1, "a", SqlType::Int4, true), column(2, "b", SqlType::Text, false)],
        constraints: Vec::new(),
        distribution: Distribution::Random,
        order: TableOrder::None,
        comment: None,
        next_column: 3,
        storage: Storage::Column,
        indexes: Vec::new(),
        options: Vec::new(),
        temporary: None,
        cache: CachePolicy::default(),
        external: None,
    })
}

/// Returns rows of `t`, in which `b` is the text of `a`.
fn batch(values: Range<i32>) -> RecordBatch {
    let a = Int32Array::from_iter_values(values);
    let b: StringViewArray = a.iter().map(|value| value.map(|value| value.to_string())).collect();
    RecordBatch::try_new(schema_of(&table().columns), vec![Arc::new(a), Arc::new(b)]).unwrap()
}

fn files() -> ExternalFiles {
    ExternalFiles::new(Arc::new(SystemClock::new()), Arc::new(SystemRandom))
}

/// Writes a file with the columns of `t` and an old modification time.
async fn put(path: &Path, rows: Range<i32>) {
    let columns = column_defs(&table());
    let mut encoder = Encoder::new("a file", &columns, WriteOptions::default());
    let mut bytes: Vec<u8> = encoder.write(&batch(rows)).await.unwrap().concat();
    let end = encoder.finish().await.unwrap();
    bytes.extend_from_slice(&[end.pages, end.tail].concat());
    std::fs::write(path, bytes).unwrap();
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(u64::from(rows_seconds(path)))).unwrap();
}

/// Returns a modification time that differs from file to file.
fn rows_seconds(path: &Path) -> u32 {
    path.to_string_lossy().bytes().map(u32::from).sum()
}

fn external(location: String) -> Arc<Table> {
    Arc::new(Table { external: Some(External { location }), ..Table::clone(&table()) })
}

async fn listed(files: &ExternalFiles, location: String) -> SqlResult<ListedFiles> {
    files.list(&external(location)).await
}

#[tokio::test]
async fn a_location_is_a_file_a_folder_or_a_pattern() {
    let files = files();
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display();
    put(&folder.path().join("b.parquet"), 10..13).await;
    put(&folder.path().join("a.parquet"), 0..5).await;
    put(&folder.path().join("c.pq"), 0..1).await;
    for (location, rows) in [
        (format!("{place}"), vec![5, 3]),
        (format!("{place}/"), vec![5, 3]),
        (format!("file://{place}/*"), vec![5, 3, 1]),
        (format!("{place}/c.pq"), vec![1]),
    ] {
        let found = listed(&files, location.clone()).await.unwrap();
        let counts: Vec<u64> = found.readers.iter().map(|reader| reader.meta().rows).collect();
        assert_eq!((counts, found.rows.len()), (rows.clone(), rows.iter().sum()), "{location}");
    }
    let nothing = listed(&files, format!("{place}/none.parquet")).await.unwrap_err();
    assert_eq!((nothing.condition, nothing.hint), (Condition::UndefinedFile, None));
    let nothing = listed(&files, format!("{place}/*.none")).await.unwrap_err();
    assert_eq!((nothing.condition, nothing.hint), (Condition::UndefinedFile, None));
}

#[tokio::test]
async fn a_file_is_opened_again_when_it_has_changed() {
    let files = files();
    let folder = tempfile::tempdir().unwrap();
    let (path, location) = (folder.path().join("a.parquet"), folder.path().display().to_string());
    put(&path, 0..5).await;
    put(&folder.path().join("b.parquet"), 0..5).await;
    let ids = async || {
        let found = listed(&files, location.clone()).await.unwrap();
        found.readers.iter().map(|reader| reader.meta().id).collect::<Vec<_>>()
    };
    let first = ids().await;
    assert_eq!(ids().await, first);
    std::fs::remove_file(&path).unwrap();
    put(&path, 0..6).await;
    let second = ids().await;
    assert!(second[0] != first[0] && second[1] == first[1]);
    assert_eq!(ids().await, second);
    // A file modified just now may change again within the same timestamp.
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(now()).unwrap();
    let third = ids().await;
    assert!(third[0] != second[0] && third[0] != ids().await[0]);
}

/// Checks that cached blocks of a file are found by its id after a restart, and only for its own table.
#[tokio::test]
async fn the_id_of_a_file_follows_from_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("a.parquet"), 0..5).await;
    let location = folder.path().display().to_string();
    let id = async |table: Table| {
        let found = files().list(&Arc::new(table)).await.unwrap();
        found.readers[0].meta().id
    };
    let table = Table::clone(&external(location));
    let first = id(table.clone()).await;
    assert_eq!(id(table.clone()).await, first);
    assert_eq!(table_of_cache_id(first), Some(table.oid));
    let other = Oid(table.oid.0 + 1);
    let of_other = id(Table { oid: other, ..table.clone() }).await;
    assert_eq!((of_other == first, table_of_cache_id(of_other)), (false, Some(other)));
    let mut wider = table.clone();
    wider.columns[0].sql_type = SqlType::Int8;
    assert_ne!(id(wider).await, first, "its values are others");
}

#[tokio::test]
async fn files_are_wanted_in_the_cache_as_they_were_listed_last() {
    let files = files();
    let folder = tempfile::tempdir().unwrap();
    let (path, location) = (folder.path().join("a.parquet"), folder.path().display().to_string());
    put(&path, 0..5).await;
    let table = external(location);
    let known = files.cache();
    let policy = || {
        let mut policy = shards::RetentionPolicy::default();
        known.add_retained_shards(&mut policy, &[table.oid].into());
        policy
    };
    assert_eq!((policy().live_shards.len(), policy().unlisted_tables.len(), known.listing_changes()), (0, 1, 0));
    let found = files.list(&table).await.unwrap();
    files.list(&table).await.unwrap();
    assert_eq!(policy().live_shards, HashSet::from([found.readers[0].meta().id]));
    assert_eq!((policy().unlisted_tables.len(), known.listing_changes()), (0, 1));
    std::fs::remove_file(&path).unwrap();
    put(&folder.path().join("b.parquet"), 0..5).await;
    let now = files.list(&table).await.unwrap();
    assert_eq!(policy().live_shards, HashSet::from([now.readers[0].meta().id]));
    assert_eq!(known.listing_changes(), 2);
    // The table is dropped and created anew.
    known.add_retained_shards(&mut shards::RetentionPolicy::default(), &[].into());
    assert_eq!((policy().live_shards.len(), policy().unlisted_tables.len()), (0, 1));
}

fn now() -> std::time::SystemTime {
    let now = Clock::now_us(&SystemClock::new());
    UNIX_EPOCH + Duration::from_micros(now.unsigned_abs())
}

#[tokio::test]
async fn columns_are_those_of_all_files() {
    let files = files();
    let folder = tempfile::tempdir().unwrap();
    put(&folder.path().join("a.parquet"), 0..5).await;
    put(&folder.path().join("b.parquet"), 0..5).await;
    let columns = files.columns_at(&folder.path().display().to_string()).await.unwrap();
    let shown: Vec<String> = columns.iter().map(|column| format!("{} {}", column.name, column.sql_type)).collect();
    assert_eq!(shown, ["a integer", "b text"]);
    let other = ColumnDef { name: "c".to_owned(), ..column_defs(&table())[0].clone() };
    let mut encoder = Encoder::new("a file", &[other], WriteOptions::default());
    let values = batch(0..5).project(&[0]).unwrap();
    let mut bytes = encoder.write(&values).await.unwrap().concat();
    let end = encoder.finish().await.unwrap();
    bytes.extend_from_slice(&[end.pages, end.tail].concat());
    std::fs::write(folder.path().join("c.parquet"), bytes).unwrap();
    let differing = files.columns_at(&folder.path().display().to_string()).await.unwrap_err();
    assert_eq!(differing.condition, Condition::DatatypeMismatch);
    let detail = differing.detail.unwrap();
    assert!(
        detail.contains("column \"a\"") && detail.contains("a.parquet") && detail.contains("c.parquet"),
        "{detail}"
    );
}
