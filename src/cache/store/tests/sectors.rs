//! Sectors that can't be read where a span says what it is.

use super::machine::{DISK, Machine};
use super::*;
use crate::cache::tier::SpanTier;
use crate::device::read_blocking;

#[tokio::test]
async fn a_sector_of_either_header_that_can_t_be_read_costs_nothing_and_is_healed() {
    let machine = Machine::with(&[SpanTier::Capacity]);
    let running = machine.start().await;
    store(&running.cache, &key(1), b"kept").unwrap();
    running.cache.shutdown().await;
    running.kill();
    let disk = &machine.disks[0].1;
    let (stripe, last) = (1 << 20, DISK - (1 << 20));
    let headers = [8192, last, stripe, last - 4096];
    for at in headers
        .into_iter()
        .chain([12_288, stripe - 4096, DISK - 4096])
    {
        disk.spoil(at..at + 4096);
        let running = machine.start().await;
        let hit = running.cache.read(&key(1)).await.unwrap();
        assert_eq!(body(&hit), b"kept", "{at}");
        running.cache.shutdown().await;
        running.kill();
    }
    let device = disk.device();
    for at in &headers[..2] {
        let at = u64::try_from(*at).unwrap();
        assert!(read_blocking(&device, at, 4096).is_ok(), "{at} is healed");
    }
}
