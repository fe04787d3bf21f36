//! Files that the program writes: checked before a run, and written as a whole after it.
//!
//! A regular file appears under its name with its whole content: it is written under a new name in the
//! same folder and renamed, so a failure leaves what was there before. A device, a pipe and a symbolic
//! link are written through, because a rename would replace them. The name `-` is standard output.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use avsg::{Error, Result};

/// The beginning of the name under which a file is written before it is renamed.
const TEMPORARY: &str = ".avsg-";

/// Returns whether a path names standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Checks, before a run, that `output` can be written, and that it is none of `inputs`. Standard output always can.
///
/// # Errors
/// If its folder does not exist or cannot be written, if it is a folder, or if it is an input.
pub fn check<'a>(output: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<()> {
    if is_stdout(output) {
        return Ok(());
    }
    // A device and a pipe may be both.
    let own = fs::canonicalize(output).ok().filter(|own| own.is_file());
    if own.is_some() && inputs.into_iter().any(|input| fs::canonicalize(input).ok() == own) {
        let limit = "this file is an input of the same command";
        return Err(Error::invalid("output", output.display(), limit, "choose another name"));
    }
    writable(output).map_err(|source| refused("open for writing", output, source))
}

/// Writes a file as a whole.
///
/// # Errors
/// If the file cannot be written. What was there before is then unchanged, except behind a symbolic
/// link, where an empty file is left.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = match path {
        _ if is_stdout(path) => to_stdout(bytes),
        _ if is_replaceable(path) => replace(path, bytes),
        _ => through(path, bytes),
    };
    written.map_err(|source| refused("write", path, source))
}

/// Writes bytes to standard output.
pub fn to_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| {
        let kind = error.kind();
        io::Error::new(kind, format!("writing standard output: {error}"))
    })
}

/// Creates a folder for output files, with its parents, if it does not exist.
///
/// # Errors
/// If the folder cannot be created, or no file can be created in it.
pub fn folder(path: &Path) -> Result<()> {
    let created = fs::create_dir_all(path).and_then(|()| temporary(path));
    created.map(drop).map_err(|source| refused("create", path, source))
}

fn refused(call: &'static str, path: &Path, source: io::Error) -> Error {
    let remedy = "check that the folder exists, is writable and has free space";
    Error::Os { call, what: path.display().to_string(), source, remedy }
}

/// Returns whether a rename may put a file in the place of what is at `path`: a regular file, or nothing. A symbolic link
/// is not followed.
fn is_replaceable(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |found| found.is_file())
}

/// Returns the folder of a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns an error if `path` cannot be written. Nothing is changed, and no pipe is opened, because its
/// reader would take that for the end of the data.
fn writable(path: &Path) -> io::Result<()> {
    if is_replaceable(path) {
        temporary(parent(path))?;
    }
    if fs::metadata(path).is_ok_and(|found| !found.file_type().is_fifo()) {
        OpenOptions::new().write(true).open(path)?;
    }
    Ok(())
}

/// Creates a file with a new name in `folder`, which is removed on drop. It has the permissions that the process
/// gives to its files.
fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let permissions = Permissions::from_mode(0o666);
    let file =
        tempfile::Builder::new().prefix(TEMPORARY).permissions(permissions).tempfile_in(folder);
    // The crate's message has the new name, which says nothing to a user.
    file.map_err(|error| error.kind().into())
}

/// Writes under a new name and renames.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary(parent(path))?;
    file.write_all(bytes)?;
    if let Ok(before) = fs::metadata(path) {
        file.as_file().set_permissions(before.permissions())?;
    }
    file.persist(path)?;
    Ok(())
}

/// Writes to what the path stands for: a device, a pipe, or the target of a link.
fn through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes).inspect_err(|_| {
        // Half of a file would look like a whole one. Devices and pipes have no length to set.
        let _ = file.set_len(0);
    })
}
