//! CHECK STORAGE: compares the objects in the bucket with the catalog.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray, TimestampMicrosecondArray};
use arrow::datatypes::Schema;
use binder::check_storage_columns;
use futures::StreamExt;
use storage_error::from_transaction;
use txn::StorageRow;
use types::{Condition, SqlError, SqlResult};

use crate::result_rows::Rows;
use crate::running_statement::Statement;
use crate::session::Session;
use crate::started_statement::StartedStatement;

impl Session {
    /// Compares the bucket with the catalog; for superusers only, because the result names objects of everybody's
    /// tables.
    pub(crate) async fn check_storage(&mut self, statement: &Statement) -> SqlResult<StartedStatement> {
        if !self.transaction_block.session_state().role.superuser {
            let message = "permission denied: CHECK STORAGE is for superusers";
            return Err(SqlError::new(Condition::InsufficientPrivilege, message));
        }
        let transactions = Arc::clone(&self.instance.transactions);
        let rows = transactions.check_storage().await.map_err(from_transaction)?;
        let (context, hold) = self.run_context(statement);
        let columns = check_storage_columns();
        let fields: Vec<_> = columns.iter().map(|column| column.sql_type.arrow_field(&column.name, true)).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), storage_columns(&rows))
            .map_err(|error| SqlError::internal(format!("building CHECK STORAGE's result failed: {error}")))?;
        let rows = futures::stream::once(async move { Ok(batch) }).boxed();
        Ok(StartedStatement::rows(Rows::new(rows, columns, context.text_style(), Some(hold)), "CHECK STORAGE"))
    }
}

fn storage_columns(rows: &[StorageRow]) -> Vec<ArrayRef> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let times = |time: fn(&StorageRow) -> Option<i64>| -> ArrayRef {
        Arc::new(
            TimestampMicrosecondArray::from_iter(rows.iter().map(time))
                .with_timezone(types::arrow_field::TIMESTAMPTZ_ZONE),
        )
    };
    vec![
        Arc::new(StringViewArray::from_iter_values(rows.iter().map(|row| row.class.name()))),
        Arc::new(StringViewArray::from_iter(rows.iter().map(|row| row.object.as_deref()))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| number(row.objects)))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| number(row.bytes)))),
        times(|row| row.retained_until_us),
        times(|row| row.modified_us),
    ]
}
