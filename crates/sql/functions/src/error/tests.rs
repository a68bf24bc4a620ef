use datafusion::common::{Column, DataFusionError, SchemaError};
use types::{Condition, SqlError};

use super::{from_datafusion, levenshtein_distance, to_datafusion};

#[test]
fn our_errors_survive_datafusion() {
    let ours = SqlError::new(Condition::UndefinedTable, "relation \"t\" does not exist").with_position(7);
    let wrapped = DataFusionError::Context("while planning".to_owned(), Box::new(to_datafusion(ours.clone())));
    assert_eq!(from_datafusion(wrapped), ours);
    let shared = std::sync::Arc::new(to_datafusion(ours.clone()));
    let kept = std::sync::Arc::clone(&shared);
    assert_eq!(from_datafusion(DataFusionError::Shared(shared)), ours);
    drop(kept);
}

#[test]
fn a_missing_column_hints_at_its_neighbour() {
    let error = DataFusionError::SchemaError(
        Box::new(SchemaError::FieldNotFound {
            field: Box::new(Column::new_unqualified("nmae")),
            valid_fields: vec![Column::new(Some("t"), "name"), Column::new(Some("t"), "amount")],
        }),
        Box::new(None),
    );
    let error = from_datafusion(error);
    assert_eq!(error.condition, Condition::UndefinedColumn);
    assert_eq!(error.message, "column \"nmae\" does not exist");
    assert_eq!(error.hint.as_deref(), Some("Perhaps you meant to reference the column \"t.name\"."));
}

#[test]
fn distance_counts_edits() {
    assert_eq!(levenshtein_distance("kitten", "sitting"), 3);
    assert_eq!(levenshtein_distance("", "ab"), 2);
}

#[test]
fn a_full_disk_is_known_however_it_is_wrapped() {
    let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
    let by_arrow = |error| DataFusionError::ArrowError(Box::new(arrow::error::ArrowError::from(error)), None);
    let limit = "The used disk space during the spilling process has exceeded the allowable limit of 1 MB.";
    for error in [
        DataFusionError::IoError(full()),
        by_arrow(full()),
        by_arrow(std::io::Error::other(DataFusionError::IoError(full()))),
        by_arrow(std::io::Error::other(limit)),
    ] {
        assert_eq!(from_datafusion(error).condition, Condition::DiskFull);
    }
    assert_eq!(from_datafusion(by_arrow(std::io::Error::other("broken"))).condition, Condition::IoError);
}
