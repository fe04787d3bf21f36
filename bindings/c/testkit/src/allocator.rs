//! An allocator for the library that counts what it gives out, poisons it, and refuses on demand.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::{Arc, Mutex, MutexGuard};

use avsg::ascend::acl::{Acl, Context};
use avsg_capi::avsg_allocator;

use crate::device::context_of;
use crate::sized;

/// What each byte of new memory has.
const POISON: u8 = 0xA5;
/// The numbers of `avsg_memory_kind`.
pub const KINDS: [i32; 3] = [0, 1, 2];

/// The most blocks that are given out at a time.
const MOST_BLOCKS: usize = 8192;

/// A block that was given out.
struct Block {
    /// The address that was returned.
    address: usize,
    kind: i32,
    bytes: usize,
    /// The first byte and the layout of the memory around it.
    memory: (usize, Layout),
}

/// What the allocator has given out, and how it answers.
#[derive(Default)]
pub struct State {
    /// It never grows, so that the allocator takes no memory of the process but the blocks.
    blocks: Vec<Block>,
    /// Calls so far, of both functions.
    pub calls: usize,
    /// The number of allocations up to the first one that returns NULL; 0 if none returns it.
    pub until_null: usize,
    /// The kind whose addresses are not aligned.
    pub misaligned: Option<i32>,
}

/// An allocator of all three kinds of memory. It does not move while an object has it.
pub struct Counting {
    /// The context of the device; None on "cpu".
    pub context: Option<Arc<Context>>,
    state: Mutex<State>,
}

impl Counting {
    /// Makes an allocator for engines on "cpu", "ascend-sim", or "ascend" over the simulator's library.
    pub fn on(device: &CStr) -> Self {
        let context = context_of(device);
        let state = State { blocks: Vec::with_capacity(MOST_BLOCKS), ..State::default() };
        Self { context, state: Mutex::new(state) }
    }

    /// Returns the struct of the header.
    pub fn c(&self) -> avsg_allocator {
        avsg_allocator {
            user: (&raw const *self).cast_mut().cast(),
            allocate: Some(allocate),
            release: Some(release),
            ..sized()
        }
    }

    /// Returns the device's runtime, which the allocator calls as a caller's program does.
    fn acl(&self) -> &Acl {
        self.context.as_ref().expect("the CPU has no such memory").acl()
    }

    /// Returns the state, which the allocator cannot use meanwhile.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Returns the bytes of each kind that are given out.
    pub fn live(&self) -> [usize; 3] {
        let state = self.state();
        KINDS.map(|kind| {
            state.blocks.iter().filter(|block| block.kind == kind).map(|block| block.bytes).sum()
        })
    }
}

unsafe extern "C" fn allocate(
    user: *mut c_void,
    kind: i32,
    bytes: usize,
    alignment: usize,
) -> *mut c_void {
    // SAFETY: `Counting::c` set `user`, and the allocator outlives all objects with it.
    let counting = unsafe { &*user.cast::<Counting>() };
    let mut state = counting.state();
    state.calls += 1;
    if state.until_null > 0 {
        state.until_null -= 1;
        if state.until_null == 0 {
            return null_mut();
        }
    }
    assert!(bytes > 0 && alignment.is_power_of_two() && alignment <= 4096, "{bytes} {alignment}");
    let off = if state.misaligned == Some(kind) { 8 } else { 0 };
    let layout = Layout::from_size_align(bytes + off, alignment).unwrap();
    let (mut at, size, fill) = (null_mut(), layout.size(), i32::from(POISON));
    // SAFETY: the layout is not empty, and the memory is new. The library has made the context
    // current for memory of a device.
    unsafe {
        match kind {
            0 => at = System.alloc(layout).cast(),
            1 => counting.acl().aclrtMallocHost(&mut at, size).unwrap(),
            _ => {
                counting.acl().aclrtMalloc(&mut at, size, 0).unwrap();
                counting.acl().aclrtMemset(at, size, fill, size).unwrap();
            }
        }
        if kind != 2 {
            at.write_bytes(POISON, size);
        }
    }
    let at = at.cast::<u8>();
    let given = at.wrapping_add(off);
    let memory = (at.expose_provenance(), layout);
    assert!(state.blocks.len() < MOST_BLOCKS, "{MOST_BLOCKS} blocks");
    state.blocks.push(Block { address: given.addr(), kind, bytes, memory });
    given.cast()
}

unsafe extern "C" fn release(user: *mut c_void, kind: i32, address: *mut c_void, bytes: usize) {
    // SAFETY: as for `allocate`.
    let counting = unsafe { &*user.cast::<Counting>() };
    let mut state = counting.state();
    state.calls += 1;
    let found = state.blocks.iter().position(|block| block.address == address.addr());
    let block = state.blocks.swap_remove(found.expect("the address was given out"));
    assert_eq!((block.kind, block.bytes), (kind, bytes), "released as it was allocated");
    let (at, layout) = (with_exposed_provenance_mut::<u8>(block.memory.0), block.memory.1);
    // SAFETY: `allocate` got the memory in this way, and it was not released since.
    unsafe {
        match kind {
            0 => System.dealloc(at, layout),
            1 => counting.acl().aclrtFreeHost(at.cast()).unwrap(),
            _ => counting.acl().aclrtFree(at.cast()).unwrap(),
        }
    }
}
