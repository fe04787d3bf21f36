//! The simulated machine, one per process.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::address_space::AddressSpace;
use crate::binary::{Binary, Code};
use crate::fault::{Faults, Outcome, fail, invalid};
use crate::kernel::ClosureKernel;
use crate::options::Options;
use crate::registry::Registry;
use crate::stream::{Event, Stream};
use crate::sys;
use crate::task::Task;

/// A kernel of a loaded binary.
#[derive(Debug)]
pub(crate) struct Function {
    pub binary: u64,
    pub name: String,
    pub code: Code,
}

/// An argument list of a kernel.
#[derive(Debug)]
pub(crate) struct ArgList {
    pub function: u64,
    pub values: Vec<u64>,
    /// Placeholder buffers by argument, or none before they are fetched. They are boxed, because
    /// the caller writes through their addresses.
    pub buffers: BTreeMap<usize, Option<Box<[u8]>>>,
    pub finished: bool,
}

pub(crate) struct Runtime {
    /// Number of the session, so that a current context of an earlier session is invalid.
    pub epoch: u64,
    pub options: Options,
    pub random_state: u64,
    /// The tasks that streams have begun. An event takes each for a microsecond.
    pub tasks: u32,
    pub initialised: bool,
    pub faults: Faults,
    pub memory: AddressSpace,
    /// Number of sets of each device, and its shared context.
    pub set: BTreeMap<u32, (u32, u64)>,
    /// The device of each context.
    pub contexts: Registry<u32>,
    pub streams: Registry<Stream>,
    pub events: Registry<Event>,
    pub binaries: Registry<(u64, Binary)>,
    pub functions: Registry<Function>,
    pub args: Registry<ArgList>,
    pub graphs: Registry<Vec<Task>>,
    pub kernels: BTreeMap<String, ClosureKernel>,
    /// A line for each object that was not released before the reset of its device.
    pub leaked: Vec<String>,
    pub unknown_options: Vec<String>,
}

impl Runtime {
    pub fn new(options: Options, epoch: u64) -> Self {
        Self {
            epoch,
            random_state: options.seed,
            options,
            tasks: 0,
            initialised: false,
            faults: Faults::default(),
            memory: AddressSpace::new(),
            set: BTreeMap::new(),
            contexts: Registry::new("context", 1),
            streams: Registry::new("stream", 2),
            events: Registry::new("event", 3),
            binaries: Registry::new("binary", 4),
            functions: Registry::new("function", 5),
            args: Registry::new("argument list", 6),
            graphs: Registry::new("captured graph", 7),
            kernels: BTreeMap::new(),
            leaked: Vec::new(),
            unknown_options: Vec::new(),
        }
    }

    /// Returns a random number (splitmix64).
    pub fn draw(&mut self) -> u64 {
        self.random_state = self.random_state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random_state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns the current context of this thread.
    pub fn current(&self) -> Outcome<u64> {
        let (epoch, context) = CURRENT.get();
        if epoch == self.epoch && self.contexts.get(context).is_ok() {
            return Ok(context);
        }
        fail(
            sys::ACL_ERROR_RT_CONTEXT_NULL,
            "this thread has no current context; call aclrtSetDevice or aclrtSetCurrentContext",
        )
    }

    pub fn set_current(&self, context: u64) {
        CURRENT.set((self.epoch, context));
    }

    /// Returns the device of the current context.
    pub fn device(&self) -> Outcome<u32> {
        self.contexts.get(self.current()?).copied()
    }

    /// Returns a stream of the current context.
    pub fn own_stream(&mut self, stream: u64) -> Outcome<&mut Stream> {
        let context = self.current()?;
        let entry = self.streams.get_mut(stream)?;
        if entry.context != context {
            let text = "the stream belongs to another context";
            return fail(sys::ACL_ERROR_RT_STREAM_CONTEXT, text);
        }
        Ok(entry)
    }

    /// Refuses to release memory that queued work uses. This rule is stricter than the runtime, in
    /// which the device would access the released memory.
    pub fn refuse_in_flight(&self, at: u64, bytes: usize, kernels: bool) -> Outcome {
        let uses =
            |task: &Task| task.touches(at, bytes) || (kernels && matches!(task, Task::Launch(_)));
        if self.streams.iter().any(|(_, s)| s.queue.iter().any(uses)) {
            return invalid(format!(
                "memory at {at:#x} is in use by queued work; synchronise its streams first"
            ));
        }
        Ok(())
    }

    /// Returns a line for each object that was not released.
    pub fn leaks(&self) -> Vec<String> {
        let mut lines = self.leaked.clone();
        lines.extend(self.memory.leaks());
        lines.extend(self.streams.leaks());
        lines.extend(self.events.leaks());
        lines.extend(self.binaries.leaks());
        lines.extend(self.graphs.leaks());
        lines.extend(self.set.iter().map(|(d, (n, _))| format!("device {d} is set {n} times")));
        lines
    }
}

static MACHINE: Mutex<Option<Runtime>> = Mutex::new(None);

thread_local! {
    static CURRENT: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Runs `body` with the locked machine, which the first call makes.
pub(crate) fn with_machine<T>(body: impl FnOnce(&mut Runtime) -> T) -> T {
    let mut guard: MutexGuard<'_, Option<Runtime>> =
        MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let machine = guard.get_or_insert_with(|| {
        let (options, unknown) = Options::from_env();
        Runtime { unknown_options: unknown, ..Runtime::new(options, 1) }
    });
    body(machine)
}

/// Replaces the machine with a new one.
pub(crate) fn replace(options: Options) {
    with_machine(|machine| *machine = Runtime::new(options, machine.epoch + 1));
}
