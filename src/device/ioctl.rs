//! What only an ioctl tells of a block device.
#![expect(
    unsafe_code,
    reason = "the kernel answers these four questions by ioctl only; each call \
              hands it one valid pointer of the documented type for its duration"
)]

use nix::libc::{c_int, c_uint, c_ushort};
use std::fs::File;
use std::os::fd::AsRawFd;

mod raw {
    use super::{c_int, c_uint, c_ushort};

    // linux/fs.h: BLKGETSIZE64, BLKSSZGET, BLKPBSZGET, BLKROTATIONAL.
    nix::ioctl_read!(size64, 0x12, 114, u64);
    nix::ioctl_read_bad!(logical, nix::request_code_none!(0x12, 104), c_int);
    nix::ioctl_read_bad!(physical, nix::request_code_none!(0x12, 123), c_uint);
    nix::ioctl_read_bad!(rotational, nix::request_code_none!(0x12, 126), c_ushort);
}

/// Bytes of a block device.
pub(super) fn size(file: &File) -> nix::Result<u64> {
    let mut bytes = 0;
    // SAFETY: `bytes` is a u64, which BLKGETSIZE64 fills, and outlives the call.
    unsafe { raw::size64(file.as_raw_fd(), &raw mut bytes) }?;
    Ok(bytes)
}

/// Bytes of a block device's logical sector.
pub(super) fn logical_sector(file: &File) -> nix::Result<u32> {
    let mut bytes: c_int = 0;
    // SAFETY: `bytes` is an int, which BLKSSZGET fills, and outlives the call.
    unsafe { raw::logical(file.as_raw_fd(), &raw mut bytes) }?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// Bytes of a block device's physical sector.
pub(super) fn physical_sector(file: &File) -> nix::Result<u32> {
    let mut bytes: c_uint = 0;
    // SAFETY: `bytes` is an unsigned int, which BLKPBSZGET fills, and outlives
    // the call.
    unsafe { raw::physical(file.as_raw_fd(), &raw mut bytes) }?;
    Ok(bytes)
}

/// Whether the kernel takes the device for a rotating one.
pub(super) fn rotational(file: &File) -> nix::Result<bool> {
    let mut flag: c_ushort = 0;
    // SAFETY: `flag` is an unsigned short, which BLKROTATIONAL fills, and
    // outlives the call.
    unsafe { raw::rotational(file.as_raw_fd(), &raw mut flag) }?;
    Ok(flag != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn a_file_answers_none_of_them() {
        let file = tempfile::tempfile().unwrap();
        assert_eq!(size(&file), Err(Errno::ENOTTY));
        assert_eq!(logical_sector(&file), Err(Errno::ENOTTY));
        assert_eq!(physical_sector(&file), Err(Errno::ENOTTY));
        assert_eq!(rotational(&file), Err(Errno::ENOTTY));
    }
}
