//! Files that the program writes: checked before a run, and written as a whole after it.
//!
//! A regular file appears under its name with its whole content: it is written under a new name in the
//! same folder and renamed, so a failure leaves what was there before. A device, a pipe and a symbolic
//! link are written through, because a rename would replace them. The name `-` is standard output.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use avsg::{Error, Result};

/// The beginning of the name under which a file is written before it is renamed.
const TEMPORARY: &str = ".avsg-";

/// Returns whether a path names standard output.
pub fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Checks, before a run, that each of `outputs` can be written, and that none of them is one of
/// `inputs`, another output or the `folder` of other outputs.
///
/// # Errors
/// If a folder does not exist or cannot be written, if an output is a folder, or if two names stand
/// for one file.
pub fn check<'a>(
    outputs: impl IntoIterator<Item = &'a Path>,
    inputs: impl IntoIterator<Item = &'a Path>,
    folder: Option<&Path>,
) -> Result<()> {
    let mut taken: Vec<(PathBuf, &str)> =
        inputs.into_iter().filter_map(identity).map(|path| (path, "an input")).collect();
    taken.extend(folder.and_then(identity).map(|path| (path, "another output")));
    for output in outputs.into_iter().filter(|path| !is_stdout(path)) {
        let identity = identity(output);
        if let Some((_, use_)) = taken.iter().find(|(path, _)| Some(path) == identity.as_ref()) {
            let limit = format!("this file is {use_} of the same command");
            return Err(Error::invalid("output", output.display(), limit, "choose another name"));
        }
        writable(output).map_err(|source| refused("open for writing", output, source))?;
        taken.extend(identity.map(|path| (path, "another output")));
    }
    Ok(())
}

/// Writes a file as a whole.
///
/// # Errors
/// If the file cannot be written. What was there before is then unchanged, except behind a symbolic
/// link, where an empty file is left.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = match replaceable(path) {
        _ if is_stdout(path) => to_stdout(bytes),
        true => replace(path, bytes),
        false => through(path, bytes),
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
    let created = fs::create_dir_all(path).and_then(|()| temporary(path).map(drop));
    created.map_err(|source| refused("create", path, source))
}

fn refused(call: &'static str, path: &Path, source: io::Error) -> Error {
    let remedy = "check that the folder exists, is writable and has free space";
    Error::Os { call, what: path.display().to_string(), source, remedy }
}

/// Returns whether a rename may put a file at `path`: there is a regular file, and no link to one, or nothing.
fn replaceable(path: &Path) -> bool {
    fs::symlink_metadata(path).map_or(true, |metadata| metadata.is_file())
}

/// Returns the folder of a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the path of what is at `path`, or will be, without links, by which it can be compared; `None` for a device,
/// a pipe or a path whose folder does not exist.
fn identity(path: &Path) -> Option<PathBuf> {
    let new = || Some(fs::canonicalize(parent(path)).ok()?.join(path.file_name()?));
    let whole = fs::canonicalize(path).ok().or_else(new)?;
    let is_plain = fs::metadata(&whole).map_or(true, |found| found.is_file() || found.is_dir());
    is_plain.then_some(whole)
}

/// Returns an error if `path` cannot be written. Nothing is changed, and no pipe is opened, because its
/// reader would take that for the end of the data.
fn writable(path: &Path) -> io::Result<()> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let target = fs::read_link(path).map(|target| parent(path).join(target));
            let folder = target.as_deref().map_or_else(|_| parent(path), parent);
            return temporary(folder).map(drop);
        }
        Err(error) => return Err(error),
    };
    if metadata.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if metadata.file_type().is_fifo() {
        return Ok(());
    }
    OpenOptions::new().write(true).open(path)?;
    if replaceable(path) {
        temporary(parent(path))?;
    }
    Ok(())
}

/// Creates a file with a new name in `folder`, which is removed on drop. It has the permissions that the process gives to
/// its files.
fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    let usual = Permissions::from_mode(0o666);
    let file = builder.prefix(TEMPORARY).permissions(usual).tempfile_in(folder);
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
