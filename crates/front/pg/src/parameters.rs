//! Reporting of settings to the client in ParameterStatus messages: at startup and after each change.

use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::ParameterStatus;
use session::Session;
use session::held::Held;

use crate::transport::Outbox;

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
pub(crate) struct Reported {
    values: [Option<String>; REPORTED.len()],
    /// Session settings that the values were read from; while these are the same, no value is compared.
    of: Option<Held>,
}

impl Reported {
    /// Reports the settings whose values have changed.
    pub(crate) fn report(&mut self, session: &Session, outbox: &mut Outbox) {
        if self.of.as_ref().is_some_and(|of| of.is(session.held())) {
            return;
        }
        self.of = Some(session.held().clone());
        for (name, known) in REPORTED.iter().zip(&mut self.values) {
            let value = session.reported_value(name);
            if known.as_ref() != Some(&value) {
                outbox.put(PgWireBackendMessage::ParameterStatus(ParameterStatus::new(
                    (*name).to_owned(),
                    value.clone(),
                )));
                *known = Some(value);
            }
        }
    }
}
