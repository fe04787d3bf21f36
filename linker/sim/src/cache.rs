//! The folder of compiled kernels. This process loads libraries from it, so nobody else may put one
//! there.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{env, io};

/// Returns the folder that `AVSG_SIM_CACHE` names, or else one of this user below the system's temporary
/// folder, and creates it if needed, readable for this user only.
///
/// # Errors
/// If the folder cannot be created, belongs to another user or may be written by others.
pub(crate) fn cache_folder() -> Result<PathBuf, String> {
    let uid = rustix::process::geteuid().as_raw();
    let own = || env::temp_dir().join(format!("avsg-sim-kernels-{uid}"));
    let folder = env::var_os("AVSG_SIM_CACHE").map_or_else(own, PathBuf::from);
    make_private(&folder, uid).map_err(|why| {
        let folder = folder.display();
        format!("{folder}: {why}; set AVSG_SIM_CACHE to a folder that only you may write")
    })?;
    Ok(folder)
}

/// Creates a folder that only the user may enter, or checks that an existing one is safe.
fn make_private(folder: &Path, uid: u32) -> Result<(), String> {
    let words = |error: io::Error| error.to_string();
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(words)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made.map_err(words),
    }
    // The link itself is examined, because its owner may change where it leads.
    let metadata = fs::symlink_metadata(folder).map_err(words)?;
    check(&metadata, uid)?;
    if metadata.mode() & 0o077 != 0 {
        fs::set_permissions(folder, Permissions::from_mode(0o700)).map_err(words)?;
    }
    Ok(())
}

/// Refuses anything but a folder of the user that nobody else may write.
fn check(metadata: &Metadata, uid: u32) -> Result<(), String> {
    if !metadata.is_dir() {
        return Err("it is no folder".to_owned());
    }
    if metadata.uid() != uid {
        return Err(format!("it belongs to user {}, and this process to {uid}", metadata.uid()));
    }
    if metadata.mode() & 0o022 != 0 {
        let mode = metadata.mode() & 0o777;
        return Err(format!("others may have put libraries there, because its mode is {mode:o}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
