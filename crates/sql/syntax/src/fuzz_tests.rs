//! Fuzz test: for any sequence of tokens, the parser returns statements or an error with a position in the text.

use types::Condition;

use super::parse;

/// Tokens with a meaning in the grammar, and some without one.
const TOKENS: &[&str] = &[
    "select",
    "from",
    "where",
    "group by",
    "order by",
    "limit",
    "with",
    "recursive",
    "as",
    "(",
    ")",
    "[",
    "]",
    ",",
    ";",
    ".",
    "::",
    ":=",
    "=>",
    "*",
    "+",
    "-",
    "=",
    "<>",
    "||",
    "->>",
    "and",
    "or",
    "not",
    "in",
    "between",
    "like",
    "escape",
    "is",
    "null",
    "distinct",
    "case",
    "when",
    "then",
    "else",
    "end",
    "cast",
    "exists",
    "any",
    "all",
    "array",
    "row",
    "values",
    "table",
    "t",
    "a",
    "\"Q\"",
    "1",
    "1.5",
    "'x'",
    "E'\\n'",
    "$1",
    "$$d$$",
    "U&'\\0061'",
    "b'1'",
    "interval",
    "timestamp",
    "with time zone",
    "numeric(10,2)",
    "int",
    "double precision",
    "char",
    "join",
    "left",
    "on",
    "using",
    "natural",
    "lateral",
    "union",
    "intersect",
    "except",
    "over",
    "partition by",
    "rows",
    "unbounded",
    "preceding",
    "filter",
    "within group",
    "grouping sets",
    "rollup",
    "insert into",
    "default",
    "on conflict",
    "do nothing",
    "create table",
    "create view",
    "alter table",
    "add column",
    "drop",
    "if exists",
    "cascade",
    "primary key",
    "references",
    "check",
    "constraint",
    "distribute on",
    "sort on",
    "cluster on",
    "copy",
    "stdin",
    "format",
    "explain",
    "analyze",
    "set",
    "to",
    "local",
    "time zone",
    "show",
    "reset",
    "begin",
    "isolation level",
    "prepare",
    "execute",
    "declare",
    "cursor for",
    "fetch",
    "forward",
    "comment on",
    "is",
    "role",
    "password",
    "extract",
    "substring",
    "trim",
    "position",
    "overlay",
    "/* c */",
    "-- c\n",
    "\n",
    "é",
    "{",
    "\\",
    "'",
    "\"",
    "$tag$",
    "/*",
];

/// Pseudo-random number generator with a fixed seed, so that each run tests the same texts.
struct SeededRandom(u64);

impl SeededRandom {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit as u64).unwrap()
    }
}

fn check(sql: &str) {
    match parse(sql) {
        Ok(statements) => {
            for statement in statements {
                let from_offset: String =
                    sql.chars().skip(statement.offset).take(statement.text.chars().count()).collect();
                assert_eq!(statement.text, from_offset, "{sql:?}");
            }
        }
        Err(error) => {
            let limit = u32::try_from(sql.chars().count()).unwrap() + 1;
            assert!(error.position.is_none_or(|position| (1..=limit).contains(&position)), "{sql:?}: {error:?}");
            assert_ne!(error.condition, Condition::InternalError, "{sql:?}: {error:?}");
        }
    }
}

#[test]
fn soups_of_tokens() {
    let mut chance = SeededRandom(7);
    for _ in 0..30_000 {
        let count = 1 + chance.below(25);
        let soup: Vec<&str> = (0..count).map(|_| TOKENS[chance.below(TOKENS.len())]).collect();
        check(&soup.join(" "));
    }
}

#[test]
fn statements_with_pieces_lost_doubled_or_exchanged() {
    const WHOLE: &[&str] = &[
        "WITH a AS ( SELECT x , sum ( y ) OVER ( PARTITION BY z ORDER BY 1 ) FROM t JOIN u USING ( k ) ) SELECT * FROM a WHERE \
         x IN ( SELECT 1 ) AND NOT ( b BETWEEN 1 AND 2 ) ORDER BY 1 LIMIT $1",
        "CREATE TABLE s . t ( a int PRIMARY KEY , b numeric ( 10 , 2 ) DEFAULT 1 + 2 CHECK ( b > 0 ) , UNIQUE ( a , b ) ) \
         DISTRIBUTE ON ( a ) SORT ON ( b DESC )",
        "COPY t ( a , b ) FROM '/x' WITH ( FORMAT csv , HEADER , NULL 'x' ) WHERE a > 1",
        "WITH w AS ( TABLE u ) UPDATE ONLY t AS x SET a = DEFAULT , ( b , c ) = ROW ( 1 , 2 ) FROM w WHERE x . a = w . b RETURNING * , old . a",
        "DELETE FROM t * x USING u , v WHERE x . a IN ( SELECT b FROM u ) RETURNING WITH ( OLD AS o ) o . a",
        "MERGE INTO t USING ( TABLE u ) s ON t . a = s . a WHEN MATCHED AND b THEN UPDATE SET a = 1 WHEN NOT MATCHED THEN INSERT ( a ) VALUES ( DEFAULT )",
        "INSERT INTO t VALUES ( 1 ) ON CONFLICT ( a ) DO UPDATE SET b = excluded . b WHERE t . a > 1 RETURNING a",
        "CREATE UNIQUE INDEX IF NOT EXISTS i ON t USING btree ( a ASC , b )",
        "CREATE TABLE t ( a int PRIMARY KEY NOT ENFORCED , UNIQUE ( a ) ENFORCED ) WITH ( storage = row )",
        "SELECT a FROM t , u FOR NO KEY UPDATE OF t , u SKIP LOCKED LIMIT 1",
        "INSERT INTO t ( a ) VALUES ( 1 , DEFAULT ) , ( CASE WHEN a THEN 'x' ELSE ARRAY [ 1 ] END ) ON CONFLICT DO NOTHING",
        "ALTER TABLE t ALTER COLUMN a TYPE varchar ( 3 ) USING a :: text , ADD CONSTRAINT k FOREIGN KEY ( a ) REFERENCES u",
        "EXPLAIN ( ANALYZE , FORMAT json ) SELECT EXTRACT ( year FROM now ( ) ) AT TIME ZONE 'UTC' , TRIM ( BOTH FROM 'x' )",
    ];
    let mut chance = SeededRandom(11);
    for _ in 0..20_000 {
        let mut pieces: Vec<&str> = WHOLE[chance.below(WHOLE.len())].split_whitespace().collect();
        for _ in 0..=chance.below(3) {
            let (one, other) = (chance.below(pieces.len()), chance.below(pieces.len()));
            match chance.below(4) {
                0 if pieces.len() > 1 => drop(pieces.remove(one)),
                1 => pieces.insert(one, TOKENS[chance.below(TOKENS.len())]),
                2 => pieces.swap(one, other),
                _ => pieces.truncate(one.max(1)),
            }
        }
        check(&pieces.join(" "));
    }
}

#[test]
fn soups_of_bytes() {
    let mut chance = SeededRandom(13);
    for _ in 0..30_000 {
        let bytes: Vec<u8> = (0..chance.below(40)).map(|_| u8::try_from(chance.below(256)).unwrap()).collect();
        check(&String::from_utf8_lossy(&bytes));
    }
}
