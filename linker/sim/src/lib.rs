//! A simulated Ascend runtime: the part of `libascendcl` that AVSG calls.
//!
//! It is stricter than the real runtime where the real one can hide a defect. Its rules are taken
//! from public documentation and sources; a comment marks each rule that is stricter than those.
//!
//! - **Contexts**: each thread has a current context. Set and reset of a device count the uses of
//!   the device's shared context.
//! - **Streams** are queues. Their work runs when a call waits or at random, and the next stream is
//!   chosen at random as well, so that a missing wait makes results wrong.
//! - **Memory**: the host cannot access the pages of device addresses; running kernels and copies
//!   can. A registered host range is mapped a second time among the device addresses.
//! - **Kernels** are C++ for the shim, in files or in memory and compiled on first use, or closures
//!   of the test.
//! - **Faults** are injected by [`Session`].
//!
//! There is one runtime per process, like the real one; a [`Session`] has exclusive use of it.

mod address_space;
mod binary;
mod cache;
mod call;
mod capture;
mod compile;
pub mod compiler;
mod entry;
mod fault;
#[path = "../../../host/ascend/acl/functions.rs"]
mod functions;
mod kernel;
mod launch;
mod machine;
mod options;
mod registry;
mod schedule;
mod session;
pub mod shim;
mod stream;
#[expect(missing_docs, reason = "the vendor's pages describe them")]
#[expect(non_camel_case_types, non_snake_case, reason = "the runtime's own names")]
pub mod sys;
mod task;

pub use binary::compile_ahead;
pub use compile::store;
pub use entry::functions as entries;
pub use entry::{resolve, symbol};
pub use fault::LaunchFault;
pub use kernel::{ClosureDevice, ClosureKernel, KernelFault};
pub use options::Options;
pub use session::Session;
