//! PostgreSQL's keywords, by the categories of `pg_get_keywords()`, which say where a keyword may be used as a name.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Reserved keywords, which can never be used as names.
const RESERVED_KEYWORDS: &str = "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint \
    create current_catalog current_date current_role current_time current_timestamp current_user default deferrable desc \
    distinct do else end except false fetch for foreign from grant group having in initially intersect into lateral \
    leading limit localtime localtimestamp not null offset on only or order placing primary references returning select \
    session_user some symmetric table then to trailing true union unique user using variadic when where window with";

/// Keywords that can only name a function or type.
const FUNCTION_OR_TYPE_KEYWORDS: &str = "authorization binary collation concurrently cross current_schema freeze full ilike inner is \
    isnull join left like natural notnull outer overlaps right similar tablesample verbose";

/// Keywords that can name a column but not a function or type.
const COLUMN_NAME_KEYWORDS: &str = "between bigint bit boolean char character coalesce dec decimal exists extract float greatest \
    grouping inout int integer interval least national nchar none normalize nullif numeric out overlay position precision \
    real row setof smallint substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists \
    xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// Keywords that can label a result column only after AS, in alphabetical order.
const LABEL_AFTER_AS_KEYWORDS: &str = "array as char character create day except fetch filter for from grant group having hour \
    intersect into isnull limit minute month notnull offset on order over overlaps precision returning second to union \
    varying where window with within without year";

/// Restriction on the use of a keyword as a name. Unreserved keywords have no category and are treated as ordinary
/// words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeywordCategory {
    /// Not allowed as a name.
    Reserved,
    /// Allowed as the name of a function or type.
    FunctionOrType,
    /// Allowed as the name of a column or table, not of a function or type.
    ColumnName,
}

static CATEGORIES: LazyLock<HashMap<&'static str, KeywordCategory>> = LazyLock::new(|| {
    let of = |words: &'static str, category| words.split_whitespace().map(move |word| (word, category));
    of(RESERVED_KEYWORDS, KeywordCategory::Reserved)
        .chain(of(FUNCTION_OR_TYPE_KEYWORDS, KeywordCategory::FunctionOrType))
        .chain(of(COLUMN_NAME_KEYWORDS, KeywordCategory::ColumnName))
        .collect()
});

/// Returns the category of a word in lower case; `None` if the word may name anything.
pub(crate) fn category(word: &str) -> Option<KeywordCategory> {
    CATEGORIES.get(word).copied()
}

/// Whether a word in lower case may label a result column without AS.
pub(crate) fn is_bare_label(word: &str) -> bool {
    static NEED_AS: LazyLock<Vec<&'static str>> =
        LazyLock::new(|| LABEL_AFTER_AS_KEYWORDS.split_whitespace().collect());
    NEED_AS.binary_search(&word).is_err()
}

/// Whether PostgreSQL quotes a name spelt like this word.
pub fn is_reserved(word: &str) -> bool {
    category(word).is_some()
}

/// Lists the keywords of all categories: keyword, category letter and the category's description.
pub fn all_keywords() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let of = |words: &'static str, code: &'static str, description: &'static str| {
        words.split_whitespace().map(move |word| (word, code, description))
    };
    of(RESERVED_KEYWORDS, "R", "reserved")
        .chain(of(FUNCTION_OR_TYPE_KEYWORDS, "T", "reserved (can be function or type name)"))
        .chain(of(COLUMN_NAME_KEYWORDS, "C", "unreserved (cannot be function or type name)"))
}
