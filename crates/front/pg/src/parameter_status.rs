//! Reporting of settings to the client in ParameterStatus messages: at startup and after each change.

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::ParameterStatus;
use session::Session;
use session::session_state::SessionState;

use crate::buffered_transport::Outbox;

/// Settings that PostgreSQL reports, in its order.
const REPORTED: [&str; 13] = [
    "application_name",
    "client_encoding",
    "DateStyle",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "IntervalStyle",
    "is_superuser",
    "server_encoding",
    "server_version",
    "session_authorization",
    "standard_conforming_strings",
    "TimeZone",
];

/// Values that were last reported to the client.
#[derive(Default)]
pub(crate) struct ReportedSettings {
    values: [Option<String>; REPORTED.len()],
    /// Session settings that the values were read from; while these are the same, no value is compared.
    source: Option<SessionState>,
}

impl ReportedSettings {
    /// Reports the settings whose values have changed.
    pub(crate) fn report(&mut self, session: &Session, outbox: &mut Outbox) {
        if self.source.as_ref().is_some_and(|of| of.is_same_instance(session.session_state())) {
            return;
        }
        self.source = Some(session.session_state().clone());
        for (name, reported) in REPORTED.iter().zip(&mut self.values) {
            let value = session.reported_value(name);
            if reported.as_ref() != Some(&value) {
                outbox.put(PgWireBackendMessage::ParameterStatus(ParameterStatus::new(
                    (*name).to_owned(),
                    value.clone(),
                )));
                *reported = Some(value);
            }
        }
    }
}
