//! Errors and notices as ErrorResponse and NoticeResponse messages.

use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use session::message_severity::Severity;
use types::{QueryId, SqlError};

#[cfg(test)]
mod tests;

/// Builds the ErrorResponse of an error.
#[must_use]
pub(crate) fn error_response(severity: Severity, error: &SqlError, query_id: Option<QueryId>) -> ErrorResponse {
    let mut fields = fields(severity, error);
    // PostgreSQL sends the routine of its source here; Kiln sends the statement's id, by which its log lines are found.
    fields.extend(query_id.map(|id| (b'R', format!("query {id}"))));
    ErrorResponse::new(fields)
}

/// Builds the NoticeResponse of a notice.
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

/// Replaces zero bytes, which a message may quote from the client and which would end the field early.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
