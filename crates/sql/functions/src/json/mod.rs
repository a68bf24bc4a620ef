//! Functions of `json` and `jsonb`. Both are stored as text, and operators slice it; a part of a normalized text is
//! itself normalized.
//!
//! - `access.rs`: access to parts; `containment.rs`: containment and existence,
//! - `construct.rs`: construction and modification; `comparison_key.rs`: comparison keys.

mod access;
mod comparison_key;
mod construct;
mod containment;

use types::SqlType;

pub(super) use self::comparison_key::comparison_key;
pub(crate) use self::construct::JsonWriter;
pub(super) use self::construct::{concatenate, remove_index, remove_key};
use super::catalog_entry::catalog_entry;
use super::definition::{Definition, FailsFor as F, Overload, ParameterType as T, ResultType};

const TEXT: ResultType = ResultType::fixed(SqlType::Text);
const BOOL: ResultType = ResultType::fixed(SqlType::Bool);
const INT4: ResultType = ResultType::fixed(SqlType::Int4);
const JSON: ResultType = ResultType::fixed(SqlType::Json);
const JSONB: ResultType = ResultType::fixed(SqlType::Jsonb);

pub(super) const DEFINITIONS: &[Definition] = &[
    Definition::new(
        "->",
        "get the element or field of a JSON value",
        &[
            Overload::rows(&[T::Jsonb, T::Int4], JSONB, F::Nothing, access::element),
            Overload::rows(&[T::Json, T::Int4], JSON, F::Nothing, access::element),
            Overload::rows(&[T::Jsonb, T::Text], JSONB, F::Nothing, access::field),
            Overload::rows(&[T::Json, T::Text], JSON, F::Nothing, access::field),
        ],
    ),
    Definition::new(
        "->>",
        "get the element or field of a JSON value as text",
        &[
            Overload::rows(&[T::Jsonb, T::Int4], TEXT, F::Nothing, access::element_text),
            Overload::rows(&[T::Json, T::Int4], TEXT, F::SomeValues, access::element_text),
            Overload::rows(&[T::Jsonb, T::Text], TEXT, F::Nothing, access::field_text),
            Overload::rows(&[T::Json, T::Text], TEXT, F::SomeValues, access::field_text),
        ],
    ),
    Definition::new(
        "#>",
        "get the JSON value at a path",
        &[
            Overload::rows(&[T::Jsonb, T::TextArray], JSONB, F::Nothing, access::path),
            Overload::rows(&[T::Json, T::TextArray], JSON, F::Nothing, access::path),
        ],
    ),
    Definition::new(
        "#>>",
        "get the JSON value at a path as text",
        &[
            Overload::rows(&[T::Jsonb, T::TextArray], TEXT, F::Nothing, access::path_text),
            Overload::rows(&[T::Json, T::TextArray], TEXT, F::SomeValues, access::path_text),
        ],
    ),
    Definition::new(
        "json_extract_path",
        "get the JSON value at a path",
        &[Overload::rows(&[T::Json, T::Text], JSON, F::SomeValues, access::path_of_arguments).variadic()],
    )
    .in_catalog(&[catalog_entry(3951, "json,_text", "json")]),
    Definition::new(
        "jsonb_extract_path",
        "get the JSON value at a path",
        &[Overload::rows(&[T::Jsonb, T::Text], JSONB, F::Nothing, access::path_of_arguments).variadic()],
    )
    .in_catalog(&[catalog_entry(3217, "jsonb,_text", "jsonb")]),
    Definition::new(
        "json_extract_path_text",
        "get the JSON value at a path as text",
        &[Overload::rows(&[T::Json, T::Text], TEXT, F::SomeValues, access::path_text_of_arguments).variadic()],
    )
    .in_catalog(&[catalog_entry(3953, "json,_text", "text")]),
    Definition::new(
        "jsonb_extract_path_text",
        "get the JSON value at a path as text",
        &[Overload::rows(&[T::Jsonb, T::Text], TEXT, F::Nothing, access::path_text_of_arguments).variadic()],
    )
    .in_catalog(&[catalog_entry(3940, "jsonb,_text", "text")]),
    Definition::new(
        "@>",
        "contains",
        &[
            Overload::rows(&[T::Jsonb, T::Jsonb], BOOL, F::Nothing, containment::contains),
            Overload::builtin(&[T::AnyArray, T::AnyArray], BOOL, F::Nothing, super::array::has_all),
        ],
    ),
    Definition::new(
        "<@",
        "is contained by",
        &[Overload::rows(&[T::Jsonb, T::Jsonb], BOOL, F::Nothing, containment::contained)],
    ),
    Definition::new("?", "key exists", &[Overload::rows(&[T::Jsonb, T::Text], BOOL, F::Nothing, containment::has_key)]),
    Definition::new(
        "?|",
        "any of the keys exists",
        &[Overload::rows(&[T::Jsonb, T::TextArray], BOOL, F::Nothing, containment::has_any)],
    ),
    Definition::new(
        "?&",
        "all of the keys exist",
        &[Overload::rows(&[T::Jsonb, T::TextArray], BOOL, F::Nothing, containment::has_all)],
    ),
    Definition::new(
        "json_typeof",
        "type of a JSON value",
        &[Overload::rows(&[T::Json], TEXT, F::Nothing, access::type_name)],
    )
    .in_catalog(&[catalog_entry(3968, "json", "text")]),
    Definition::new(
        "jsonb_typeof",
        "type of a JSON value",
        &[Overload::rows(&[T::Jsonb], TEXT, F::Nothing, access::type_name)],
    )
    .in_catalog(&[catalog_entry(3210, "jsonb", "text")]),
    Definition::new(
        "json_array_length",
        "number of elements of a JSON array",
        &[Overload::rows(&[T::Json], INT4, F::SomeValues, access::array_length)],
    )
    .in_catalog(&[catalog_entry(3956, "json", "int4")]),
    Definition::new(
        "jsonb_array_length",
        "number of elements of a JSON array",
        &[Overload::rows(&[T::Jsonb], INT4, F::SomeValues, access::array_length)],
    )
    .in_catalog(&[catalog_entry(3207, "jsonb", "int4")]),
    Definition::new(
        "json_build_object",
        "build a JSON object from keys and values",
        &[Overload::rows(&[T::Any], JSON, F::SomeValues, construct::object).variadic()],
    )
    .in_catalog(&[
        catalog_entry(3200, "any", "json").stable().called_on_null(),
        catalog_entry(3201, "", "json").stable().called_on_null(),
    ]),
    Definition::new(
        "jsonb_build_object",
        "build a JSON object from keys and values",
        &[Overload::rows(&[T::Any], JSONB, F::SomeValues, construct::object).variadic()],
    )
    .in_catalog(&[
        catalog_entry(3273, "any", "jsonb").stable().called_on_null(),
        catalog_entry(3274, "", "jsonb").stable().called_on_null(),
    ]),
    Definition::new(
        "json_build_array",
        "build a JSON array from any inputs",
        &[Overload::rows(&[T::Any], JSON, F::SomeValues, construct::array).variadic()],
    )
    .in_catalog(&[
        catalog_entry(3198, "any", "json").stable().called_on_null(),
        catalog_entry(3199, "", "json").stable().called_on_null(),
    ]),
    Definition::new(
        "jsonb_build_array",
        "build a JSON array from any inputs",
        &[Overload::rows(&[T::Any], JSONB, F::SomeValues, construct::array).variadic()],
    )
    .in_catalog(&[
        catalog_entry(3271, "any", "jsonb").stable().called_on_null(),
        catalog_entry(3272, "", "jsonb").stable().called_on_null(),
    ]),
    Definition::new(
        "to_json",
        "map a value to JSON",
        &[Overload::rows(&[T::Any], JSON, F::SomeValues, construct::to_json)],
    )
    .in_catalog(&[catalog_entry(3176, "anyelement", "json").stable()]),
    Definition::new(
        "to_jsonb",
        "map a value to JSON",
        &[Overload::rows(&[T::Any], JSONB, F::SomeValues, construct::to_json)],
    )
    .in_catalog(&[catalog_entry(3787, "anyelement", "jsonb").stable()]),
    Definition::new(
        "array_to_json",
        "map an array to a JSON array",
        &[Overload::rows(&[T::AnyArray], JSON, F::SomeValues, construct::to_json)],
    )
    .in_catalog(&[catalog_entry(3153, "anyarray", "json").stable()]),
    Definition::new(
        "jsonb_strip_nulls",
        "remove object fields with null values",
        &[Overload::rows(&[T::Jsonb], JSONB, F::Nothing, construct::strip_nulls)],
    )
    .in_catalog(&[catalog_entry(3262, "jsonb", "jsonb")]),
    Definition::new(
        "json_strip_nulls",
        "remove object fields with null values",
        &[Overload::rows(&[T::Json], JSON, F::SomeValues, construct::strip_nulls)],
    )
    .in_catalog(&[catalog_entry(3261, "json", "json")]),
    Definition::new(
        "jsonb_pretty",
        "indented text of a JSON value",
        &[Overload::rows(&[T::Jsonb], TEXT, F::Nothing, construct::pretty)],
    )
    .in_catalog(&[catalog_entry(3306, "jsonb", "text")]),
];
