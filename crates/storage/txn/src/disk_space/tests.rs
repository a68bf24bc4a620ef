use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use types::{Disk, SystemClock};

use super::*;
use crate::fixtures::{begin, commit, fresh, table};

#[derive(Debug)]
struct SmallDisk(AtomicU64);

impl Disk for SmallDisk {
    fn free_bytes(&self) -> io::Result<u64> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

#[test]
fn what_takes_away_may_use_most_of_the_reserve() {
    let adds = |bytes| SpaceDemand { bytes, frees_space: false };
    let frees = |bytes| SpaceDemand { bytes, frees_space: true };
    assert!(has_space_for(110, 100, adds(10)) && !has_space_for(110, 100, adds(11)));
    assert!(has_space_for(35, 100, frees(10)) && !has_space_for(35, 100, frees(11)));
    assert!(!has_space_for(u64::MAX - 1, u64::MAX, adds(u64::MAX)));
}

#[test]
fn commits_between_two_looks_share_what_was_seen() {
    let room = DiskSpace::default();
    let wanted = SpaceDemand { bytes: 40, frees_space: false };
    room.reserve_space(wanted, &SystemClock::new()).expect("without a reserve there is no limit");
    let disk = Arc::new(SmallDisk(AtomicU64::new(200)));
    room.reserve.set(DiskReserve { disk, bytes: 100 }).expect("the first");
    room.reserve_space(wanted, &Still).expect("60 are left");
    room.reserve_space(wanted, &Still).expect("20 are left");
    assert!(matches!(room.reserve_space(wanted, &Still), Err(Error::DiskFull { free: 120, reserve_bytes: 100 })));
}

/// Clock that never advances.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now_us(&self) -> i64 {
        0
    }

    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_full_disk_refuses_what_adds_and_lets_go_what_takes_away() {
    let transactions = fresh();
    commit(&transactions, vec![Change::PutTable(Arc::new(table(20_000, "t")))]).await;
    let disk = Arc::new(SmallDisk(AtomicU64::new(1 << 30)));
    transactions.set_disk_reserve(DiskReserve { disk: Arc::clone(&disk) as _, bytes: 64 << 20 });
    commit(&transactions, vec![Change::PutTable(Arc::new(table(20_001, "u")))]).await;
    disk.0.store(60 << 20, Ordering::Relaxed);
    SystemClock::new().sleep(2 * MEASURE_INTERVAL).await;
    let mut refused = begin(&transactions);
    refused.stage(vec![Change::PutTable(Arc::new(table(20_002, "v")))]).unwrap();
    assert!(matches!(refused.commit().await, Err(Error::DiskFull { .. })));
    assert!(!transactions.is_poisoned() && transactions.current().state.table(Oid(20_002)).is_none());
    assert!(transactions.check_disk_space().is_err());
    commit(&transactions, vec![Change::DropTable(Oid(20_001))]).await;
    disk.0.store(1 << 30, Ordering::Relaxed);
    SystemClock::new().sleep(2 * MEASURE_INTERVAL).await;
    commit(&transactions, vec![Change::PutTable(Arc::new(table(20_002, "v")))]).await;
}
