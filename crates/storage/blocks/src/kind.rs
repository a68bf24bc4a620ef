//! What the values of a block are.

/// The kind of a block's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Truth values, as 0 and 1.
    Boolean,
    /// 32-bit integers: dates too.
    Int32,
    /// 64-bit integers: timestamps and decimals of up to 18 digits too.
    Int64,
    /// 128-bit integers: longer decimals.
    Int128,
    /// Single precision.
    Float32,
    /// Double precision.
    Float64,
    /// Positions in a dictionary.
    Code,
    /// Strings of bytes.
    Text,
}

impl Kind {
    const ALL: [Self; 8] =
        [Self::Boolean, Self::Int32, Self::Int64, Self::Int128, Self::Float32, Self::Float64, Self::Code, Self::Text];

    /// The byte it is stored as.
    pub(crate) fn tag(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_tag(tag: u8) -> Option<Self> {
        Self::ALL.get(usize::from(tag)).copied()
    }

    /// Whether its values are whole numbers.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != Self::Text
    }

    /// Whether its values are floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }
}
