//! Patterns of LIKE that are told by bytes alone: those without `_`.

use serde::{Deserialize, Serialize};

/// What a string must be like: `'prefix%part%part%suffix'`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Pattern {
    /// How it begins.
    pub prefix: Vec<u8>,
    /// What it holds behind that, one behind the other.
    pub parts: Vec<Vec<u8>>,
    /// How it ends, behind all of these.
    pub suffix: Vec<u8>,
}

impl Pattern {
    /// The pattern of a text whose escape character is `\`; `None` where it has a `_`, no `%`, or escapes what needs no escape.
    pub fn parse(text: &str) -> Option<Self> {
        let mut pieces = vec![Vec::new()];
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            match byte {
                b'%' => pieces.push(Vec::new()),
                b'_' => return None,
                _ => {
                    let byte = if byte == b'\\' { bytes.next().filter(|byte| b"%_\\".contains(byte))? } else { byte };
                    pieces.last_mut()?.push(byte);
                }
            }
        }
        let suffix = pieces.pop()?;
        let mut pieces = pieces.into_iter();
        let prefix = pieces.next()?;
        Some(Self { prefix, parts: pieces.filter(|part| !part.is_empty()).collect(), suffix })
    }

    /// Whether it says no more than how a string begins.
    pub fn is_prefix(&self) -> bool {
        self.parts.is_empty() && self.suffix.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(prefix: &str, parts: &[&str], suffix: &str) -> Pattern {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Pattern { prefix: bytes(prefix), parts: parts.iter().map(|part| bytes(part)).collect(), suffix: bytes(suffix) }
    }

    #[test]
    fn a_text_is_cut_where_anything_may_be() {
        for (text, expected) in [
            ("%", pattern("", &[], "")),
            ("a%", pattern("a", &[], "")),
            ("%b", pattern("", &[], "b")),
            ("%%special%%requests%", pattern("", &["special", "requests"], "")),
            ("a%b%ü%d", pattern("a", &["b", "ü"], "d")),
            ("100\\%%\\_%\\\\", pattern("100%", &["_"], "\\")),
        ] {
            assert_eq!(Pattern::parse(text), Some(expected), "{text}");
        }
        for text in ["", "abc", "a_%", "a%\\", "\\a%"] {
            assert_eq!(Pattern::parse(text), None, "{text}");
        }
    }
}
