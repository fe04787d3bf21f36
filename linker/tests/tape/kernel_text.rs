//! What the text of every kernel has and no run on the shim shows: a step alone has SyncAll and the type for it, no kernel has a
//! list on the stack of the scalar unit, and Compares has its older name for CANN before 9.

use avsg_device::params::{Lifetime, Params};
use avsg_linker::ascend::ascendc;
use avsg_linker::ascend::kernels::Abi;

const OLDER_NAME: &str =
    "#if defined(ASC_DEVKIT_MAJOR) && ASC_DEVKIT_MAJOR < 9\n#define Compares CompareScalar\n#endif";

/// CANN takes one type per file, from the preprocessed text. The operator compiler searches that text for SyncAll, and schedules
/// a kernel that has it as one whose cores wait for each other, so that no comment of another kernel has the word. The
/// stack of the scalar unit is in global memory, so arrays of more than a few words are in UB.
#[test]
fn only_a_step_has_sync_all_and_its_type_and_no_kernel_has_a_list_on_the_stack() {
    let wide = Params { spread: 2, retries: 7, ..Params::wide(2048, 1, 8192) };
    let learned = Params { lifetime: Lifetime::Learned, page: 128, ..wide };
    let small = Params { page: 16, ..Params::wide(8, 2, 128) };
    let geometries = [wide, learned, small, Params::paper(256, 4, 1024)];
    for (p, abi) in geometries.into_iter().flat_map(|p| [(p, Abi::Direct), (p, Abi::Operator)]) {
        let all = ascendc(&p, abi).unwrap_or_else(|e| panic!("{p}: {e}"));
        assert_eq!(all.kernels.len(), 5);
        for kernel in &all.kernels {
            let (what, whole) = (format!("{p}: {}", kernel.name), all.whole(&kernel.text));
            let step = kernel.name == "avsg_step";
            let ty = if step { "KERNEL_TYPE_MIX_AIV_1_0" } else { "KERNEL_TYPE_AIV_ONLY" };
            assert!(whole.contains(&format!("KERNEL_TASK_TYPE_DEFAULT({ty});")), "{what}");
            assert_eq!(whole.contains("SyncAll"), step, "{what}");
            assert!(whole.contains(OLDER_NAME), "{what}");
            let code = whole.lines().map(|line| line.split("//").next().unwrap_or(""));
            for line in code.map(|line| line.trim().trim_end_matches(';')) {
                assert!(!line.contains("] = {"), "{what} declares an array with values: {line}");
                let array = line.ends_with(']') && !line.contains(['=', '(', '.']);
                if let Some((_, n)) = line.rsplit_once('[').filter(|_| array) {
                    let few = n.trim_end_matches(']').parse().is_ok_and(|n: u32| n <= 6);
                    assert!(few, "{what} declares {line}");
                }
            }
        }
    }
}
