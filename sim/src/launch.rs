//! A launch runs on the machine: its accident, its buffers and its code.

use crate::binary::Setting;
use crate::fault::{Accident, Fail, Outcome, fail};
use crate::kernel::KernelFault;
use crate::sys;
use crate::task::Launch;
use crate::world::World;

/// The end of a launch is one of these.
pub(crate) enum End {
    Done,
    Failed(Fail),
    Hung,
}

/// This runs a launch to its end.
pub(crate) fn run(world: &mut World, launch: &Launch) -> End {
    let accident = world.faults.launch();
    if accident == Some(Accident::Hang) {
        return End::Hung;
    }
    // Blocks that wait for each other can do so only if all of them have a core.
    if launch.code.sync_all() && launch.blocks > world.options.cores {
        return End::Hung;
    }
    let block = match accident {
        Some(Accident::Exception(block)) => Some(block),
        _ => None,
    };
    match execute(world, launch, block) {
        Ok(Ok(())) => End::Done,
        Ok(Err(KernelFault::Hang(_))) => End::Hung,
        Ok(Err(KernelFault::Exception(text))) => {
            let code = sys::ACL_ERROR_RT_VECTOR_CORE_EXCEPTION;
            End::Failed(Fail { code, text: format!("kernel {}: {text}", launch.name) })
        }
        Err(error) => End::Failed(error),
    }
}

fn execute(
    world: &mut World,
    launch: &Launch,
    fault_block: Option<u32>,
) -> Outcome<Result<(), KernelFault>> {
    let mut args = launch.args.clone();
    // The buffers are words, so that they are as aligned as the device's would be.
    let buffers: Vec<Vec<u64>> = launch
        .carried
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
    for ((at, _), buffer) in launch.carried.iter().zip(&buffers) {
        match args.get_mut(*at) {
            Some(arg) => *arg = buffer.as_ptr() as u64,
            None => return fail(sys::ACL_ERROR_RT_PARAM_INVALID, "a buffer without its argument"),
        }
    }
    let mut regions: Vec<_> = world.memory.regions(launch.device).collect();
    regions.extend(buffers.iter().map(|b| (b.as_ptr() as u64, b.len() * 8, false)));
    world.memory.open_all(true)?;
    let setting = Setting {
        name: &launch.name,
        blocks: launch.blocks,
        cores: world.options.cores,
        adversarial: world.options.adversarial,
        seed: world.draw(),
        fault_block,
    };
    let ended = launch.code.launch(&setting, &args, &regions);
    world.memory.open_all(false)?;
    Ok(ended)
}
