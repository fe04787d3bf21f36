//! A simulated Ascend runtime: the part of `libascendcl` that AVSG calls.
//!
//! It is stricter than the real one wherever that can hide a defect. What a call may do is taken from
//! public documentation and sources; a rule that is only stricter says so where it stands.
//!
//! - **Contexts**: the current one is a thread's; a device's shared one is counted by set and reset.
//! - **Streams** are queues. Nothing in them runs before somebody waits or a seeded die says so, and
//!   which stream goes next is drawn as well: an event that is missing makes results wrong.
//! - **Memory**: device addresses are pages that the host cannot touch; only kernels and copies that
//!   run can. A registered host range is mapped a second time among them.
//! - **Kernels** are C++, in files or memory, for the shim (compiled on first use), or closures of the test.
//! - **Faults** are injected by [`Session`].
//!
//! The runtime is one per process, as the real one is; a [`Session`] has it for itself.

mod binary;
mod call;
mod capture;
mod compile;
pub mod compiler;
mod entry;
mod fault;
mod kernel;
mod launch;
mod memory;
mod options;
mod registry;
mod schedule;
mod session;
mod stream;
mod task;
mod world;

/// The types and values of the runtime, from the same header as the host's.
#[expect(missing_docs, reason = "generated; acl.h has the comments")]
#[expect(non_camel_case_types, non_snake_case, reason = "the runtime's own names")]
#[expect(clippy::undocumented_unsafe_blocks, reason = "generated")]
#[rustfmt::skip]
#[path = "../../host/ascend/acl/sys.rs"]
pub mod sys;

pub use binary::compile_ahead;
pub use entry::functions as entries;
pub use entry::{resolve, symbol};
pub use kernel::{Device, Kernel, KernelFault};
pub use options::Options;
pub use session::Session;
