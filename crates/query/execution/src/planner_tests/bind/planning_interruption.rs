//! Tests of interrupted planning.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use types::Condition;
use types::interrupt::run_interruptible;
use types::planning_memory::PlanningMemory;

use super::fixture::Fixture;

#[test]
fn it_ends_on_the_way_down_to_the_innermost_relation() {
    let fixture = Fixture::small();
    // DataFusion's planner visits a whole relation before planning it, which is costly with many levels. The error in
    // this statement is found only on the way up.
    let parsed = fixture.parsed("SELECT nosuch(a) FROM (SELECT a FROM t) AS s");
    let condition = || fixture.parsed_query(&parsed).expect_err("there is no such function").condition;
    assert_eq!(condition(), Condition::UndefinedFunction);
    let memory = Arc::new(PlanningMemory::new(1 << 30));
    assert_eq!(run_interruptible(Arc::new(AtomicBool::new(true)), &memory, condition), Condition::QueryCanceled);
}
