//! Enumerates and clears the fields of encoded plans: those of protobuf messages by number, those of Kiln's records
//! inside them by name.
//!
//! A field is identified by its message type, wherever the message occurs. Which fields are messages themselves is
//! listed here, following DataFusion's `.proto` files.

use std::fmt;

use exchange::codec::{KILN, checksummed_record};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Format of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// Protobuf message of this name.
    Message(&'static str),
    /// Record of Kiln.
    Form(&'static str),
    /// Record of Kiln, or the output of another codec.
    Own(&'static str),
}

/// Fields that are messages: type of the message, number of the field, format.
const MESSAGES: &[(&str, &[(u64, Format)])] = {
    use Format::{Form, Message, Own};
    const PLAN: Format = Message("plan");
    const EXPR: Format = Message("expr");
    const TYPE: Format = Message("type");
    const SCHEMA: Format = Message("schema");
    &[
        (
            "plan",
            &[
                (3, Message("empty")),
                (4, Message("projection")),
                (8, Message("aggregate")),
                (9, Message("hash join")),
                (10, Message("sort")),
                (14, Message("repartition")),
                (15, Message("window")),
                (16, Message("cross join")),
                (18, Message("operator")),
                (19, Message("union")),
                (21, Message("merge")),
                (22, Message("loop join")),
                (27, Message("empty")),
                (32, Message("cooperative")),
                (37, Message("buffer")),
            ],
        ),
        ("empty", &[(1, SCHEMA)]),
        ("projection", &[(1, PLAN), (2, EXPR)]),
        (
            "aggregate",
            &[
                (1, EXPR),
                (2, EXPR),
                (4, PLAN),
                (7, SCHEMA),
                (8, EXPR),
                (10, Message("maybe")),
                (11, Message("aggregate limit")),
                (13, EXPR),
                (14, SCHEMA),
            ],
        ),
        ("maybe", &[(1, EXPR)]),
        ("hash join", &[(1, PLAN), (2, PLAN), (3, Message("on")), (8, Message("join filter")), (11, EXPR)]),
        ("on", &[(1, EXPR), (2, EXPR)]),
        ("join filter", &[(1, EXPR), (2, Message("join column")), (3, SCHEMA)]),
        ("loop join", &[(1, PLAN), (2, PLAN), (4, Message("join filter"))]),
        ("cross join", &[(1, PLAN), (2, PLAN)]),
        ("sort", &[(1, PLAN), (2, EXPR), (5, EXPR)]),
        ("merge", &[(1, PLAN), (2, EXPR)]),
        ("repartition", &[(1, PLAN), (2, Message("partitioning"))]),
        ("partitioning", &[(2, Message("hash"))]),
        ("hash", &[(1, EXPR)]),
        ("window", &[(1, PLAN), (2, Message("window function")), (5, EXPR)]),
        (
            "window function",
            &[(4, EXPR), (5, EXPR), (6, Message("sort key")), (7, Message("frame")), (9, Form("function"))],
        ),
        ("frame", &[(2, Message("bound")), (3, Message("bound"))]),
        ("bound", &[(2, Message("value"))]),
        ("sort key", &[(1, EXPR)]),
        ("operator", &[(1, Own("operator")), (2, PLAN)]),
        ("union", &[(1, PLAN)]),
        ("cooperative", &[(1, PLAN)]),
        ("buffer", &[(1, PLAN)]),
        (
            "expr",
            &[
                (1, Message("column")),
                (2, Message("value")),
                (3, Message("binary")),
                (4, Message("aggregate function")),
                (5, Message("unary")),
                (6, Message("unary")),
                (7, Message("unary")),
                (8, Message("case")),
                (9, Message("cast")),
                (10, Message("sort key")),
                (11, Message("unary")),
                (12, Message("in list")),
                (14, Message("cast")),
                (16, Message("scalar function")),
                (18, Message("like")),
                (19, Message("own expr")),
                (23, Message("dynamic filter")),
            ],
        ),
        ("binary", &[(1, EXPR), (2, EXPR), (4, EXPR)]),
        ("unary", &[(1, EXPR)]),
        ("case", &[(1, EXPR), (2, Message("when")), (3, EXPR)]),
        ("when", &[(1, EXPR), (2, EXPR)]),
        ("cast", &[(1, EXPR), (2, TYPE)]),
        ("in list", &[(1, EXPR), (2, EXPR)]),
        ("like", &[(3, EXPR), (4, EXPR)]),
        ("scalar function", &[(2, EXPR), (3, Form("function")), (4, TYPE)]),
        ("aggregate function", &[(2, EXPR), (5, Message("sort key")), (7, Form("function"))]),
        ("own expr", &[(1, Own("expression")), (2, EXPR)]),
        ("dynamic filter", &[(1, EXPR), (2, EXPR), (4, EXPR)]),
        ("schema", &[(1, Message("field"))]),
        ("field", &[(2, TYPE), (4, Message("field"))]),
        ("type", &[(20, Message("timestamp")), (24, Message("decimal")), (25, Message("list"))]),
        ("list", &[(1, Message("field"))]),
        (
            "value",
            &[
                (17, Message("nested")),
                (20, Message("decimal value")),
                (26, Message("timestamp value")),
                (30, Message("time value")),
                (31, Message("interval value")),
                (33, TYPE),
            ],
        ),
        ("nested", &[(3, SCHEMA)]),
    ]
};

/// Fields of records that hold encoded protobuf messages, by the end of their path.
const ENCODED_MESSAGES: &[(&str, &str)] = &[
    (".Scan.dynamic", "expr"),
    (".Filter.predicate", "expr"),
    (".WithinTasks.keys", "expr"),
    (".RankLimit.parts", "expr"),
    (".order[].expression", "expr"),
    (".Series.args", "expr"),
    (".Passed", "expr"),
    (".ProjectSet.schema", "schema"),
    (".field", "field"),
    (".Literal.value", "value"),
];

/// Calls `found` with each copy of a plan's message in which one wanted field is cleared, and the name of the field.
pub(super) fn cleared(plan: &[u8], is_wanted: &dyn Fn(&str) -> bool, found: &mut dyn FnMut(String, Vec<u8>)) {
    clear(Format::Message("plan"), plan, is_wanted, found);
}

fn clear(kind: Format, bytes: &[u8], is_wanted: &dyn Fn(&str) -> bool, found: &mut dyn FnMut(String, Vec<u8>)) {
    match kind {
        Format::Message(name) => clear_message(name, bytes, is_wanted, found),
        Format::Form(name) => clear_form(name, &[], bytes, is_wanted, found),
        Format::Own(name) if bytes.first() == Some(&KILN) => {
            clear_form(name, &bytes[..1], &bytes[1..], is_wanted, found)
        }
        Format::Own(_) => {}
    }
}

fn clear_message(
    name: &'static str,
    bytes: &[u8],
    is_wanted: &dyn Fn(&str) -> bool,
    found: &mut dyn FnMut(String, Vec<u8>),
) {
    let fields = fields(bytes);
    let with = |at: usize, other: Option<Vec<u8>>| {
        let mut message = Vec::with_capacity(bytes.len());
        for (place, field) in fields.iter().enumerate() {
            match (&other, place == at) {
                (Some(other), true) => field.written(other, &mut message),
                (None, true) => {}
                _ => message.extend(field.whole),
            }
        }
        message
    };
    let inner = MESSAGES.iter().find(|(message, _)| *message == name).map_or(&[][..], |(_, fields)| fields);
    for (at, field) in fields.iter().enumerate() {
        let key = format!("{name} {}", field.number);
        if is_wanted(&key) {
            found(key, with(at, None));
        }
        let kind = inner.iter().find(|(number, _)| *number == field.number);
        if let (Some((_, kind)), Some(content)) = (kind, field.content) {
            clear(*kind, content, is_wanted, &mut |key, content| found(key, with(at, Some(content))));
        }
    }
}

/// Encoded field.
struct Field<'a> {
    number: u64,
    tag: u64,
    whole: &'a [u8],
    /// Bytes, if the field has a length; `None` for numbers.
    content: Option<&'a [u8]>,
}

impl Field<'_> {
    /// Writes the field with other bytes.
    fn written(&self, content: &[u8], out: &mut Vec<u8>) {
        prost::encoding::encode_varint(self.tag, out);
        prost::encoding::encode_varint(content.len() as u64, out);
        out.extend(content);
    }
}

fn fields(message: &[u8]) -> Vec<Field<'_>> {
    let (mut rest, mut fields) = (message, Vec::new());
    while !rest.is_empty() {
        let begin = rest;
        let tag = prost::encoding::decode_varint(&mut rest).unwrap();
        let content = match tag & 7 {
            0 => {
                prost::encoding::decode_varint(&mut rest).unwrap();
                None
            }
            1 => {
                rest = &rest[8..];
                None
            }
            2 => {
                let length = usize::try_from(prost::encoding::decode_varint(&mut rest).unwrap()).unwrap();
                let (content, after) = rest.split_at(length);
                rest = after;
                Some(content)
            }
            5 => {
                rest = &rest[4..];
                None
            }
            other => panic!("{other} is no type of a field"),
        };
        fields.push(Field { number: tag >> 3, tag, whole: &begin[..begin.len() - rest.len()], content });
    }
    fields
}

fn clear_form(
    name: &str,
    before: &[u8],
    bytes: &[u8],
    is_wanted: &dyn Fn(&str) -> bool,
    found: &mut dyn FnMut(String, Vec<u8>),
) {
    let value: MessagePackValue = checksummed_record::read_record(bytes).unwrap();
    let mut changed = |key: String, value: MessagePackValue| {
        let mut whole = before.to_vec();
        checksummed_record::write_record(&value, &mut whole).unwrap();
        found(key, whole);
    };
    clear_value(name, &value, is_wanted, &mut changed);
}

/// Clears what is inside a value of a record, at `path`.
fn clear_value(
    path: &str,
    value: &MessagePackValue,
    is_wanted: &dyn Fn(&str) -> bool,
    found: &mut dyn FnMut(String, MessagePackValue),
) {
    let field = path.trim_end_matches("[]");
    let written = ENCODED_MESSAGES.iter().find(|(end, _)| field.ends_with(end)).map(|(_, kind)| *kind);
    if let (Some(kind), Some(bytes)) = (written, value.bytes()) {
        let back = &mut |key, bytes: Vec<u8>| found(key, MessagePackValue::of_bytes(&bytes));
        return clear(Format::Message(kind), &bytes, is_wanted, back);
    }
    match value {
        MessagePackValue::Seq(values) => {
            for (at, value) in values.iter().enumerate() {
                let path = if path == "type" { path.to_owned() } else { format!("{path}[]") };
                clear_value(&path, value, is_wanted, &mut |key, value| {
                    let mut values = values.clone();
                    values[at] = value;
                    found(key, MessagePackValue::Seq(values));
                });
            }
        }
        MessagePackValue::Map(entries) => {
            for (at, (name, value)) in entries.iter().enumerate() {
                let MessagePackValue::Str(name) = name else { continue };
                let key = format!("{path}.{name}");
                let with = |value| {
                    let mut entries = entries.clone();
                    entries[at].1 = value;
                    MessagePackValue::Map(entries)
                };
                if let Some(empty) = value.empty().filter(|_| is_wanted(&key)) {
                    found(key.clone(), with(empty));
                }
                clear_value(of_type(&key), value, is_wanted, &mut |key, value| found(key, with(value)));
            }
        }
        _ => {}
    }
}

/// Returns the name of the type that `path` ends in, or the path.
fn of_type(path: &str) -> &str {
    let types = [(".Function.function", "function"), (".facts", "facts"), (".from", "type"), (".to", "type")];
    let found = types.iter().chain(&[(".takes", "type")]).find(|(end, _)| path.ends_with(end));
    found.map_or(path, |(_, name)| name)
}

/// Value of MessagePack.
#[derive(Debug, Clone, PartialEq)]
enum MessagePackValue {
    Nil,
    Bool(bool),
    Int(i64),
    Uint(u64),
    F32(f32),
    F64(f64),
    Str(String),
    Bin(Vec<u8>),
    Seq(Vec<MessagePackValue>),
    Map(Vec<(MessagePackValue, MessagePackValue)>),
}

impl MessagePackValue {
    /// Returns the cleared value; `None` if it is empty already.
    fn empty(&self) -> Option<Self> {
        Some(match self {
            Self::Bool(true) => Self::Bool(false),
            Self::Int(number) if *number != 0 => Self::Int(0),
            Self::Uint(number) if *number != 0 => Self::Uint(0),
            Self::F32(number) if *number != 0.0 => Self::F32(0.0),
            Self::F64(number) if *number != 0.0 => Self::F64(0.0),
            Self::Str(text) if !text.is_empty() => Self::Str(String::new()),
            Self::Bin(bytes) if !bytes.is_empty() => Self::Bin(Vec::new()),
            Self::Seq(values) if !values.is_empty() => Self::Seq(Vec::new()),
            Self::Map(entries) if !entries.is_empty() => Self::Nil,
            _ => return None,
        })
    }

    /// Returns the bytes of a sequence of small integers.
    fn bytes(&self) -> Option<Vec<u8>> {
        let Self::Seq(values) = self else { return None };
        let byte = |value: &MessagePackValue| match value {
            Self::Uint(byte) => u8::try_from(*byte).ok(),
            _ => None,
        };
        values.iter().map(byte).collect()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        Self::Seq(bytes.iter().map(|byte| Self::Uint(u64::from(*byte))).collect())
    }
}

impl Serialize for MessagePackValue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nil => to.serialize_none(),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Int(value) => to.serialize_i64(*value),
            Self::Uint(value) => to.serialize_u64(*value),
            Self::F32(value) => to.serialize_f32(*value),
            Self::F64(value) => to.serialize_f64(*value),
            Self::Str(value) => to.serialize_str(value),
            Self::Bin(value) => to.serialize_bytes(value),
            Self::Seq(values) => {
                let mut seq = to.serialize_seq(Some(values.len()))?;
                values.iter().try_for_each(|value| seq.serialize_element(value))?;
                seq.end()
            }
            Self::Map(entries) => {
                let mut map = to.serialize_map(Some(entries.len()))?;
                entries.iter().try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for MessagePackValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Of;
        impl<'de> Visitor<'de> for Of {
            type Value = MessagePackValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::Nil)
            }

            fn visit_none<E>(self) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::Nil)
            }

            fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<MessagePackValue, D::Error> {
                MessagePackValue::deserialize(from)
            }

            fn visit_bool<E>(self, value: bool) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::Bool(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::Int(value))
            }

            fn visit_u64<E>(self, value: u64) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::Uint(value))
            }

            fn visit_f32<E>(self, value: f32) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::F32(value))
            }

            fn visit_f64<E>(self, value: f64) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::F64(value))
            }

            fn visit_str<E>(self, value: &str) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::Str(value.to_owned()))
            }

            fn visit_bytes<E>(self, value: &[u8]) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::Bin(value.to_vec()))
            }

            fn visit_byte_buf<E>(self, value: Vec<u8>) -> Result<MessagePackValue, E> {
                Ok(MessagePackValue::Bin(value))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<MessagePackValue, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = from.next_element()? {
                    values.push(value);
                }
                Ok(MessagePackValue::Seq(values))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<MessagePackValue, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = from.next_entry()? {
                    entries.push(entry);
                }
                Ok(MessagePackValue::Map(entries))
            }
        }
        from.deserialize_any(Of)
    }
}
