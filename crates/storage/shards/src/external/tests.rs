use std::sync::Arc;

use arrow::array::{AsArray, Int32Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use types::{SystemClock, SystemRandom};

use super::*;

fn file() -> Bytes {
    let fields = vec![Field::new("a", DataType::Int32, false), Field::new("b", DataType::Utf8, true)];
    let schema = Arc::new(Schema::new(fields));
    let columns: Vec<arrow::array::ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![1, 2])), Arc::new(StringArray::from(vec![Some("x"), None]))];
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, Arc::clone(&schema), None).unwrap();
    writer.write(&RecordBatch::try_new(schema, columns).unwrap()).unwrap();
    writer.close().unwrap();
    Bytes::from(bytes)
}

async fn second_column(file: ExternalFile) -> Vec<Option<String>> {
    assert_eq!(file.schema().fields().len(), 2);
    let batches: Vec<RecordBatch> = file.read(&[1]).unwrap().try_collect().await.unwrap();
    let values = batches[0].column(0).as_string_view();
    values.iter().map(|value| value.map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_file_is_read_wherever_it_lies() {
    let expected = [Some("x".to_owned()), None];
    assert_eq!(second_column(ExternalFile::open_bytes("stdin", file()).await.unwrap()).await, expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    std::fs::write(&path, file()).unwrap();
    assert_eq!(second_column(ExternalFile::open_path(&path).await.unwrap()).await, expected);
    let objects = Objects::open("memory:///", Arc::new(SystemClock::new()), Arc::new(SystemRandom)).unwrap();
    objects.put("a.parquet", file()).await.unwrap();
    let opened = ExternalFile::open_object(&objects, "a.parquet", file().len() as u64).await.unwrap();
    assert_eq!(second_column(opened).await, expected);
}

#[tokio::test]
async fn what_is_no_parquet_file_is_refused() {
    let refused = ExternalFile::open_bytes("stdin", Bytes::from_static(b"PAR1 is not enough PAR1")).await;
    assert!(matches!(refused, Err(Error::Decode { object, .. }) if object == "stdin"));
    let missing = ExternalFile::open_path(Path::new("/nowhere/a.parquet")).await;
    assert!(matches!(missing, Err(Error::File { .. })));
}
