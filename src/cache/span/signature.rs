//! Whose data lies on a device: the marks that others leave at fixed places.

/// The bytes of a device's two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends<'a> {
    /// The first bytes: up to a MiB.
    pub(crate) first: &'a [u8],
    /// The last bytes: up to a MiB, ending where the device ends.
    pub(crate) last: &'a [u8],
    /// Bytes of the whole device.
    pub(crate) size: u64,
}

/// A mark that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// What others call what is there.
    pub(crate) name: &'static str,
    /// Where the mark lies, in bytes from the device's start.
    pub(crate) offset: u64,
    /// Bytes of the mark.
    pub(crate) len: usize,
}

/// A mark at a fixed place.
pub(super) struct Mark {
    pub(super) name: &'static str,
    pub(super) offset: u64,
    pub(super) magic: &'static [u8],
}

const fn mark(name: &'static str, offset: u64, magic: &'static [u8]) -> Mark {
    Mark {
        name,
        offset,
        magic,
    }
}

const BCACHE: &[u8] = b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81";
const MDRAID: &[u8] = b"\xfc\x4e\x2b\xa9";

/// More telling marks come first: a file system may follow a boot sector.
pub(super) const MARKS: &[Mark] = &[
    mark("a LUKS volume", 0, b"LUKS\xba\xbe"),
    mark("an xfs file system", 0, b"XFSB"),
    mark("a squashfs image", 0, b"hsqs"),
    mark("a Ceph BlueStore device", 0, b"bluestore block device"),
    mark("an NTFS file system", 3, b"NTFS    "),
    mark("an exFAT file system", 3, b"EXFAT   "),
    mark("an APFS container", 32, b"NXSB"),
    mark("an Oracle ASM disk", 32, b"ORCLDISK"),
    mark("a FAT file system", 54, b"FAT1"),
    mark("a FAT file system", 82, b"FAT32"),
    mark("a GPT partition table", 512, b"EFI PART"),
    mark("a GPT partition table", 4096, b"EFI PART"),
    mark("an LVM physical volume", 0, b"LABELONE"),
    mark("an LVM physical volume", 512, b"LABELONE"),
    mark("an LVM physical volume", 1024, b"LABELONE"),
    mark("an LVM physical volume", 1536, b"LABELONE"),
    mark("an mdraid member", 0, MDRAID),
    mark("an mdraid member", 4096, MDRAID),
    mark("a bcache device", 4096 + 24, BCACHE),
    mark("an f2fs file system", 1024, b"\x10\x20\xf5\xf2"),
    mark("an erofs image", 1024, b"\xe2\xe1\xf5\xe0"),
    mark("an HFS+ file system", 1024, b"H+\0\x04"),
    mark("a nilfs2 file system", 1030, b"\x34\x34"),
    mark("swap space", 4096 - 10, b"SWAPSPACE2"),
    mark("swap space", 4096 - 10, b"SWAP-SPACE"),
    mark("swap space", 8192 - 10, b"SWAPSPACE2"),
    mark("swap space", 16384 - 10, b"SWAPSPACE2"),
    mark("swap space", 65536 - 10, b"SWAPSPACE2"),
    mark("a suspended system", 4096 - 10, b"S1SUSPEND"),
    mark("an Apache Traffic Server span", 8192, b"\x37\x12\xcd\xab"),
    mark("a JFS file system", 32768, b"JFS1"),
    mark("an ISO 9660 image", 32769, b"CD001"),
    mark("a UDF image", 32769, b"BEA01"),
    mark("a btrfs file system", 65536 + 64, b"_BHRfS_M"),
    mark("a ReiserFS file system", 65536 + 52, b"ReIsEr"),
    mark("a GFS2 file system", 65536, b"\x01\x16\x19\x70"),
];

impl Ends<'_> {
    /// The first foreign mark, the most telling one; `None` if there is none
    /// that we know.
    pub(crate) fn signature(&self) -> Option<Signature> {
        self.ext()
            .or_else(|| MARKS.iter().find_map(|mark| self.marked(mark)))
            .or_else(|| self.zfs())
            .or_else(|| self.at_end())
            .or_else(|| self.boot_sector())
    }

    /// Whether every byte of both ends is zero.
    pub(crate) fn blank(&self) -> bool {
        let zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        zero(self.first) && zero(self.last)
    }

    fn marked(&self, mark: &Mark) -> Option<Signature> {
        let found = self.bytes(mark.offset, mark.magic.len())?;
        (found == mark.magic).then_some(Signature {
            name: mark.name,
            offset: mark.offset,
            len: mark.magic.len(),
        })
    }

    /// ext2, ext3 and ext4, told apart by their features.
    fn ext(&self) -> Option<Signature> {
        if self.bytes(1024 + 0x38, 2)? != b"\x53\xef" {
            return None;
        }
        let compatible = self.number(1024 + 0x5c, 4)?;
        let incompatible = self.number(1024 + 0x60, 4)?;
        let name = if incompatible & 0x02c0 != 0 {
            "an ext4 file system"
        } else if compatible & 4 != 0 {
            "an ext3 file system"
        } else {
            "an ext2 file system"
        };
        Some(Signature {
            name,
            offset: 1024 + 0x38,
            len: 2,
        })
    }

    /// ZFS keeps four labels with a ring of uberblocks in each.
    fn zfs(&self) -> Option<Signature> {
        let last_labels = self.size / (256 << 10) * (256 << 10);
        let labels = [
            0,
            256 << 10,
            last_labels.saturating_sub(512 << 10),
            last_labels.saturating_sub(256 << 10),
        ];
        let blocks = labels
            .iter()
            .flat_map(|label| (128_u64..256).map(move |n| label + n * 1024));
        let little = b"\x0c\xb1\xba\0\0\0\0\0";
        let big = b"\0\0\0\0\0\xba\xb1\x0c";
        blocks
            .filter(|at| matches!(self.bytes(*at, 8), Some(b) if b == little || b == big))
            .map(|offset| Signature {
                name: "a ZFS pool member",
                offset,
                len: 8,
            })
            .next()
    }

    /// What lies at the end only: old mdraid, and GPT's backup.
    fn at_end(&self) -> Option<Signature> {
        let old_raid = (self.size / 65536 * 65536).saturating_sub(65536);
        let raid = (self.size.saturating_sub(8192)) / 4096 * 4096;
        let marks = [
            mark("an mdraid member", old_raid, MDRAID),
            mark("an mdraid member", raid, MDRAID),
            mark(
                "a GPT partition table",
                self.size.saturating_sub(512),
                b"EFI PART",
            ),
            mark(
                "a GPT partition table",
                self.size.saturating_sub(4096),
                b"EFI PART",
            ),
        ];
        marks.iter().find_map(|mark| self.marked(mark))
    }

    fn boot_sector(&self) -> Option<Signature> {
        self.marked(&mark(
            "an MBR partition table or boot sector",
            510,
            b"\x55\xaa",
        ))
    }

    fn number(&self, offset: u64, len: usize) -> Option<u64> {
        let bytes = self.bytes(offset, len)?;
        let digits = bytes.iter().rev();
        Some(digits.fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// `len` bytes at `offset` of the device, if they lie within an end.
    fn bytes(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let last_start = self
            .size
            .checked_sub(u64::try_from(self.last.len()).ok()?)?;
        let slice = |bytes: &'_ [u8], at: u64| -> Option<std::ops::Range<usize>> {
            let start = usize::try_from(at).ok()?;
            let end = start.checked_add(len)?;
            (end <= bytes.len()).then_some(start..end)
        };
        if let Some(range) = slice(self.first, offset) {
            return self.first.get(range);
        }
        let range = slice(self.last, offset.checked_sub(last_start)?)?;
        self.last.get(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn found(size: u64, marks: &[(u64, &[u8])]) -> Option<&'static str> {
        let mut disk = vec![0; usize::try_from(size).unwrap()];
        for (offset, magic) in marks {
            let at = usize::try_from(*offset).unwrap();
            disk[at..at + magic.len()].copy_from_slice(magic);
        }
        let last = &disk[disk.len() - MIB..];
        let ends = Ends {
            first: &disk[..MIB],
            last,
            size,
        };
        assert_eq!(ends.blank(), marks.is_empty());
        let signature = ends.signature()?;
        let at = usize::try_from(signature.offset).unwrap();
        assert!(disk[at..at + signature.len].iter().any(|byte| *byte != 0));
        Some(signature.name)
    }

    const SIZE: u64 = 8 << 20;

    #[test]
    fn every_mark_of_the_table_is_recognised() {
        for mark in MARKS {
            let name = found(SIZE, &[(mark.offset, mark.magic)]).unwrap();
            assert_eq!(name, mark.name, "at {}", mark.offset);
        }
        assert_eq!(found(SIZE, &[]), None);
        assert_eq!(found(SIZE, &[(700, b"somebody's notes")]), None);
    }

    #[test]
    fn ext_is_told_apart_by_its_features() {
        let magic = (1080, &b"\x53\xef"[..]);
        assert_eq!(found(SIZE, &[magic]), Some("an ext2 file system"));
        let journal = (1024 + 0x5c, &b"\x04"[..]);
        assert_eq!(found(SIZE, &[magic, journal]), Some("an ext3 file system"));
        let extents = (1024 + 0x60, &b"\x40"[..]);
        assert_eq!(
            found(SIZE, &[magic, journal, extents]),
            Some("an ext4 file system")
        );
    }

    #[test]
    fn a_file_system_behind_a_boot_sector_is_named_by_itself() {
        let boot = (510, &b"\x55\xaa"[..]);
        let name = found(SIZE, &[boot, (1080, b"\x53\xef")]);
        assert_eq!(name, Some("an ext2 file system"));
        let gpt = found(SIZE, &[boot, (512, b"EFI PART")]);
        assert_eq!(gpt, Some("a GPT partition table"));
        let alone = found(SIZE, &[boot]);
        assert_eq!(alone, Some("an MBR partition table or boot sector"));
    }

    #[test]
    fn marks_at_the_end_are_found_from_the_device_s_size() {
        let odd = SIZE + 5 * 512;
        let backup = found(odd, &[(odd - 512, b"EFI PART")]);
        assert_eq!(backup, Some("a GPT partition table"));
        let raid = found(odd, &[((odd - 8192) / 4096 * 4096, MDRAID)]);
        assert_eq!(raid, Some("an mdraid member"));
        let old = found(odd, &[(odd / 65536 * 65536 - 65536, MDRAID)]);
        assert_eq!(old, Some("an mdraid member"));
    }

    #[test]
    fn a_zfs_uberblock_in_any_label_is_found() {
        let little = &b"\x0c\xb1\xba\0\0\0\0\0"[..];
        for label in [0, 256 << 10, SIZE - (512 << 10), SIZE - (256 << 10)] {
            let at = label + (128 + 7) * 1024;
            assert_eq!(found(SIZE, &[(at, little)]), Some("a ZFS pool member"));
        }
    }
}
