//! Tests for errors that cross process boundaries.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion_distributed::{ExecuteTaskRequest, ProducerHead, TaskKey};
use functions::error::{from_datafusion, to_datafusion};
use types::{Condition, SqlError};
use url::Url;
use uuid::Uuid;

use super::{PLAN_TIMEOUT, decode_error, encode_error, lost_worker};

fn worker() -> Url {
    Url::parse("http://127.0.0.1:7001/").expect("it is an address")
}

#[test]
fn what_a_client_is_told_stays_the_same_on_the_way() {
    let error = SqlError::new(Condition::DivisionByZero, "division by zero").with_hint("do not");
    let sent = encode_error(to_datafusion(error.clone()));
    let arrived = from_datafusion(decode_error(DataFusionError::Shared(Arc::new(sent)), &worker()));
    assert_eq!(arrived, error);
    assert_eq!(lost_worker(&arrived), None);
}

#[test]
fn a_connection_that_breaks_is_an_error_that_says_whose() {
    let broken = DataFusionError::External(Box::new(tonic::Status::unavailable("connection reset")));
    let broken = decode_error(DataFusionError::Context("a task".to_owned(), Box::new(broken)), &worker());
    // Through a worker that read the other worker's rows.
    let other = Url::parse("http://127.0.0.1:7002/").expect("it is an address");
    let error = from_datafusion(decode_error(encode_error(broken), &other));
    assert_eq!(error.condition, Condition::IoError);
    assert!(error.hint.is_some());
    assert_eq!(lost_worker(&error), Some(worker()));
}

#[test]
fn what_leaves_twice_is_told_once() {
    let broken = DataFusionError::External(Box::new(tonic::Status::unavailable("connection reset")));
    // A task passes it to another task of the same worker, which sends it on.
    let sent = encode_error(encode_error(decode_error(broken, &worker())));
    let other = Url::parse("http://127.0.0.1:7002/").expect("it is an address");
    let error = from_datafusion(decode_error(DataFusionError::Shared(Arc::new(sent)), &other));
    assert_eq!(lost_worker(&error), Some(worker()), "{error:?}");
}

/// Asks a worker of the library for a task without a plan, for which it waits ten seconds.
async fn message_without_plan() -> String {
    let task_key = TaskKey { query_id: Uuid::nil(), stage_id: 0, task_number: 0 };
    let request = ExecuteTaskRequest {
        task_key,
        target_partition_start: 0,
        target_partition_end: 1,
        producer_head: ProducerHead::None,
    };
    let outcome = datafusion_distributed::Worker::default().execute_task(request).await;
    match outcome.err().expect("a task without a plan does not run") {
        DataFusionError::Execution(text) => text,
        other => {
            panic!("the library reports a missing plan by another error, which error_transport.rs must read: {other}")
        }
    }
}

#[tokio::test]
async fn a_worker_that_only_others_reach_is_lost() {
    let text = message_without_plan().await;
    assert!(
        text.contains(PLAN_TIMEOUT),
        "datafusion-distributed words a missing plan otherwise: adapt PLAN_TIMEOUT in exchange/src/error_transport.rs to {text:?}"
    );
    let waited = || DataFusionError::Execution(text.clone());
    // As sent by the worker itself, and as passed on by a task of the same worker.
    for sent in [waited(), encode_error(waited())] {
        let error = from_datafusion(decode_error(sent, &worker()));
        assert_eq!((error.condition, lost_worker(&error)), (Condition::IoError, Some(worker())));
        let other = Url::parse("http://127.0.0.1:7002/").expect("it is an address");
        let passed_on = from_datafusion(decode_error(encode_error(to_datafusion(error)), &other));
        assert_eq!(lost_worker(&passed_on), Some(worker()));
    }
}
