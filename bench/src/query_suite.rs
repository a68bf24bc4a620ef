//! TPC-H and TPC-DS as data: tables, and queries with the specification's validation parameters.

use std::fmt;

/// Benchmark suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Suite {
    Tpch,
    Tpcds,
}

impl Suite {
    /// Returns the `CREATE TABLE` statements of all tables, separated by `;`.
    #[must_use]
    pub fn create_table_sql(self) -> &'static str {
        match self {
            Suite::Tpch => include_str!("../schema/tpch.sql"),
            Suite::Tpcds => include_str!("../schema/tpcds.sql"),
        }
    }

    /// Returns the `ALTER TABLE` statements that distribute the tables by their join keys, separated by `;`.
    #[must_use]
    pub fn distribute_sql(self) -> &'static str {
        match self {
            Suite::Tpch => include_str!("../schema/tpch_distribution.sql"),
            Suite::Tpcds => include_str!("../schema/tpcds_distribution.sql"),
        }
    }

    /// Returns the table names in the order of the schema.
    pub fn tables(self) -> impl Iterator<Item = &'static str> {
        self.create_table_sql().lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.strip_suffix(" ("))
    }

    /// Returns the queries; query 1 is at index 0.
    #[must_use]
    pub fn queries(self) -> &'static [&'static str] {
        match self {
            Suite::Tpch => TPCH_QUERIES,
            Suite::Tpcds => TPCDS_QUERIES,
        }
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Suite::Tpch => "tpch",
            Suite::Tpcds => "tpcds",
        })
    }
}

const TPCH_QUERIES: &[&str] = &[
    include_str!("../queries/tpch/q01.sql"),
    include_str!("../queries/tpch/q02.sql"),
    include_str!("../queries/tpch/q03.sql"),
    include_str!("../queries/tpch/q04.sql"),
    include_str!("../queries/tpch/q05.sql"),
    include_str!("../queries/tpch/q06.sql"),
    include_str!("../queries/tpch/q07.sql"),
    include_str!("../queries/tpch/q08.sql"),
    include_str!("../queries/tpch/q09.sql"),
    include_str!("../queries/tpch/q10.sql"),
    include_str!("../queries/tpch/q11.sql"),
    include_str!("../queries/tpch/q12.sql"),
    include_str!("../queries/tpch/q13.sql"),
    include_str!("../queries/tpch/q14.sql"),
    include_str!("../queries/tpch/q15.sql"),
    include_str!("../queries/tpch/q16.sql"),
    include_str!("../queries/tpch/q17.sql"),
    include_str!("../queries/tpch/q18.sql"),
    include_str!("../queries/tpch/q19.sql"),
    include_str!("../queries/tpch/q20.sql"),
    include_str!("../queries/tpch/q21.sql"),
    include_str!("../queries/tpch/q22.sql"),
];

const TPCDS_QUERIES: &[&str] = &[
    include_str!("../queries/tpcds/q01.sql"),
    include_str!("../queries/tpcds/q02.sql"),
    include_str!("../queries/tpcds/q03.sql"),
    include_str!("../queries/tpcds/q04.sql"),
    include_str!("../queries/tpcds/q05.sql"),
    include_str!("../queries/tpcds/q06.sql"),
    include_str!("../queries/tpcds/q07.sql"),
    include_str!("../queries/tpcds/q08.sql"),
    include_str!("../queries/tpcds/q09.sql"),
    include_str!("../queries/tpcds/q10.sql"),
    include_str!("../queries/tpcds/q11.sql"),
    include_str!("../queries/tpcds/q12.sql"),
    include_str!("../queries/tpcds/q13.sql"),
    include_str!("../queries/tpcds/q14.sql"),
    include_str!("../queries/tpcds/q15.sql"),
    include_str!("../queries/tpcds/q16.sql"),
    include_str!("../queries/tpcds/q17.sql"),
    include_str!("../queries/tpcds/q18.sql"),
    include_str!("../queries/tpcds/q19.sql"),
    include_str!("../queries/tpcds/q20.sql"),
    include_str!("../queries/tpcds/q21.sql"),
    include_str!("../queries/tpcds/q22.sql"),
    include_str!("../queries/tpcds/q23.sql"),
    include_str!("../queries/tpcds/q24.sql"),
    include_str!("../queries/tpcds/q25.sql"),
    include_str!("../queries/tpcds/q26.sql"),
    include_str!("../queries/tpcds/q27.sql"),
    include_str!("../queries/tpcds/q28.sql"),
    include_str!("../queries/tpcds/q29.sql"),
    include_str!("../queries/tpcds/q30.sql"),
    include_str!("../queries/tpcds/q31.sql"),
    include_str!("../queries/tpcds/q32.sql"),
    include_str!("../queries/tpcds/q33.sql"),
    include_str!("../queries/tpcds/q34.sql"),
    include_str!("../queries/tpcds/q35.sql"),
    include_str!("../queries/tpcds/q36.sql"),
    include_str!("../queries/tpcds/q37.sql"),
    include_str!("../queries/tpcds/q38.sql"),
    include_str!("../queries/tpcds/q39.sql"),
    include_str!("../queries/tpcds/q40.sql"),
    include_str!("../queries/tpcds/q41.sql"),
    include_str!("../queries/tpcds/q42.sql"),
    include_str!("../queries/tpcds/q43.sql"),
    include_str!("../queries/tpcds/q44.sql"),
    include_str!("../queries/tpcds/q45.sql"),
    include_str!("../queries/tpcds/q46.sql"),
    include_str!("../queries/tpcds/q47.sql"),
    include_str!("../queries/tpcds/q48.sql"),
    include_str!("../queries/tpcds/q49.sql"),
    include_str!("../queries/tpcds/q50.sql"),
    include_str!("../queries/tpcds/q51.sql"),
    include_str!("../queries/tpcds/q52.sql"),
    include_str!("../queries/tpcds/q53.sql"),
    include_str!("../queries/tpcds/q54.sql"),
    include_str!("../queries/tpcds/q55.sql"),
    include_str!("../queries/tpcds/q56.sql"),
    include_str!("../queries/tpcds/q57.sql"),
    include_str!("../queries/tpcds/q58.sql"),
    include_str!("../queries/tpcds/q59.sql"),
    include_str!("../queries/tpcds/q60.sql"),
    include_str!("../queries/tpcds/q61.sql"),
    include_str!("../queries/tpcds/q62.sql"),
    include_str!("../queries/tpcds/q63.sql"),
    include_str!("../queries/tpcds/q64.sql"),
    include_str!("../queries/tpcds/q65.sql"),
    include_str!("../queries/tpcds/q66.sql"),
    include_str!("../queries/tpcds/q67.sql"),
    include_str!("../queries/tpcds/q68.sql"),
    include_str!("../queries/tpcds/q69.sql"),
    include_str!("../queries/tpcds/q70.sql"),
    include_str!("../queries/tpcds/q71.sql"),
    include_str!("../queries/tpcds/q72.sql"),
    include_str!("../queries/tpcds/q73.sql"),
    include_str!("../queries/tpcds/q74.sql"),
    include_str!("../queries/tpcds/q75.sql"),
    include_str!("../queries/tpcds/q76.sql"),
    include_str!("../queries/tpcds/q77.sql"),
    include_str!("../queries/tpcds/q78.sql"),
    include_str!("../queries/tpcds/q79.sql"),
    include_str!("../queries/tpcds/q80.sql"),
    include_str!("../queries/tpcds/q81.sql"),
    include_str!("../queries/tpcds/q82.sql"),
    include_str!("../queries/tpcds/q83.sql"),
    include_str!("../queries/tpcds/q84.sql"),
    include_str!("../queries/tpcds/q85.sql"),
    include_str!("../queries/tpcds/q86.sql"),
    include_str!("../queries/tpcds/q87.sql"),
    include_str!("../queries/tpcds/q88.sql"),
    include_str!("../queries/tpcds/q89.sql"),
    include_str!("../queries/tpcds/q90.sql"),
    include_str!("../queries/tpcds/q91.sql"),
    include_str!("../queries/tpcds/q92.sql"),
    include_str!("../queries/tpcds/q93.sql"),
    include_str!("../queries/tpcds/q94.sql"),
    include_str!("../queries/tpcds/q95.sql"),
    include_str!("../queries/tpcds/q96.sql"),
    include_str!("../queries/tpcds/q97.sql"),
    include_str!("../queries/tpcds/q98.sql"),
    include_str!("../queries/tpcds/q99.sql"),
];
