//! Functions of `json` and `jsonb`. Both are stored as text, and operators slice it; a part of a normalized text is
//! itself normalized.
//!
//! - `access.rs`: access to parts; `containment.rs`: containment and existence,
//! - `build.rs`: construction and modification; `comparison_key.rs`: comparison keys.

mod access;
mod build;
mod comparison_key;
mod containment;

use types::SqlType;

pub(crate) use self::build::JsonWriter;
pub(super) use self::build::{concatenate, remove_index, remove_key};
pub(super) use self::comparison_key::comparison_key;
use super::definition::{Definition, Overload, ParameterType as T, ResultType};

const TEXT: ResultType = ResultType::fixed(SqlType::Text);
const BOOL: ResultType = ResultType::fixed(SqlType::Bool);
const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const JSON: ResultType = ResultType::fixed(SqlType::Json);
const JSONB: ResultType = ResultType::fixed(SqlType::Jsonb);

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "->",
        &[
            Overload::rows(&[T::Jsonb, T::Int4], JSONB, access::element),
            Overload::rows(&[T::Json, T::Int4], JSON, access::element),
            Overload::rows(&[T::Jsonb, T::Text], JSONB, access::field),
            Overload::rows(&[T::Json, T::Text], JSON, access::field),
        ],
    ),
    Definition::new(
        "->>",
        &[
            Overload::rows(&[T::Jsonb, T::Int4], TEXT, access::element_text),
            Overload::rows(&[T::Json, T::Int4], TEXT, access::element_text),
            Overload::rows(&[T::Jsonb, T::Text], TEXT, access::field_text),
            Overload::rows(&[T::Json, T::Text], TEXT, access::field_text),
        ],
    ),
    Definition::new(
        "#>",
        &[
            Overload::rows(&[T::Jsonb, T::TextArray], JSONB, access::path),
            Overload::rows(&[T::Json, T::TextArray], JSON, access::path),
        ],
    ),
    Definition::new(
        "#>>",
        &[
            Overload::rows(&[T::Jsonb, T::TextArray], TEXT, access::path_text),
            Overload::rows(&[T::Json, T::TextArray], TEXT, access::path_text),
        ],
    ),
    Definition::new(
        "json_extract_path",
        &[Overload::rows(&[T::Json, T::Text], JSON, access::path_of_arguments).variadic()],
    ),
    Definition::new(
        "jsonb_extract_path",
        &[Overload::rows(&[T::Jsonb, T::Text], JSONB, access::path_of_arguments).variadic()],
    ),
    Definition::new(
        "json_extract_path_text",
        &[Overload::rows(&[T::Json, T::Text], TEXT, access::path_text_of_arguments).variadic()],
    ),
    Definition::new(
        "jsonb_extract_path_text",
        &[Overload::rows(&[T::Jsonb, T::Text], TEXT, access::path_text_of_arguments).variadic()],
    ),
    Definition::new(
        "@>",
        &[
            Overload::rows(&[T::Jsonb, T::Jsonb], BOOL, containment::contains),
            Overload::builtin(&[T::AnyArray, T::AnyArray], BOOL, super::array::has_all),
        ],
    ),
    Definition::new("<@", &[Overload::rows(&[T::Jsonb, T::Jsonb], BOOL, containment::contained)]),
    Definition::new("?", &[Overload::rows(&[T::Jsonb, T::Text], BOOL, containment::has_key)]),
    Definition::new("?|", &[Overload::rows(&[T::Jsonb, T::TextArray], BOOL, containment::has_any)]),
    Definition::new("?&", &[Overload::rows(&[T::Jsonb, T::TextArray], BOOL, containment::has_all)]),
    Definition::new("json_typeof", &[Overload::rows(&[T::Json], TEXT, access::type_name)]),
    Definition::new("jsonb_typeof", &[Overload::rows(&[T::Jsonb], TEXT, access::type_name)]),
    Definition::new("json_array_length", &[Overload::rows(&[T::Json], INT4, access::array_length)]),
    Definition::new("jsonb_array_length", &[Overload::rows(&[T::Jsonb], INT4, access::array_length)]),
    Definition::new("json_build_object", &[Overload::rows(&[T::Any], JSON, build::object).variadic()]),
    Definition::new("jsonb_build_object", &[Overload::rows(&[T::Any], JSONB, build::object).variadic()]),
    Definition::new("json_build_array", &[Overload::rows(&[T::Any], JSON, build::array).variadic()]),
    Definition::new("jsonb_build_array", &[Overload::rows(&[T::Any], JSONB, build::array).variadic()]),
    Definition::new("to_json", &[Overload::rows(&[T::Any], JSON, build::to_json)]),
    Definition::new("to_jsonb", &[Overload::rows(&[T::Any], JSONB, build::to_json)]),
    Definition::new("array_to_json", &[Overload::rows(&[T::AnyArray], JSON, build::to_json)]),
    Definition::new("jsonb_strip_nulls", &[Overload::rows(&[T::Jsonb], JSONB, build::strip_nulls)]),
    Definition::new("json_strip_nulls", &[Overload::rows(&[T::Json], JSON, build::strip_nulls)]),
    Definition::new("jsonb_pretty", &[Overload::rows(&[T::Jsonb], TEXT, build::pretty)]),
];
