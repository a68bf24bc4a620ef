//! Text style of values, for tests.

use std::sync::Arc;

use types::{ObjectNames, SessionZone, SqlType};
use value_codec::encode::TextStyle;

/// Returns the text style of a session in `zone`.
pub(crate) fn text_style(zone: SessionZone) -> TextStyle {
    TextStyle { zone, names: Arc::new(Numbered) }
}

/// Catalog in which object 7 of type `regclass` is called `regclass 7`.
#[derive(Debug)]
struct Numbered;

impl ObjectNames for Numbered {
    fn format(&self, sql_type: &SqlType, oid: u32) -> String {
        format!("{sql_type} {oid}")
    }
}
