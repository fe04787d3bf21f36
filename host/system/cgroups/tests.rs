//! Tests of the limits that cgroups set.

use super::*;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

const MOUNTS: &str = "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 23 0:27 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n\
                      32 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

/// Returns what is left of the memory and of the CPUs on a made-up machine: the text of `/proc/self/cgroup`, and
/// the files below `/sys/fs/cgroup`.
fn left(groups: &str, files: &[(&str, &str)]) -> [Option<usize>; 2] {
    static TAKEN: AtomicUsize = AtomicUsize::new(0);
    let number = TAKEN.fetch_add(1, Ordering::Relaxed);
    let root = std::env::temp_dir().join(format!("avsg-groups-{}-{number}", std::process::id()));
    let write = |path: String, text: &str| {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("proc/self/mountinfo".into(), MOUNTS);
    write("proc/self/cgroup".into(), groups);
    files.iter().for_each(|(path, text)| write(format!("sys/fs/cgroup/{path}"), text));
    let left = [memory, cpus].map(|of| of(root.to_str().unwrap()));
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
    assert_eq!(left(groups, &of_version_1), [Some(1000 - (700 - 100)), None]);
    // A path of the host falls back to the container's own folder.
    let stat = "workingset_inactive_file 7\ninactive_file_pages 9\ninactive_file 50 0\n";
    let of_version_2 = [
        ("unified/memory.max", "900\n"),
        ("unified/memory.current", "500\n"),
        ("unified/memory.stat", stat),
    ];
    assert_eq!(left("0::/docker/1234\n", &of_version_2), [Some(450), None]);
    assert_eq!(left("0::/\n1:memory:/\n", &[]), [None; 2]);
    assert_eq!(memory("/no/such/folder"), None);
}

#[test]
fn file_cache_is_available_memory_whether_it_is_active_or_not() {
    let huge = ["", "total_"]
        .map(|total| format!("{total}inactive_file {0}\n{total}active_file {0}\n", usize::MAX));
    let huge = huge.concat();
    // Without `total_` the lines of version 1 leave out the groups below.
    let total = "active_file 1\ntotal_inactive_file 1000\ntotal_active_file 5000\n";
    let version_1 =
        ("4:memory:/\n", "memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes");
    let version_2 = ("0::/\n", "unified/memory.max", "unified/memory.current");
    for ((groups, limit, used), (stat_file, stat)) in [
        (version_1, ("memory/memory.stat", total)),
        (version_2, ("unified/memory.stat", "inactive_file 1000\nactive_file 5000\n")),
    ] {
        let files = [(limit, "8000\n"), (used, "6200\n"), (stat_file, stat)];
        assert_eq!(left(groups, &files)[0], Some(8000 - 200), "{groups}");
        let files = [(limit, "8000\n"), (used, "6200\n"), (stat_file, &huge)];
        assert_eq!(left(groups, &files)[0], Some(8000), "{groups}");
        // What cannot be true refuses nothing.
        let files = [(limit, "8000\n"), (used, "9000\n")];
        assert_eq!(left(groups, &files)[0], None, "{groups}");
    }
}

#[test]
fn a_quota_is_whole_cpus_of_the_tightest_group_and_at_least_one() {
    let version_1 = |quota| {
        let files = [("cpu/a/cpu.cfs_quota_us", quota), ("cpu/a/cpu.cfs_period_us", "100000\n")];
        left("2:cpuacct,cpu:/a\n", &files)[1]
    };
    assert_eq!(["-1\n", "250000\n", "50000\n"].map(version_1), [None, Some(2), Some(1)]);
    let version_2 = |quota| {
        let files = [("unified/a/cpu.max", "400000 100000\n"), ("unified/a/b/cpu.max", quota)];
        left("0::/a/b\n", &files)[1]
    };
    let quotas = ["max 100000\n", "300000 100000\n", "1 0\n", "no number\n"];
    assert_eq!(quotas.map(version_2), [Some(4), Some(3), Some(4), Some(4)]);
}
