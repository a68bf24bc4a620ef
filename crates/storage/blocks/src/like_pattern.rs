//! LIKE patterns without `_`, which can be matched on bytes.

use serde::{Deserialize, Serialize};

/// A LIKE pattern of the form `'prefix%part%part%suffix'`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct LikePattern {
    /// Prefix of a matching string.
    pub prefix: Vec<u8>,
    /// Substrings between prefix and suffix, in order and not overlapping.
    pub parts: Vec<Vec<u8>>,
    /// Suffix of a matching string.
    pub suffix: Vec<u8>,
}

impl LikePattern {
    /// Parses a LIKE pattern with the escape character `\`. Returns `None` if it contains `_`, no `%`, or an escape of
    /// another character than `%`, `_` and `\`.
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

    /// Whether the pattern is only a prefix.
    pub fn is_prefix(&self) -> bool {
        self.parts.is_empty() && self.suffix.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(prefix: &str, parts: &[&str], suffix: &str) -> LikePattern {
        let bytes = |text: &str| text.as_bytes().to_vec();
        LikePattern {
            prefix: bytes(prefix),
            parts: parts.iter().map(|part| bytes(part)).collect(),
            suffix: bytes(suffix),
        }
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
            assert_eq!(LikePattern::parse(text), Some(expected), "{text}");
        }
        for text in ["", "abc", "a_%", "a%\\", "\\a%"] {
            assert_eq!(LikePattern::parse(text), None, "{text}");
        }
    }
}
