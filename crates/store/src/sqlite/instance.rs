//! Which processes live: each holds an operating-system lock on a file beside the store for its life. Whoever can take
//! such a lock knows that its process is gone, and ends that process's leases at once.
//!
//! What does not belong here: what an ended lease becomes (core), and leases that lapse by time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use counterfoil_core::Holder;

use super::connect::Place;
use crate::error::{ErrorKind, StoreError};
use crate::gate::random;

/// What stands between the store's file name and the holder.
const INFIX: &str = "-instance-";

/// How often a fresh file is tried where a starting process looked at ours before we had locked it.
const TRIES: usize = 8;

/// This process's lock.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) holder: Holder,
    /// Removed at the end; `None`: left behind.
    path: Option<PathBuf>,
    /// Locked until it is closed, however the process ends.
    _file: File,
}

impl Instance {
    /// Lets go and leaves the file: it tells the next process that this one is gone, and its leases are ended then.
    pub(super) fn leave(mut self) {
        self.path = None;
    }

    /// Takes a lock under a fresh name.
    pub(super) fn take(place: &Place) -> Result<Self, StoreError> {
        for _ in 0..TRIES {
            let holder = Holder::from_bytes(random()?);
            let path = place.beside(&format!("{INFIX}{holder}"));
            let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
            let file = made.map_err(|error| cannot("make", &path, error))?;
            match file.try_lock() {
                Ok(()) if is(&path, &file) => return Ok(Self { holder, path: Some(path), _file: file }),
                // A starting process took it for a dead one's: another name.
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(cannot("lock", &path, error)),
            }
            drop(fs::remove_file(&path));
        }
        Err(StoreError::not_applied(ErrorKind::Busy, "other processes start on this store at this moment: try again"))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Removed before it is unlocked. Left behind, it tells the next process that this one is gone.
        if let Some(path) = &self.path {
            drop(fs::remove_file(path));
        }
    }
}

/// A process that is gone, its lock held by us until its leases are ended.
#[derive(Debug)]
pub(super) struct Gone {
    pub(super) holder: Holder,
    path: PathBuf,
    _file: File,
}

impl Gone {
    /// Its leases are ended: nothing is left to be known about it.
    pub(super) fn forget(self) {
        drop(fs::remove_file(&self.path));
    }
}

/// The processes that were on this store and are gone.
pub(super) fn gone(place: &Place) -> Result<Vec<Gone>, StoreError> {
    let (Some(directory), Some(name)) = (place.path.parent(), place.path.file_name()) else { return Ok(Vec::new()) };
    let prefix = format!("{}{INFIX}", name.to_string_lossy());
    let cannot_list = |error| cannot("list", directory, error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(cannot_list)? {
        let entry = entry.map_err(cannot_list)?;
        let file_name = entry.file_name();
        let Some(holder) = file_name.to_str().and_then(|name| name.strip_prefix(&prefix)).and_then(parse) else {
            continue;
        };
        let path = entry.path();
        let Ok(file) = OpenOptions::new().write(true).open(&path) else { continue };
        if file.try_lock().is_ok() {
            found.push(Gone { holder, path, _file: file });
        }
    }
    Ok(found)
}

fn parse(hex: &str) -> Option<Holder> {
    let plain = hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if !plain {
        return None;
    }
    u128::from_str_radix(hex, 16).ok().map(|value| Holder::from_bytes(value.to_be_bytes()))
}

fn is(path: &Path, file: &File) -> bool {
    let (Ok(named), Ok(held)) = (fs::metadata(path), file.metadata()) else { return false };
    (named.dev(), named.ino()) == (held.dev(), held.ino())
}

fn cannot(what: &str, path: &Path, error: io::Error) -> StoreError {
    StoreError::not_applied(
        ErrorKind::Unavailable,
        format!("cannot {what} {}: {error}: make the store's directory writable", path.display()),
    )
    .caused_by(error)
}
