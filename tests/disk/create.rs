//! Creation takes the whole space or leaves nothing, and overwrites nothing.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::time::Duration;

use avsg::disk::PoolFile;
use avsg::pool::{HostPool, PoolConfig};
use avsg_testkit::scratch::{Scratch, adapted};

use super::{config, expect_error};

#[test]
fn a_kept_file_is_private_and_has_its_whole_size() {
    let folder = Scratch::new();
    let file = PoolFile { keep: true, ..PoolFile::new(folder.file("rows")) };
    let pool = HostPool::new(&config(2, 1000, &[1152], file.clone())).unwrap();
    let metadata = fs::metadata(&file.path).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    assert_eq!(metadata.len(), pool.store().unwrap().info().file_bytes);
    assert!(metadata.blocks() * 512 >= metadata.len(), "the space is taken");
    drop(pool);
    expect_error(HostPool::new(&config(2, 1000, &[1152], file)), &["nothing is overwritten"]);
}

#[test]
fn a_path_in_use_a_link_and_a_missing_folder_are_refused() {
    let folder = Scratch::new();
    let target = folder.file("target");
    fs::write(&target, "text").unwrap();
    symlink(&target, folder.file("link")).unwrap();
    symlink(folder.path(), folder.file("folder")).unwrap();
    let make =
        |path, keep| HostPool::new(&config(1, 8, &[64], PoolFile { keep, ..PoolFile::new(path) }));
    for keep in [false, true] {
        for (path, part) in [
            ("target", "it exists and nothing is overwritten"),
            ("link", "in place of a link"),
            ("folder", "in place of a link"),
            ("missing/rows", "a folder or a path in a folder that exists"),
        ] {
            expect_error(make(folder.file(path), keep), &[part]);
        }
    }
    expect_error(make(folder.path().to_owned(), true), &["name the file that is to be kept"]);
    assert_eq!(fs::read_to_string(&target).unwrap(), "text");
    drop(make(folder.file("private"), false).unwrap());
    assert_eq!(folder.count(), 3, "the target and two links");
}

#[test]
fn a_lack_of_space_names_the_missing_bytes_and_leaves_nothing() {
    let folder = Scratch::new();
    let rows = 1usize << 36;
    for keep in [false, true] {
        let path = if keep { folder.file("rows") } else { folder.path().to_owned() };
        let file = PoolFile { keep, ..PoolFile::new(path) };
        // A bit per row of a pool of this size would be memory, so the space is asked for first.
        let refused = HostPool::new(&config(1, rows, &[4000], file));
        let text = expect_error(refused, &["fallocate for", "lacks"]);
        let after = |part: &str| -> u64 {
            text.split(part).nth(1).unwrap().split(' ').next().unwrap().parse().unwrap()
        };
        // A kept file also has a header.
        let bytes = after(" of ");
        assert!(bytes >= rows as u64 * 4096, "{text}");
        assert!((bytes - (1 << 44)..bytes).contains(&after("lacks ")), "{text}");
        assert_eq!(folder.count(), 0);
    }
}

/// A tmpfs without a limit tells of no blocks and none free. A child of this test has it in a mount namespace.
#[test]
fn a_file_system_that_tells_of_no_room_may_have_some() {
    const FOLDER: &str = "AVSG_TEST_NO_ROOM";
    if let Some(folder) = std::env::var_os(FOLDER) {
        let file = adapted(PoolFile::new(folder));
        drop(HostPool::new(&config(1, 8, &[64], file)).unwrap());
        return println!("made");
    }
    let folder = Scratch::new();
    let mount =
        format!("mount -t tmpfs -o size=0 none \"${FOLDER}\" && echo mounted && exec \"$@\"");
    let mut child = Command::new("unshare");
    child.args(["-rm", "sh", "-c", &mount, "sh"]).arg(std::env::current_exe().unwrap());
    child.args([
        "--exact",
        "create::a_file_system_that_tells_of_no_room_may_have_some",
        "--nocapture",
    ]);
    let text = child.env(FOLDER, folder.path()).output().map_or_else(
        |error| error.to_string(),
        |out| String::from_utf8([out.stdout, out.stderr].concat()).unwrap(),
    );
    if !text.contains("mounted") {
        return println!("skipped: no file system can be mounted here: {text}");
    }
    assert!(text.contains("made"), "{text}");
}

#[test]
fn what_a_file_cannot_be_is_refused() {
    let folder = Scratch::new();
    let fits = config(1, 8, &[64], PoolFile::new(folder.path()));
    let at_once = PoolFile { timeout: Duration::ZERO, ..fits.file.clone().unwrap() };
    // What C programs can set is refused by `bindings/c/tests/calls/refusals/configurations.rs`.
    let at_once = PoolConfig { file: Some(at_once), ..fits.clone() };
    expect_error(HostPool::new(&at_once), &["timeout is 0ns"]);
    expect_error(HostPool::open(&fits), &["keep is false"]);
    let none = PoolConfig { file: None, ..fits };
    expect_error(HostPool::open(&none), &["pool file is not set"]);
    assert_eq!(folder.count(), 0);
}
