//! Block devices: exclusive, direct, their sizes asked of the kernel.

use super::open::{Handle, OpenRequest, refused};
use super::{DeviceGeometry, OpenError, ioctl};
use nix::errno::Errno;
use nix::libc::{O_DIRECT, O_EXCL};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

/// Opens a block device for itself alone: the kernel refuses one that is
/// mounted, or part of a volume group or an array.
///
/// # Errors
/// The system's word, with the cure.
pub(super) fn open(request: &OpenRequest) -> Result<Handle, OpenError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(O_DIRECT | O_EXCL)
        .open(&request.path)
        .map_err(|error| {
            let errno = Errno::from_raw(error.raw_os_error().unwrap_or(0));
            refused(&request.path, errno, cure(request, errno))
        })?;
    let geometry = geometry(&file, request)
        .map_err(|errno| refused(&request.path, errno, "is it a disk?".into()))?;
    let rotational = ioctl::rotational(&file).ok();
    Ok(Handle {
        file,
        geometry,
        rotational,
        created: false,
    })
}

fn geometry(file: &File, request: &OpenRequest) -> nix::Result<DeviceGeometry> {
    let bytes = ioctl::size(file)?;
    let sector = ioctl::logical_sector(file)?.max(512);
    let physical = match request.force_sector {
        0 => ioctl::physical_sector(file).unwrap_or(sector),
        forced => forced,
    };
    Ok(DeviceGeometry {
        bytes,
        sector,
        physical: physical.max(sector),
    })
}

fn cure(request: &OpenRequest, errno: Errno) -> String {
    let path = request.path.display();
    let name = request.path.file_name().unwrap_or_default();
    let name = name.to_string_lossy();
    if errno == Errno::EBUSY {
        return format!(
            "it is mounted, part of a volume group, or listed twice: unmount it, \
             or take {path} out of storage.config"
        );
    }
    if matches!(errno, Errno::EACCES | Errno::EPERM) {
        return format!(
            "chown it to the server's user, for good by a udev rule: \
             KERNEL==\"{name}\", OWNER=\"tserver\", MODE=\"0660\""
        );
    }
    "see the kernel's log".to_owned()
}
