use arrow::array::{AsArray, Int64Array, StringArray};
use arrow::datatypes::Int16Type;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::metrics::Time;
use datafusion::physical_plan::repartition::BatchPartitioner;
use futures::TryStreamExt;

use super::*;

#[test]
fn the_library_sends_the_number_of_a_task_to_one_of_its_partitions() {
    for (tasks, partitions) in [(1, 2), (2, 2), (4, 2), (7, 3), (64, 16)] {
        let numbers = task_numbers(tasks, partitions).expect("numbers are hashed").expect("they are enough");
        let column: ArrayRef = Arc::new(Int16Array::from(numbers.clone()));
        let rows = RecordBatch::try_from_iter([(TASK_COLUMN, column)]).expect("a column");
        let by: Vec<Arc<dyn PhysicalExpr>> = vec![Arc::new(Column::new(TASK_COLUMN, 0))];
        let mut partitioner =
            BatchPartitioner::new_hash_partitioner(by, tasks * partitions, Time::new()).expect("there are partitions");
        let mut seen = 0;
        for sent in partitioner.partition_iter(rows).expect("rows are hashed") {
            let (partition, rows) = sent.expect("rows are taken");
            for number in rows.column(0).as_primitive::<Int16Type>().values() {
                assert_eq!(numbers[partition / partitions], *number, "{tasks} tasks of {partitions}");
                seen += 1;
            }
        }
        assert_eq!(seen, tasks);
    }
    assert_eq!(task_numbers(20_000, 16).expect("numbers are hashed"), None);
}

#[tokio::test]
async fn each_row_gets_the_number_of_its_bucket() {
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(7), Some(1)]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c", "d"]));
    let rows = RecordBatch::try_from_iter([("name", names), ("k", Arc::clone(&keys))]).expect("two columns");
    let numbers: Arc<[i16]> = (0..64).map(|bucket| bucket * 3).collect();
    let input = MemorySourceConfig::try_new_exec(&[vec![rows.clone()]], rows.schema(), None).expect("rows in memory");
    let to_owners = RouteToOwnersExec::try_new(input, vec![1], Arc::clone(&numbers)).expect("a column is the key");
    let given = to_owners.execute(0, Arc::default()).expect("it runs").try_collect::<Vec<_>>().await;
    let given = given.expect("rows come");
    let expected: Vec<i16> =
        compute_buckets(&[keys]).expect("keys have buckets").into_iter().map(|it| i16::from(it) * 3).collect();
    assert_eq!(given[0].column(2).as_primitive::<Int16Type>().values().to_vec(), expected);
    assert_eq!(given[0].column(0), rows.column(0));
    assert!(RouteToOwnersExec::try_new(Arc::clone(&to_owners.input), vec![2], numbers).is_err());
    assert!(RouteToOwnersExec::try_new(Arc::clone(&to_owners.input), vec![0], Arc::new([1])).is_err());
}
