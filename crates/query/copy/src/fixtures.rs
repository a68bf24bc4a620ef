//! The text form of values in tests.

use std::sync::Arc;

use types::{ObjectNames, SessionZone, SqlType};
use value_codec::encode::TextStyle;

/// Values as a session in `zone` shows them.
pub(crate) fn text_style(zone: SessionZone) -> TextStyle {
    TextStyle { zone, names: Arc::new(Numbered) }
}

/// A catalog in which object 7 of type `regclass` is called `regclass 7`.
#[derive(Debug)]
struct Numbered;

impl ObjectNames for Numbered {
    fn show(&self, sql_type: &SqlType, oid: u32) -> String {
        format!("{sql_type} {oid}")
    }
}
