//! Errors and notices as messages.

use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use session::notice::Severity;
use types::{QueryId, SqlError};

#[cfg(test)]
mod tests;

/// The message that tells a client of an error.
#[must_use]
pub(crate) fn error_response(severity: Severity, error: &SqlError, query_id: Option<QueryId>) -> ErrorResponse {
    let mut fields = fields(severity, error);
    // PostgreSQL names the routine of its source here; what finds the failure in Kiln's log is the statement's id.
    fields.extend(query_id.map(|id| (b'R', format!("query {id}"))));
    ErrorResponse::new(fields)
}

/// The message that tells a client something without failing.
#[must_use]
pub(crate) fn notice_response(severity: Severity, notice: &SqlError) -> NoticeResponse {
    NoticeResponse::new(fields(severity, notice))
}

fn fields(severity: Severity, error: &SqlError) -> Vec<(u8, String)> {
    let mut fields = vec![
        (b'S', severity.text().to_owned()),
        (b'V', severity.text().to_owned()),
        (b'C', error.condition.sqlstate().to_owned()),
        (b'M', without_nul(&error.message)),
    ];
    let optional = [
        (b'D', &error.detail),
        (b'H', &error.hint),
        (b'W', &error.context),
        (b's', &error.schema),
        (b't', &error.table),
        (b'c', &error.column),
        (b'n', &error.constraint),
    ];
    fields.extend(optional.into_iter().filter_map(|(code, text)| Some((code, without_nul(text.as_ref()?)))));
    fields.extend(error.position.map(|position| (b'P', position.to_string())));
    fields
}

/// A message may quote a client's own bytes, and a zero byte would end the field early.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
