use super::*;

#[test]
fn a_folder_is_of_its_user_only() {
    let root = env::temp_dir().join(format!("avsg-cache-test-{}", std::process::id()));
    let _ = fs::remove_dir_all(&root);
    let (folder, uid) = (root.join("a/b"), rustix::process::geteuid().as_raw());
    let mode = || fs::metadata(&folder).unwrap().mode() & 0o777;
    make_private(&folder, uid).unwrap();
    assert_eq!(mode(), 0o700);
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    make_private(&folder, uid).unwrap();
    assert_eq!(mode(), 0o700);

    fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    assert!(make_private(&folder, uid).unwrap_err().contains("777"));
    fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    assert!(make_private(&folder, uid + 1).unwrap_err().contains("belongs to user"));
    let link = root.join("link");
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    assert!(make_private(&link, uid).unwrap_err().contains("no folder"));
    fs::remove_dir_all(&root).unwrap();
}
