//! Whose a device is, and that nothing is written to what is not ours.

use super::*;
use crate::device::{DeviceKind, MemDisk, OpenRequest, open as open_device};

const SIZE: usize = 40 << 20;

fn plugged(disk: &Arc<MemDisk>) -> OpenedDevice {
    OpenedDevice {
        device: Arc::new(disk.device()),
        kind: DeviceKind::Block,
        path: PathBuf::from("/dev/test"),
        rotational: Some(true),
    }
}

fn open_disk(disk: &Arc<MemDisk>, intent: Intent) -> Result<Span, SpanError> {
    open(&plugged(disk), &SpanOptions::at("/dev/test"), intent)
}

fn marked(offset: usize, magic: &[u8]) -> Arc<MemDisk> {
    let disk = MemDisk::blank(SIZE);
    disk.edit(|bytes| bytes[offset..offset + magic.len()].copy_from_slice(magic));
    disk
}

fn snapshot(disk: &MemDisk) -> Vec<u8> {
    let mut copy = Vec::new();
    disk.edit(|bytes| copy = bytes.to_vec());
    copy
}

#[test]
fn a_blank_device_is_formatted_once_and_then_kept() {
    let disk = MemDisk::blank(SIZE);
    let made = open_disk(&disk, Intent::Use).unwrap();
    assert!(made.formatted);
    assert_eq!(made.tier(), SpanTier::Capacity);
    let again = open_disk(&disk, Intent::Use).unwrap();
    assert!(!again.formatted);
    assert_eq!(again.content.uuid, made.content.uuid);
    assert!(snapshot(&disk)[..8192].iter().all(|byte| *byte == 0));
}

#[test]
fn a_foreign_device_is_refused_by_name_with_the_cure_and_untouched() {
    let known = signature::MARKS.iter();
    let known = known.map(|mark| (usize::try_from(mark.offset).unwrap(), mark.magic, mark.name));
    let others = [(1080, &b"\x53\xef"[..], "ext2"), (510, b"\x55\xaa", "MBR")];
    for (offset, magic, name) in known.chain(others) {
        let disk = marked(offset, magic);
        let before = snapshot(&disk);
        for intent in [Intent::Use, Intent::Clear, Intent::Init] {
            let error = open_disk(&disk, intent).err().unwrap().to_string();
            assert!(error.contains(name), "{error}");
            assert!(error.contains("traffic_ctl storage init /dev/test --force"));
        }
        assert!(snapshot(&disk) == before, "{name}: something was written");
    }
}

#[test]
fn what_is_neither_blank_nor_known_is_refused_untouched() {
    for offset in [20_000, SIZE - 7] {
        let disk = marked(offset, b"?");
        let before = snapshot(&disk);
        let error = open_disk(&disk, Intent::Use).err().unwrap();
        assert!(matches!(error, SpanError::Unknown { .. }), "{error}");
        assert!(snapshot(&disk) == before);
    }
}

#[test]
fn our_span_with_a_file_system_made_over_it_is_refused() {
    let disk = MemDisk::blank(SIZE);
    open_disk(&disk, Intent::Use).unwrap();
    disk.edit(|bytes| bytes[1080..1082].copy_from_slice(b"\x53\xef"));
    let error = open_disk(&disk, Intent::Use).err().unwrap();
    assert!(matches!(error, SpanError::Foreign { .. }), "{error}");
}

#[test]
fn force_takes_a_device_over_and_leaves_no_mark_of_the_old() {
    let disk = marked(1080, b"\x53\xef");
    let taken = open_disk(&disk, Intent::InitForce).unwrap();
    assert!(taken.formatted);
    let again = open_disk(&disk, Intent::Use).unwrap();
    assert_eq!(again.content.uuid, taken.content.uuid);
}

#[test]
fn either_header_is_enough_and_heals_the_other() {
    for damaged in [8192, SIZE - (1 << 20)] {
        let disk = MemDisk::blank(SIZE);
        let made = open_disk(&disk, Intent::Use).unwrap();
        disk.edit(|bytes| bytes[damaged..damaged + 4096].fill(0xa5));
        assert_eq!(
            open_disk(&disk, Intent::Use).unwrap().content.uuid,
            made.content.uuid
        );
        let other = SIZE - (1 << 20) + 8192 - damaged;
        disk.edit(|bytes| bytes[other..other + 4096].fill(0x5a));
        assert_eq!(
            open_disk(&disk, Intent::Use).unwrap().content.uuid,
            made.content.uuid
        );
    }
}

#[test]
fn what_can_t_be_read_is_neither_blank_nor_lost_and_stays_as_it_is() {
    let last = SIZE - (1 << 20);
    let kept = MemDisk::blank(SIZE);
    let made = open_disk(&kept, Intent::Use).unwrap();
    let slot = made.content.stripes[0];
    let [stripe, length] = [slot.offset, slot.length].map(|n| usize::try_from(n).unwrap());
    for (is_ours, bad) in [
        (false, vec![8192]),
        (false, vec![SIZE - 4096]),
        (false, vec![500 << 10]),
        (true, vec![0]),
        (true, vec![4096]),
        (true, vec![8192, last]),
        (true, vec![stripe, stripe + length - 4096]),
    ] {
        let disk = MemDisk::blank(SIZE);
        if is_ours {
            let whole = snapshot(&kept);
            disk.edit(|bytes| bytes.copy_from_slice(&whole));
        }
        for at in &bad {
            disk.spoil(*at..*at + 4096);
        }
        let before = snapshot(&disk);
        let error = open_disk(&disk, Intent::Use).err().unwrap();
        assert!(
            matches!(error, SpanError::Device { .. }),
            "{bad:?}: {error}"
        );
        assert!(snapshot(&disk) == before, "{bad:?}: something was written");
    }
}

#[test]
fn clear_and_init_give_new_stripes() {
    let disk = MemDisk::blank(SIZE);
    let made = open_disk(&disk, Intent::Use).unwrap();
    for intent in [Intent::Clear, Intent::Init] {
        let anew = open_disk(&disk, intent).unwrap();
        assert!(anew.formatted);
        assert_ne!(anew.content.stripes[0].uuid, made.content.stripes[0].uuid);
    }
}

#[test]
fn a_span_on_a_shorter_device_is_refused_with_both_sizes() {
    let disk = MemDisk::blank(SIZE);
    open_disk(&disk, Intent::Use).unwrap();
    let shorter = MemDisk::blank(SIZE - (1 << 20));
    let whole = snapshot(&disk);
    shorter.edit(|bytes| {
        let len = bytes.len();
        bytes.copy_from_slice(&whole[..len]);
    });
    let error = open_disk(&shorter, Intent::Use).err().unwrap();
    assert!(matches!(error, SpanError::Truncated { was, is, .. } if was > is));
}

#[test]
fn a_span_on_a_grown_device_keeps_its_content() {
    let disk = MemDisk::blank(SIZE);
    let made = open_disk(&disk, Intent::Use).unwrap();
    let grown = MemDisk::blank(SIZE + (5 << 20));
    let whole = snapshot(&disk);
    grown.edit(|bytes| bytes[..SIZE].copy_from_slice(&whole));
    assert_eq!(
        open_disk(&grown, Intent::Use).unwrap().content.uuid,
        made.content.uuid
    );
}

#[test]
fn another_format_version_is_refused_by_number() {
    let disk = MemDisk::blank(SIZE);
    open_disk(&disk, Intent::Use).unwrap();
    disk.edit(|bytes| {
        for at in [8192, SIZE - (1 << 20)] {
            bytes[at + 8] = 77;
        }
    });
    let error = open_disk(&disk, Intent::Use).err().unwrap();
    assert!(
        matches!(error, SpanError::Version { found: 77, .. }),
        "{error}"
    );
}

#[test]
fn a_device_too_small_is_refused_with_the_numbers() {
    let disk = MemDisk::blank(31 << 20);
    let error = open_disk(&disk, Intent::Use).err().unwrap().to_string();
    assert!(
        error.contains("32505856") && error.contains("33554432"),
        "{error}"
    );
}

#[test]
fn the_tier_is_the_operator_s_then_the_span_s_then_the_kernel_s() {
    let disk = MemDisk::blank(SIZE);
    let fast = SpanOptions {
        tier: Some(SpanTier::Fast),
        ..SpanOptions::at("/dev/test")
    };
    let made = open(&plugged(&disk), &fast, Intent::Use).unwrap();
    assert_eq!(made.tier(), SpanTier::Fast);
    assert_eq!(
        open_disk(&disk, Intent::Use).unwrap().tier(),
        SpanTier::Fast
    );
    let capacity = SpanOptions {
        tier: Some(SpanTier::Capacity),
        ..fast
    };
    let moved = open(&plugged(&disk), &capacity, Intent::Use).unwrap();
    assert_eq!(moved.tier(), SpanTier::Capacity);
    assert_eq!(moved.content.uuid, made.content.uuid);
}

#[test]
fn a_file_that_is_not_ours_keeps_its_hash() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notes");
    let mut text = vec![0; 33 << 20];
    text[1080..1082].copy_from_slice(b"\x53\xef");
    std::fs::write(&path, &text).unwrap();
    let opened = open_device(&OpenRequest::at(&path)).unwrap();
    let error = open(&opened, &SpanOptions::at(&path), Intent::Use)
        .err()
        .unwrap();
    assert!(error.to_string().contains("ext2"), "{error}");
    drop(opened);
    assert!(std::fs::read(&path).unwrap() == text);
}
