//! Statement shapes that grow with a number: nested, chained and long ones, for tests and benchmarks of planning.
//!
//! They read the table created by [`SETUP`].

use std::fmt::Write;

/// Statements that create the table.
pub const SETUP: [&str; 2] = [
    "create table t (i int, k int, s text, j jsonb)",
    "insert into t values (1, 2, 'a', '{\"a\": 1}'), (2, 3, 'b', '[1]')",
];

/// Statement shape.
#[derive(Debug, Clone, Copy)]
pub struct StatementShape {
    pub name: &'static str,
    /// Builds the statement of a given size.
    pub build: fn(usize) -> String,
}

/// Returns `open` repeated `count` times, `core`, and `close` repeated `count` times.
fn nest(open: &str, core: &str, close: &str, count: usize) -> String {
    let mut text = String::with_capacity((open.len() + close.len()) * count + core.len());
    for _ in 0..count {
        text.push_str(open);
    }
    text.push_str(core);
    for _ in 0..count {
        text.push_str(close);
    }
    text
}

/// Joins the items of the numbers from 0 to below `count` (at least one) with `separator`.
fn join_items(count: usize, separator: &str, item: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    for number in 0..count.max(1) {
        if number > 0 {
            text.push_str(separator);
        }
        text.push_str(&item(number));
    }
    text
}

fn shape(name: &'static str, build: fn(usize) -> String) -> StatementShape {
    StatementShape { name, build }
}

/// Builds a WITH list of `count` queries, each built from its number.
fn with_list(count: usize, query: impl Fn(usize) -> String, body: &str) -> String {
    format!("with {} {body}", join_items(count, ", ", |number| format!("c{number} as ({})", query(number))))
}

/// Builds a WITH chain: the first query reads the table, each other one is `next` of the previous name.
fn with_chain(count: usize, next: impl Fn(&str) -> String) -> String {
    let query = |number: usize| match number.checked_sub(1) {
        None => "select i from t".to_owned(),
        Some(before) => next(&format!("c{before}")),
    };
    with_list(count, query, &format!("select count(*) from c{}", count.max(1) - 1))
}

/// Returns all shapes.
#[must_use]
pub fn shapes() -> Vec<StatementShape> {
    [set_operations(), joins(), conditions(), with_queries(), operators(), nested_expressions(), subqueries(), lists()]
        .concat()
}

fn set_operations() -> Vec<StatementShape> {
    vec![
        shape("union", |n| join_items(n, " union ", |number| format!("select {number}"))),
        shape("union all", |n| join_items(n, " union all ", |number| format!("select {number}"))),
        shape("union all of tables", |n| join_items(n, " union all ", |number| format!("select i + {number} from t"))),
        shape("union and union all", |n| {
            join_items(n, "", |number| match number {
                0 => "select 0".to_owned(),
                _ if number % 2 == 0 => " union select 1".to_owned(),
                _ => " union all select 2".to_owned(),
            })
        }),
        shape("intersect", |n| join_items(n, " intersect ", |_| "select 1".to_owned())),
        shape("except", |n| join_items(n, " except ", |number| format!("select {number}"))),
        shape("except all", |n| join_items(n, " except all ", |number| format!("select {number}"))),
        shape("union in parentheses", |n| nest("select 1 union (", "select 2", ")", n)),
        shape("union in FROM", |n| nest("select 1 union all select * from (", "select 2", ") q", n)),
    ]
}

fn joins() -> Vec<StatementShape> {
    vec![
        shape("join", |n| {
            format!(
                "select count(*) from t{}",
                join_items(n, "", |number| format!(" join t t{number} on t{number}.i = t.i"))
            )
        }),
        shape("left join", |n| {
            let joined = join_items(n, "", |number| format!(" left join t t{number} on t{number}.i = t.k"));
            format!("select count(*) from t{joined}")
        }),
        shape("cross join of one row", |n| {
            format!("select 1 from {}", join_items(n, " cross join ", |number| format!("(select 1) q{number}")))
        }),
        shape("comma", |n| {
            format!("select 1 from {}", join_items(n, ", ", |number| format!("(select {number}) q{number}")))
        }),
        shape("natural join", |n| {
            format!("select 1 from {}", join_items(n, " natural join ", |number| format!("(select 1 as a) q{number}")))
        }),
        shape("join in parentheses", |n| format!("select 1 from {}", joined_in_parentheses(n))),
        shape("full join", |n| {
            let joined = join_items(n, "", |number| format!(" full join (select {number} as i) q{number} using (i)"));
            format!("select i from t{joined}")
        }),
        shape("lateral", |n| {
            format!(
                "select 1 from t{}",
                join_items(n, "", |number| format!(" cross join lateral (select t.i + {number}) q{number}"))
            )
        }),
    ]
}

fn conditions() -> Vec<StatementShape> {
    vec![
        shape("and", |n| {
            format!("select count(*) from t where {}", join_items(n, " and ", |number| format!("i <> {number}")))
        }),
        shape("and over a function", |n| {
            let conditions = join_items(n, " and ", |number| format!("i <> {number}"));
            format!("select count(*) from generate_series(1, 3) i where {conditions}")
        }),
        shape("or", |n| {
            format!("select count(*) from t where {}", join_items(n, " or ", |number| format!("i = {number}")))
        }),
        shape("or of two columns", |n| {
            let conditions = join_items(n, " or ", |number| format!("(i = {number} and k = {number})"));
            format!("select count(*) from t where {conditions}")
        }),
        shape("and that may fail", |n| {
            format!("select count(*) from t where {}", join_items(n, " and ", |number| format!("{number} / i >= 0")))
        }),
        shape("and in HAVING", |n| {
            let conditions = join_items(n, " and ", |number| format!("count(*) <> {number}"));
            format!("select i from t group by i having {conditions}")
        }),
        shape("and in ON", |n| {
            let conditions = join_items(n, " and ", |number| format!("t.i + u.k <> {number}"));
            format!("select count(*) from t join t u on t.i = u.i and {conditions}")
        }),
        shape("and in UPDATE", |n| {
            format!("update t set k = k where {}", join_items(n, " and ", |number| format!("i <> {number}")))
        }),
        shape("and in DELETE", |n| {
            format!("delete from t where i < 0 and {}", join_items(n, " and ", |number| format!("i <> {number}")))
        }),
        shape("and of OR", |n| {
            format!(
                "select count(*) from t where {}",
                join_items(n, " and ", |number| format!("(i <> {number} or k = 1)"))
            )
        }),
        shape("not in of expressions", |n| {
            format!("select count(*) from t where i not in ({})", join_items(n, ", ", |number| format!("k + {number}")))
        }),
        shape("in of constants", |n| {
            format!("select count(*) from t where i in ({})", join_items(n, ", ", |number| number.to_string()))
        }),
        shape("and in SELECT", |n| {
            format!("select {} from t", join_items(n, " and ", |number| format!("i <> {number}")))
        }),
        shape("like", |n| {
            format!("select count(*) from t where {}", join_items(n, " or ", |number| format!("s like '%{number}'")))
        }),
    ]
}

fn with_queries() -> Vec<StatementShape> {
    vec![
        shape("with chain", |n| with_chain(n, |before| format!("select i from {before}"))),
        shape("with chain of filters", |n| {
            with_chain(n, |before| format!("select i + 1 as i from {before} where i > 0"))
        }),
        shape("with chain of doubled filters", |n| {
            with_chain(n, |before| format!("select i - i as i from {before} where i < 9"))
        }),
        shape("with chain of groups", |n| {
            with_chain(n, |before| format!("select i, count(*) from {before} group by i"))
        }),
        shape("with read twice", |n| {
            with_chain(n, |before| format!("select a.i from {before} a, {before} b where a.i = b.i"))
        }),
        shape("with list", |n| with_list(n, |number| format!("select {number}"), "select 1")),
        shape("with list, all read", |n| {
            let read = join_items(n, " union all ", |number| format!("select * from c{number}"));
            with_list(n, |number| format!("select {number}"), &read)
        }),
        shape("with in with", |n| nest("with c as (", "select 1", ") select * from c", n)),
    ]
}

fn operators() -> Vec<StatementShape> {
    vec![
        shape("sum", |n| format!("select {} from t", join_items(n, " + ", |_| "i".to_owned()))),
        shape("sum of numeric", |n| format!("select {} from t", join_items(n, " + ", |_| "1.5".to_owned()))),
        shape("sum in WHERE", |n| format!("select 1 from t where 0 < {}", join_items(n, " + ", |_| "i".to_owned()))),
        shape("concatenation", |n| format!("select {} from t", join_items(n, " || ", |_| "s".to_owned()))),
        shape("concatenation of literals", |n| format!("select {}", join_items(n, " || ", |_| "'a'".to_owned()))),
        shape("product", |n| format!("select {}", join_items(n, " * ", |_| "1".to_owned()))),
        shape("power", |n| format!("select {}", join_items(n, " ^ ", |_| "1".to_owned()))),
        shape("bits", |n| format!("select {} from t", join_items(n, " | ", |_| "i".to_owned()))),
        shape("cast chain", |n| format!("select 1{}", "::int".repeat(n))),
        shape("json path", |n| format!("select j{} from t", " -> 'a'".repeat(n))),
        shape("is null", |n| format!("select {} from t", nest("(", "i", ") is null", n))),
        shape("date and intervals", |n| format!("select date '2020-01-01'{}", " + interval '1 day'".repeat(n))),
    ]
}

fn nested_expressions() -> Vec<StatementShape> {
    vec![
        shape("parentheses", |n| format!("select {} from t", nest("(", "i", ")", n))),
        shape("parentheses and sums", |n| format!("select {} from t", nest("(1 + ", "i", ")", n))),
        shape("not", |n| format!("select {} from t", nest("not ", "true", "", n))),
        shape("minus", |n| format!("select {} from t", nest("- ", "i", "", n))),
        shape("case", |n| format!("select {} from t", nest("case when i > 0 then ", "1", " else 0 end", n))),
        shape("case in a function", |n| {
            format!("select {} from t", nest("abs(case when i > 0 then ", "1", " else 0 end)", n))
        }),
        shape("case in a condition", |n| {
            format!("select {} from t", nest("case when ", "i > 0", " then i > 0 else false end", n))
        }),
        shape("case in a condition, both ways", |n| {
            format!("select {} from t", nest("case when ", "i > 0", " then i > 0 else i < 5 end", n))
        }),
        shape("simple case", |n| {
            format!("select {} from t", nest("case ", "i", " when 1 then 1 when 2 then 2 else 3 end", n))
        }),
        shape("nullif", |n| format!("select {} from t", nest("nullif(", "i", ", 1)", n))),
        shape("coalesce", |n| format!("select {} from t", nest("coalesce(", "i", ", 1)", n))),
        shape("coalesce of functions", |n| format!("select {} from t", nest("coalesce(abs(", "i", "), 1)", n))),
        shape("function", |n| format!("select {} from t", nest("abs(", "i", ")", n))),
        shape("text function", |n| format!("select {} from t", nest("upper(", "s", ")", n))),
        shape("cast", |n| format!("select {} from t", nest("cast(", "i", " as bigint)", n))),
        shape("json function", |n| format!("select {} from t", nest("jsonb_build_array(", "j", ")", n))),
        shape("array", |n| format!("select {}", nest("array[", "1", "]", n))),
        shape("row", |n| format!("select {} = {}", nest("row(", "1", ")", n), nest("row(", "1", ")", n))),
        shape("between", |n| {
            format!("select {} from t", nest("(i between 0 and case when ", "true", " then 1 else 0 end)", n))
        }),
        shape("and and or", |n| {
            format!("select count(*) from t where {}", nest("(i = 1 and (k = 2 or ", "s = 'a'", "))", n))
        }),
    ]
}

fn subqueries() -> Vec<StatementShape> {
    vec![
        shape("scalar subquery", |n| format!("select {}", nest("(select ", "1", ")", n))),
        shape("scalar subquery and sum", |n| format!("select {}", nest("(select 1 + ", "1", ")", n))),
        shape("scalar subquery of a table", |n| {
            format!("select {} from t", nest("(select max(i) from t where i > ", "0", ")", n))
        }),
        shape("subquery in FROM", |n| nest("select * from (", "select 1", ") q", n)),
        shape("subquery of a table in FROM", |n| {
            nest("select i + 1 as i from (", "select i from t", ") q where i > 0", n)
        }),
        shape("exists", |n| nest("select 1 where exists (", "select 1", ")", n)),
        shape("exists of a table", |n| nest("select 1 from t where exists (", "select 1", ")", n)),
        shape("correlated exists", correlated),
        shape("in", |n| nest("select 1 where 1 in (", "select 1", ")", n)),
        shape("in of a table", |n| nest("select i from t where i in (", "select 1", ")", n)),
        shape("not in", |n| nest("select i from t where i not in (", "select 1", ")", n)),
        shape("any", |n| nest("select i from t where i = any (", "select 1", ")", n)),
        shape("less than any", |n| nest("select i from t where i < any (", "select 1", ")", n)),
        shape("array of subquery", |n| format!("select {}", nest("(select cardinality(array(select ", "1", ")))", n))),
        shape("lateral in lateral", |n| nest("select t.i from (select 1 as i) t, lateral (", "select 1", ") q", n)),
    ]
}

/// Builds `((t cross join …) cross join …)`.
fn joined_in_parentheses(count: usize) -> String {
    let mut text = "(".repeat(count);
    text.push('t');
    for number in 0..count {
        let _ = write!(text, " cross join (select 1) q{number})");
    }
    text
}

/// Builds nested EXISTS subqueries, each correlated with its parent.
fn correlated(count: usize) -> String {
    let mut text = "select 1 from t t0".to_owned();
    for number in 1..=count {
        let _ = write!(text, " where exists (select 1 from t t{number}");
        if number == count {
            let _ = write!(text, " where t{number}.i = t{}.i", number - 1);
        }
    }
    // From the innermost out: a closed subquery is followed by its parent's condition.
    for number in (1..=count).rev() {
        text.push(')');
        if number > 1 {
            let _ = write!(text, " and t{}.i = t{}.i", number - 1, number - 2);
        }
    }
    text
}

fn lists() -> Vec<StatementShape> {
    vec![
        shape("select list", |n| format!("select {} from t", join_items(n, ", ", |number| format!("i + {number}")))),
        shape("windows", |n| {
            format!("select {} from t", join_items(n, ", ", |number| format!("sum(i) over (order by k + {number})")))
        }),
        shape("aggregates", |n| {
            format!("select {} from t", join_items(n, ", ", |number| format!("sum(i + {number})")))
        }),
        shape("when", |n| {
            format!(
                "select case {} end from t",
                join_items(n, " ", |number| format!("when i = {number} then {number}"))
            )
        }),
        shape("simple when", |n| {
            format!("select case i {} end from t", join_items(n, " ", |number| format!("when {number} then {number}")))
        }),
        shape("values", |n| format!("values {}", join_items(n, ", ", |number| format!("({number})")))),
        shape("order by", |n| {
            format!("select i from t order by {}", join_items(n, ", ", |number| format!("i + {number}")))
        }),
        shape("group by", |n| {
            format!("select count(*) from t group by {}", join_items(n, ", ", |number| format!("i + {number}")))
        }),
        shape("grouping sets", |n| {
            format!(
                "select count(*) from t group by grouping sets ({})",
                join_items(n, ", ", |_| "(i), (k)".to_owned())
            )
        }),
        shape("arguments", |n| format!("select coalesce({}) from t", join_items(n, ", ", |_| "i".to_owned()))),
        shape("array elements", |n| format!("select array[{}]", join_items(n, ", ", |number| number.to_string()))),
        shape("scalar subqueries", |n| {
            format!("select {}", join_items(n, ", ", |number| format!("(select max(i) from t where k > {number})")))
        }),
        shape("exists conditions", |n| {
            let conditions =
                join_items(n, " and ", |number| format!("exists (select 1 from t u where u.i = t.i + {number})"));
            format!("select count(*) from t where {conditions}")
        }),
        shape("set in UPDATE", |n| {
            format!("update t set k = {} where i < 0", join_items(n, " + ", |_| "k".to_owned()))
        }),
        shape("insert", |n| {
            format!(
                "insert into t select 0 from t where i < 0 and {}",
                join_items(n, " and ", |number| format!("k <> {number}"))
            )
        }),
        shape("explain", |n| {
            format!(
                "explain select count(*) from t where {}",
                join_items(n, " and ", |number| format!("i + k <> {number}"))
            )
        }),
    ]
}
