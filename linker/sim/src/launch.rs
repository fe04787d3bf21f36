//! Runs a launch: the injected fault, the placeholder buffers and the code of the kernel.

use crate::binary::LaunchConfig;
use crate::fault::{CallFailure, LaunchFault, Outcome, fail, invalid};
use crate::kernel::KernelFault;
use crate::machine::Runtime;
use crate::sys;
use crate::task::QueuedLaunch;

/// The end of a launch.
pub(crate) enum End {
    Done,
    Failed(CallFailure),
    Hung,
}

/// Runs a launch to its end.
pub(crate) fn run(machine: &mut Runtime, launch: &QueuedLaunch) -> End {
    let by_name = |machine: &Runtime| {
        let mut faults = machine.options.kernel_faults.iter();
        faults.find(|(kernel, _)| *kernel == launch.name).map(|&(_, fault)| fault)
    };
    let fault = machine.faults.on_launch().or_else(|| by_name(machine));
    match fault {
        Some(LaunchFault::Hang) => return End::Hung,
        // This thread holds the machine, so no other call of the process returns either.
        Some(LaunchFault::Stall) => loop {
            std::thread::park();
        },
        _ => {}
    }
    // Blocks that wait for each other hang unless each has a core.
    if launch.code.sync_all() && launch.blocks > machine.options.cores {
        return End::Hung;
    }
    match execute(machine, launch, fault) {
        Ok(Ok(())) => End::Done,
        Ok(Err(KernelFault::Hang(_))) => End::Hung,
        Ok(Err(KernelFault::Exception(text))) => {
            let code = sys::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;
            End::Failed(CallFailure { code, text: format!("kernel {}: {text}", launch.name) })
        }
        Err(error) => End::Failed(error),
    }
}

fn execute(
    machine: &mut Runtime,
    launch: &QueuedLaunch,
    fault: Option<LaunchFault>,
) -> Outcome<Result<(), KernelFault>> {
    let mut args = launch.args.clone();
    // The buffers are vectors of words, for the alignment that they have on the device.
    let buffers: Vec<Vec<u64>> = launch
        .buffers
        .iter()
        .map(|(_, bytes)| {
            let mut words = vec![0u64; bytes.len().div_ceil(8)];
            for (word, part) in words.iter_mut().zip(bytes.chunks(8)) {
                let mut eight = [0; 8];
                eight[..part.len()].copy_from_slice(part);
                *word = u64::from_ne_bytes(eight);
            }
            words
        })
        .collect();
    for ((at, _), buffer) in launch.buffers.iter().zip(&buffers) {
        match args.get_mut(*at) {
            Some(arg) => *arg = buffer.as_ptr() as u64,
            None => {
                return fail(
                    sys::ACL_ERROR_RT_PARAM_INVALID,
                    "a placeholder buffer has no argument",
                );
            }
        }
    }
    let mut regions: Vec<_> = machine.memory.regions(launch.device).collect();
    regions.extend(buffers.iter().map(|b| (b.as_ptr() as u64, b.len() * 8, false)));
    machine.memory.open_all(true)?;
    let config = LaunchConfig {
        name: &launch.name,
        blocks: launch.blocks,
        cores: machine.options.cores,
        adversarial: machine.options.adversarial,
        seed: machine.draw(),
        fault_block: match fault {
            Some(LaunchFault::Exception(block)) => Some(block),
            _ => None,
        },
    };
    let ended = launch.code.launch(&config, &args, &regions);
    let written = match fault {
        Some(LaunchFault::Corrupt { arg, word, value }) => {
            let at = args.get(arg).map(|at| at + 4 * word as u64);
            write_word(&regions, at, value)
        }
        _ => Ok(()),
    };
    machine.memory.open_all(false)?;
    written.and(Ok(ended))
}

/// Writes a word into one of the regions that a kernel may access.
fn write_word(regions: &[(u64, usize, bool)], at: Option<u64>, value: i32) -> Outcome {
    let holds = |&&(from, len, _): &&(u64, usize, bool)| {
        at.is_some_and(|at| from <= at && at + 4 <= from + len as u64)
    };
    match (at, regions.iter().find(holds)) {
        (Some(at), Some(_)) => {
            // SAFETY: the word is inside a region, and the caller has opened the pages of all.
            unsafe { (at as *mut i32).write_unaligned(value) };
            Ok(())
        }
        _ => invalid("the fault names a word that is in no array of the kernel"),
    }
}
