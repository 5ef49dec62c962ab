//! Block devices: exclusive, direct, their sizes asked of the kernel.

use super::open::{Handle, OpenRequest, refused, server_user};
use super::{DeviceGeometry, OpenError, ioctl};
use nix::errno::Errno;
use nix::libc::{O_DIRECT, O_EXCL};
use nix::unistd::{Uid, geteuid};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;

/// Opens a block device for itself alone: the kernel refuses one that is
/// mounted, or part of a volume group or an array, or has a partition that is.
///
/// # Errors
/// The system's word, with the cure.
pub(super) fn open(request: &OpenRequest) -> Result<Handle, OpenError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.custom_flags(O_DIRECT | O_EXCL);
    open_with(&options, request)
}

/// Opens a block device to read it only, beside whoever else may have it.
///
/// # Errors
/// The system's word, with the cure.
pub(super) fn open_to_read(request: &OpenRequest) -> Result<Handle, OpenError> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(O_DIRECT);
    open_with(&options, request)
}

fn open_with(options: &OpenOptions, request: &OpenRequest) -> Result<Handle, OpenError> {
    let file = options.open(&request.path).map_err(|error| {
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

pub(super) fn cure(request: &OpenRequest, errno: Errno) -> String {
    let path = request.path.display();
    if errno == Errno::EBUSY {
        return format!(
            "it, or a partition of it, is mounted, swapped to, part of a volume group \
             or an array, or listed twice: unmount it, or take {path} out of storage.config"
        );
    }
    if matches!(errno, Errno::EACCES | Errno::EPERM) {
        return cure_rights(request, geteuid());
    }
    "see the kernel's log".to_owned()
}

/// A disk's owner is lost at the next boot, but for a rule of udev.
fn cure_rights(request: &OpenRequest, uid: Uid) -> String {
    let path = request.path.display();
    if uid.is_root() {
        return format!("root may not either: a container must be given {path}");
    }
    let user = server_user(uid);
    format!(
        "chown {user} {path}, and for good a line with OWNER=\"{user}\" as in \
         etc/udev/61-strata.rules"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_disk_without_rights_is_to_be_given_to_the_user_in_force() {
        let request = OpenRequest::at(Path::new("/dev/sdb"));
        let text = cure_rights(&request, Uid::from_raw(4_000_000));
        assert_eq!(
            text,
            "chown 4000000 /dev/sdb, and for good a line with OWNER=\"4000000\" \
             as in etc/udev/61-strata.rules"
        );
        assert!(cure_rights(&request, Uid::from_raw(0)).contains("container"));
    }
}
