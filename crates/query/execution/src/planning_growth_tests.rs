//! Checks how the work of planning grows with the size of a statement. Work is measured in allocated bytes, which do
//! not depend on the machine.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::path::Path;

use bench::statement_shapes::{SETUP, shapes};
use binder::StatementPlan;
use operators::{Threading, plan_operators};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use types::allocation_counters::{count_allocation, count_deallocation, thread_allocated_bytes};
use types::stack_limit::with_planning_stack;
use types::{Condition, SqlError, SqlResult};

use crate::sql_fixture::Sql;

/// Limits on the growth of allocated bytes when the size doubles, for linear, quadratic and cubic planning.
const GROWTH_MAX: [f64; 3] = [2.5, 4.5, 9.0];

/// Tolerance of the limits: hash tables allocate slightly different amounts from run to run.
const MARGIN: f64 = 1.1;

/// Sizes are doubled from the first up to the last, as long as planning allocates less than [`BYTES_MAX`]: constant
/// costs become small beside those that grow.
const SIZE_FIRST: usize = 12;
const SIZE_MAX: usize = 192;
const BYTES_MAX: u64 = 64 << 20;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[expect(unsafe_code, reason = "only an allocator sees what is allocated")]
// SAFETY: the system's allocator does all the work; the counters belong to the thread and need no allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: the caller upholds the contract of this allocator, which is that of the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocation(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count_deallocation(layout.size());
        count_allocation(size);
        // SAFETY: as above; the block comes from the system's allocator.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count_deallocation(layout.size());
        // SAFETY: as above; the block comes from the system's allocator.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Plans a query down to its operators and returns the bytes allocated on the way.
fn planning_bytes(runtime: &Runtime, sql: &Sql, text: &str) -> SqlResult<u64> {
    let before = thread_allocated_bytes();
    with_planning_stack(|| {
        let StatementPlan::Query(query) = sql.plan(text)? else { panic!("{text} is a query") };
        let stop = CancellationToken::new();
        runtime.block_on(async {
            let optimized = query.optimized(&stop).await?;
            plan_operators(&query, &optimized, Threading::Multiple, &stop).await
        })
    })?;
    Ok(thread_allocated_bytes() - before)
}

/// Reads the shapes that are known to grow faster than linearly, with their exponents.
fn known_powers() -> HashMap<String, usize> {
    let lines = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/planning_growth_tests.txt"));
    let lines = lines.expect("the file lies beside the test");
    let lines = lines.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (power, name) = line.split_once(' ').expect("a power and a name");
            (name.to_owned(), power.parse().expect("a number"))
        })
        .collect()
}

#[test]
fn the_work_of_planning_grows_as_it_is_known_to() {
    let (runtime, sql, mut powers) = (Runtime::new().expect("threads can be started"), Sql::new(), known_powers());
    for text in SETUP {
        runtime.block_on(sql.run(text)).expect("the table is new");
    }
    let mut wrong = Vec::new();
    for shape in shapes() {
        if !["select", "with"].iter().any(|word| (shape.build)(SIZE_FIRST).starts_with(word)) {
            continue;
        }
        // Some statements are refused, from some size on or always.
        let mut bytes = |size: usize| match planning_bytes(&runtime, &sql, &(shape.build)(size)) {
            Ok(bytes) => Some(bytes),
            Err(SqlError { condition: Condition::StatementTooComplex | Condition::FeatureNotSupported, .. }) => None,
            Err(error) => {
                wrong.push(format!("a {} of {size}: {error}", shape.name));
                None
            }
        };
        let (mut size, mut before, mut growth) = (SIZE_FIRST, bytes(SIZE_FIRST), None);
        while let Some(half) = before.filter(|half| *half < BYTES_MAX && size < SIZE_MAX) {
            size *= 2;
            before = bytes(size);
            growth = before.map(|whole| whole as f64 / half as f64).or(growth);
        }
        let Some(growth) = growth else { continue };
        let known = powers.remove(shape.name).unwrap_or(1);
        let most = GROWTH_MAX[known - 1] * MARGIN;
        let least = known.checked_sub(2).map_or(0.0, |lower| GROWTH_MAX[lower] / MARGIN);
        if growth < least || most < growth {
            let power = GROWTH_MAX.iter().position(|most| growth <= *most).map_or(usize::MAX, |at| at + 1);
            wrong.push(format!("{power} {} (at {size} {growth:.2} times as many bytes)", shape.name));
        }
    }
    assert!(wrong.is_empty() && powers.is_empty(), "{}\nnot asked: {powers:?}", wrong.join("\n"));
}
