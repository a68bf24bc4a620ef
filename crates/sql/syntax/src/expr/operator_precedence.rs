//! Operators: their precedence and their variants in `sqlparser`'s tree.

use sqlparser::ast::{BinaryOperator, UnaryOperator};

/// PostgreSQL's operator precedence, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    None,
    Or,
    And,
    Not,
    /// IS, ISNULL, NOTNULL.
    Is,
    /// `<`, `>`, `=`, `<=`, `>=`, `<>`.
    Comparison,
    /// BETWEEN, IN, LIKE, ILIKE, SIMILAR.
    Match,
    /// All other operators.
    Other,
    /// `+`, `-`.
    Sum,
    /// `*`, `/`, `%`.
    Product,
    /// `^`.
    Power,
    /// AT TIME ZONE.
    At,
    Collate,
    /// Unary plus and minus.
    Sign,
}

pub(super) fn precedence(operator: &str) -> Precedence {
    match operator {
        "<" | ">" | "=" | "<=" | ">=" | "<>" => Precedence::Comparison,
        "+" | "-" => Precedence::Sum,
        "*" | "/" | "%" => Precedence::Product,
        "^" => Precedence::Power,
        _ => Precedence::Other,
    }
}

pub(super) fn binary_operator(operator: &str) -> BinaryOperator {
    use BinaryOperator as B;
    match operator {
        "+" => B::Plus,
        "-" => B::Minus,
        "*" => B::Multiply,
        "/" => B::Divide,
        "%" => B::Modulo,
        "^" => B::PGExp,
        "||" => B::StringConcat,
        "&" => B::BitwiseAnd,
        "|" => B::BitwiseOr,
        "#" => B::PGBitwiseXor,
        "<<" => B::PGBitwiseShiftLeft,
        ">>" => B::PGBitwiseShiftRight,
        "=" => B::Eq,
        "<>" => B::NotEq,
        "<" => B::Lt,
        "<=" => B::LtEq,
        ">" => B::Gt,
        ">=" => B::GtEq,
        "~" => B::PGRegexMatch,
        "~*" => B::PGRegexIMatch,
        "!~" => B::PGRegexNotMatch,
        "!~*" => B::PGRegexNotIMatch,
        "~~" => B::PGLikeMatch,
        "~~*" => B::PGILikeMatch,
        "!~~" => B::PGNotLikeMatch,
        "!~~*" => B::PGNotILikeMatch,
        "^@" => B::PGStartsWith,
        "&&" => B::PGOverlap,
        "->" => B::Arrow,
        "->>" => B::LongArrow,
        "#>" => B::HashArrow,
        "#>>" => B::HashLongArrow,
        "@>" => B::AtArrow,
        "<@" => B::ArrowAt,
        "?" => B::Question,
        "?&" => B::QuestionAnd,
        "?|" => B::QuestionPipe,
        "#-" => B::HashMinus,
        other => B::Custom(other.to_owned()),
    }
}

/// Returns the prefix operator with this name; `None` if there is none.
pub(super) fn prefix_operator(operator: &str) -> Option<UnaryOperator> {
    Some(match operator {
        "+" => UnaryOperator::Plus,
        "-" => UnaryOperator::Minus,
        "~" => UnaryOperator::BitwiseNot,
        "@" => UnaryOperator::PGAbs,
        "|/" => UnaryOperator::PGSquareRoot,
        "||/" => UnaryOperator::PGCubeRoot,
        _ => return None,
    })
}
