//! Tests of the limits that cgroups set.

use super::*;
use std::fs;

const MOUNTS: &str = "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 23 0:27 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n\
                      32 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

/// Returns what is left on a made-up machine: the text of `/proc/self/cgroup`, and the files below
/// `/sys/fs/cgroup`.
fn left(groups: &str, files: &[(&str, &str)]) -> Option<usize> {
    let root = std::env::temp_dir().join(format!("avsg-groups-{}", std::process::id()));
    let write = |path: String, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/self/mountinfo".into(), MOUNTS);
    write("proc/self/cgroup".into(), groups);
    files.iter().for_each(|(path, text)| write(format!("sys/fs/cgroup/{path}"), text));
    let left = available(root.to_str().unwrap());
    fs::remove_dir_all(&root).unwrap();
    left
}

#[test]
fn the_tightest_limit_of_the_process_s_groups_and_their_parents_binds() {
    let of_version_1 = [
        ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ("memory/memory.usage_in_bytes", "5000\n"),
        ("memory/a/memory.limit_in_bytes", "1000\n"),
        ("memory/a/memory.usage_in_bytes", "700\n"),
        ("memory/a/memory.stat", "total_inactive_file 100\n"),
        ("memory/a/b/memory.limit_in_bytes", "2000\n"),
        ("memory/a/b/memory.usage_in_bytes", "600\n"),
    ];
    let groups = "4:cpu:/x\n3:hugetlb,memory:/a/b\n0::/\n";
    assert_eq!(left(groups, &of_version_1), Some(1000 - (700 - 100)));
    // A path of the host falls back to the container's own folder.
    let stat = "workingset_inactive_file 7\ninactive_file_pages 9\ninactive_file 50 0\n";
    let of_version_2 = [
        ("unified/memory.max", "900\n"),
        ("unified/memory.current", "500\n"),
        ("unified/memory.stat", stat),
    ];
    assert_eq!(left("0::/docker/1234\n", &of_version_2), Some(450));
    assert_eq!(left("0::/\n1:memory:/\n", &[]), None);
    assert_eq!(available("/no/such/folder"), None);
}
