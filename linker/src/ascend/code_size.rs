//! Estimates how many instructions a kernel has, because a vector core's instruction cache is small.
//!
//! Stage One and the functions that it calls are counted as nodes. Every function is `inline`, so a call
//! of one counts as its statements, wherever it stands. The hand-written files are the same for every
//! geometry, and a number for each kernel stands for them. No compiler that makes these instructions is public, so
//! the weights are assumptions.

use super::aiv::{
    Buffer, Call, CountRead, FunctionCall, If, Loop, Node, Operation, Sync, Tensor, Vector,
    VectorOp, View,
};
use super::sync::ordered;
use avsg_device::kernels::KernelName;

/// Bytes of a vector core's instruction cache, of which a line has 128.
pub const INSTRUCTION_CACHE_BYTES: u32 = 16 * 1024;
/// Bytes of an instruction.
pub const INSTRUCTION_BYTES: u32 = 4;

/// The instructions of a statement, beside those of what it starts.
pub const STATEMENT: u32 = 2;
/// A vector instruction over a count: it sets the mask and its mode, addresses, strides and repeats,
/// starts, and resets the mask.
pub const VECTOR: u32 = 14;
/// A compaction, or a DMA.
pub const LONG: u32 = 18;
/// A Select, which also fills and loads a block for its mask.
pub const SELECT: u32 = 36;
/// A wait for all cores, or InitSocState.
pub const ALL_CORES: u32 = 6;
/// A loop, which compares, steps and jumps.
pub const LOOP: u32 = 4;
/// A branch, or an access of the scalar unit to one element or register.
pub const SCALAR: u32 = 2;
/// A barrier, and each half of a flag.
pub const WAIT: u32 = 1;

/// The instructions of each kernel, in the order of [`KernelName::ALL`], without those of Stage One.
/// `linker/tests/code_size.rs` compares them with the files.
const HAND_WRITTEN: [u32; KernelName::ALL.len()] = [1752, 1750, 3851, 1565, 499];

/// Returns the instructions of the hand-written part of a kernel.
pub fn hand_written(kernel: KernelName) -> u32 {
    HAND_WRITTEN[kernel as usize]
}

/// Returns the instructions of some statements, whose functions read counts by `count`.
pub fn instructions(nodes: &[Node], count: CountRead) -> u32 {
    let of_node = |node: &Node| match node {
        Node::Note(_) => 0,
        Node::Call(Call { operation: Operation::Order, sync }) => waits(sync),
        Node::Call(call) => waits(&call.sync) + STATEMENT + started(call, count),
        Node::Loop(Loop { sync, body, .. }) => {
            waits(sync) + LOOP + 2 * STATEMENT + instructions(body, count)
        }
        Node::If(If { body, otherwise, .. }) => {
            SCALAR + instructions(body, count) + instructions(otherwise, count)
        }
    };
    nodes.iter().map(of_node).sum()
}

fn waits(sync: &[Sync]) -> u32 {
    let one = |sync: &Sync| match sync {
        Sync::Barrier(_) | Sync::Set(..) | Sync::Wait(..) => STATEMENT + WAIT,
        // SetWaitFlag calls two functions.
        Sync::Flag(..) => STATEMENT + 2 * (STATEMENT + WAIT),
    };
    sync.iter().map(one).sum()
}

/// Returns the instructions that a statement starts, with the statements of the helpers in
/// `instructions.h` and `avsg_kernel.h` that print it.
fn started(call: &Call, count: CountRead) -> u32 {
    let operation = match &call.operation {
        Operation::Let(..) | Operation::Variable(..) | Operation::Assign(..) => 0,
        Operation::Return(_) | Operation::Leave | Operation::Order => 0,
        Operation::Read { .. } | Operation::Write { .. } => SCALAR,
        Operation::Count(_) => STATEMENT + SCALAR,
        Operation::WaitForAll => STATEMENT + ALL_CORES,
        Operation::Copy(_) => 2 * STATEMENT + LONG,
        Operation::Vector(Vector { op, .. }) => match op {
            VectorOp::Compact => 2 * STATEMENT + LONG,
            VectorOp::AndWord | VectorOp::OrWord => 4 * STATEMENT + VECTOR,
            VectorOp::Select => SELECT,
            _ => VECTOR,
        },
        Operation::Function(FunctionCall { function, .. }) => {
            instructions(ordered(function, count), count)
        }
    };
    operation + call.tensors().into_iter().map(operand).sum::<u32>()
}

/// Returns the instructions that make an operand from an address, or another view of a tensor.
fn operand(tensor: &Tensor) -> u32 {
    let made = match tensor.buffer {
        Buffer::Placed { called: None, .. } | Buffer::Word(_) => 2 * STATEMENT + WAIT,
        _ => 0,
    };
    made + if tensor.view == View::Own { 0 } else { STATEMENT }
}
