//! The five kernels in Rust: Stage One on the scalar machine, and rows copied one by one. They have the calling convention of
//! the emitted kernels. The simulator runs them, so that the host side can be tested thousands of times and without a C++
//! compiler; and tests of the linker, which include this file by its path, compare the emitted kernels with them.

use std::{ptr, slice};

use avsg_device::kernels::{Arg, KernelName};
use avsg_device::machine::emu::Emu;
use avsg_device::memory::{clear_state, learn, state_words, table_words};
use avsg_device::one_request::{Compiled, StageOne, work_words};
use avsg_device::params::{ID_LIMIT, Lifetime, NO_STABLE_LEN, Params};
use avsg_device::request::summary;
use avsg_device::tiling::Tiling;
use avsg_sim::{ClosureDevice, ClosureKernel, KernelFault, Session};

type KernelResult = Result<(), KernelFault>;

/// The miss lists, in the order of [`StageOne::miss`].
const MISSES: [Arg; 4] = [Arg::MissPos, Arg::MissId, Arg::MissSlot, Arg::MissRow];
/// Segments of the device buffer.
const KV: [Arg; 2] = [Arg::Kv0, Arg::Kv1];
/// Segments of the fresh rows.
const FRESH: [Arg; 2] = [Arg::Fresh0, Arg::Fresh1];

/// Returns a pointer to so many bytes at an address that a kernel was passed or has computed.
type Slice<'a> = &'a dyn Fn(u64, usize) -> Result<*mut u8, KernelFault>;

/// A launch of a kernel.
struct Launch<'a> {
    slice: Slice<'a>,
    args: &'a [u64],
    kernel: KernelName,
    p: Params,
    t: Tiling,
}

impl Launch<'_> {
    /// Returns the address that was passed for a parameter.
    fn address(&self, arg: Arg) -> u64 {
        let index = self.kernel.args().iter().position(|&a| a == arg);
        self.args[index.expect("a parameter of this kernel")]
    }

    /// Returns the address of `n` words of an array from word `at` on.
    fn at(&self, arg: Arg, at: usize, n: usize) -> Result<*mut i32, KernelFault> {
        if n == 0 {
            return Ok(ptr::dangling_mut());
        }
        Ok((self.slice)(self.address(arg) + 4 * at as u64, 4 * n)?.cast())
    }

    /// Returns words of an array that the kernel writes.
    #[expect(
        clippy::mut_from_ref,
        reason = "the launch has the memory for itself, and the arrays do not overlap"
    )]
    fn words_mut(&self, arg: Arg, at: usize, n: usize) -> Result<&mut [i32], KernelFault> {
        // SAFETY: `slice` has checked the range, kernels run one at a time, and arrays do not overlap.
        Ok(unsafe { slice::from_raw_parts_mut(self.at(arg, at, n)?, n) })
    }

    fn words(&self, arg: Arg, at: usize, n: usize) -> Result<&[i32], KernelFault> {
        // SAFETY: as above, and no kernel writes this array.
        Ok(unsafe { slice::from_raw_parts(self.at(arg, at, n)?, n) })
    }

    fn word(&self, arg: Arg, at: usize) -> Result<i32, KernelFault> {
        Ok(self.words(arg, at, 1)?[0])
    }

    /// Returns the state of a request; `None` of a padded one.
    fn state(&self, r: usize) -> Result<Option<usize>, KernelFault> {
        let state = self.word(Arg::State, r)?;
        Ok((0..self.t.states).contains(&state).then_some(state as usize))
    }

    /// Returns the first row of each request, and the number of rows.
    fn cu_q(&self) -> Result<&[i32], KernelFault> {
        self.words(Arg::CuQ, 0, self.t.requests as usize + 1)
    }

    /// Runs Stage One of a batch.
    fn plan(&self) -> KernelResult {
        let (p, t) = (&self.p, &self.t);
        let (k, stride, big_k) = (t.k as usize, t.ids_stride as usize, p.k as usize);
        let mut work = vec![0; work_words(p)];
        for (r, pair) in self.cu_q()?.windows(2).enumerate() {
            let (first, tokens) = (pair[0] as usize, (pair[1] - pair[0]) as usize);
            let slot = self.words_mut(Arg::Slot, first * big_k, tokens * big_k)?;
            let valid = self.words_mut(Arg::Valid, first, tokens)?;
            let summary = self.words_mut(Arg::Summary, r * summary::WORDS, summary::WORDS)?;
            slot.fill(-1);
            valid.fill(0);
            summary.fill(0);
            let Some(state) = self.state(r)? else { continue };
            let table = self.words_mut(Arg::Tables, state * table_words(p), table_words(p))?;
            let stable = self.word(Arg::StableLen, r)?;
            let ids = if tokens == 0 { 0 } else { (tokens - 1) * stride + k };
            let blocks = if p.page == 0 { 0 } else { t.block_stride as usize };
            let list = |i: usize| self.words_mut(MISSES[i], first * big_k, tokens * big_k);
            let one = StageOne {
                params: p,
                state: &mut *table,
                work: &mut work,
                tokens,
                k,
                generation: self.word(Arg::Generation, r)?,
                stable: if (0..NO_STABLE_LEN).contains(&stable) { stable } else { NO_STABLE_LEN },
                limit: self.word(Arg::SeqLen, r)?.clamp(0, ID_LIMIT),
                rows: t.pool_units as usize,
                ids: self.words(Arg::Ids, first * stride, ids)?,
                ids_stride: stride,
                blocks: self.words(Arg::BlockTable, r * blocks, blocks)?,
                slot,
                valid,
                miss: [list(0)?, list(1)?, list(2)?, list(3)?],
                summary,
            };
            Emu.stage_one(one);
            if p.lifetime == Lifetime::Learned {
                learn(p, table);
            }
            let slots = self.words_mut(Arg::Slot, first * big_k, tokens * big_k)?;
            // A launch may ask for indices among the slots of all states.
            for slot in slots.iter_mut().filter(|slot| t.slot_base >= 0 && **slot >= 0) {
                let index = self.slot_index(state as i32, *slot)?;
                *slot = index.map_or(-1, |index| t.slot_base + index as i32);
            }
        }
        Ok(())
    }

    /// Returns the address of a row of the host pool.
    fn host_row(&self, segment: usize, row: i32) -> Result<u64, KernelFault> {
        let (t, s) = (&self.t, segment);
        let index = t.chunk_first[s] + (row >> t.chunk_shift[s]);
        let pair = self.words(Arg::HostChunks, 2 * index as usize, 2)?;
        let base = u64::from(pair[0] as u32) | u64::from(pair[1] as u32) << 32;
        let within = (row & ((1 << t.chunk_shift[s]) - 1)) as u64;
        let offset = block_offset(within, t.host_stride[s], t.host_block_shift, t.host_gap[s]);
        Ok(base.wrapping_add(offset))
    }

    fn copy(&self, to: u64, from: u64, bytes: i32) -> KernelResult {
        let slice = |at| (self.slice)(at, bytes as usize);
        let (to, from) = (slice(to)?, slice(from)?);
        // SAFETY: `slice` has checked both ranges, and a row and its slot never overlap.
        unsafe { std::ptr::copy_nonoverlapping(from, to, bytes as usize) };
        Ok(())
    }

    /// Returns the index of a slot of a state among those of all states; `None` if its block is not in
    /// the device buffer.
    fn slot_index(&self, state: i32, slot: i32) -> Result<Option<i64>, KernelFault> {
        let (slots, shift) = (self.p.slots, self.t.kv_block_shift);
        if self.t.kv_blocks == 0 {
            return Ok(Some(i64::from(state) * i64::from(slots) + i64::from(slot)));
        }
        let entry = state as usize * (slots >> shift) as usize + (slot >> shift) as usize;
        let block = self.word(Arg::SlotBlocks, entry)?;
        let within = i64::from(slot & ((1 << shift) - 1));
        let inside = (0..self.t.kv_blocks).contains(&block);
        Ok(inside.then_some((i64::from(block) << shift) + within))
    }

    /// Copies the missed rows of a batch (Stage Two).
    fn transfer(&self) -> KernelResult {
        let t = &self.t;
        for (r, &first) in self.cu_q()?.iter().enumerate().take(t.requests as usize) {
            let n = self.word(Arg::Summary, r * summary::WORDS + summary::TOTAL as usize)? as usize;
            let list = |arg| self.words(arg, first as usize * self.p.k as usize, n);
            let (slots, rows) = (list(Arg::MissSlot)?, list(Arg::MissRow)?);
            for (&slot, &row) in slots.iter().zip(rows.iter()) {
                let state = self.word(Arg::State, r)?;
                let Some(index) = self.slot_index(state, slot)? else { continue };
                for (s, &kv) in KV.iter().enumerate().take(t.segments as usize) {
                    let from = match row {
                        0.. => self.host_row(s, row)?,
                        fresh => self.fresh_row(s, first + !fresh),
                    };
                    let (stride, gap) = (t.kv_stride[s], t.kv_gap[s]);
                    let at = block_offset(index as u64, stride, t.kv_block_shift, gap);
                    self.copy(self.address(kv).wrapping_add(at), from, t.bytes[s])?;
                }
            }
        }
        Ok(())
    }

    /// Returns the address of a fresh row of the batch.
    fn fresh_row(&self, segment: usize, at: i32) -> u64 {
        self.address(FRESH[segment]) + at as u64 * self.t.fresh_stride[segment] as u64
    }

    /// Returns the host row of an id; `None` if it is in no block of the request or not in the pool.
    fn pool_row(&self, r: usize, id: i32) -> Result<Option<i32>, KernelFault> {
        let (t, page) = (&self.t, self.p.page as i32);
        let unit = match id.checked_div(page) {
            None => id,
            Some(block) if block >= t.block_stride => return Ok(None),
            Some(block) => {
                self.word(Arg::BlockTable, (r as i32 * t.block_stride + block) as usize)?
            }
        };
        let row = if page == 0 { id } else { unit * page + id % page };
        Ok((0..t.pool_units).contains(&unit).then_some(row))
    }

    /// Copies the fresh rows of a batch to the pool.
    fn append(&self) -> KernelResult {
        for (r, pair) in self.cu_q()?.windows(2).enumerate() {
            let (stable, seq) = (self.word(Arg::StableLen, r)?, self.word(Arg::SeqLen, r)?);
            if self.state(r)?.is_none() || stable < 0 {
                continue;
            }
            for (at, id) in (pair[0]..pair[1]).zip(stable..seq) {
                let Some(row) = self.pool_row(r, id)? else { continue };
                for s in 0..self.t.segments as usize {
                    self.copy(self.host_row(s, row)?, self.fresh_row(s, at), self.t.bytes[s])?;
                }
            }
        }
        Ok(())
    }

    fn reset(&self) -> KernelResult {
        for state in 0..self.t.states as usize {
            let words = table_words(&self.p);
            let table = self.words_mut(Arg::Tables, state * words, words)?;
            table.fill(0);
            clear_state(&self.p, &mut table[..state_words(&self.p)]);
        }
        Ok(())
    }
}

/// Returns the offset of row `n` in blocks of `1 << shift` rows, each followed by `gap` more bytes.
fn block_offset(n: u64, stride: i32, shift: i32, gap: i32) -> u64 {
    (n * stride as u64).wrapping_add((n >> shift).wrapping_mul(gap as u64))
}

/// Returns the last argument of a launch.
pub fn tiling(args: &[u64], slice: Slice<'_>) -> Result<Tiling, KernelFault> {
    let at = slice(args[args.len() - 1], size_of::<Tiling>())?;
    // SAFETY: `slice` has checked the range, which holds the struct that the host wrote.
    Ok(unsafe { at.cast::<Tiling>().read_unaligned() })
}

/// Runs a kernel with the arguments of a launch.
pub fn run(kernel: KernelName, p: Params, args: &[u64], slice: Slice<'_>) -> KernelResult {
    let launch = Launch { slice, args, kernel, p, t: tiling(args, slice)? };
    match kernel {
        KernelName::Plan => launch.plan(),
        KernelName::Transfer => launch.transfer(),
        KernelName::Step => launch.plan().and_then(|()| launch.transfer()),
        KernelName::Append => launch.append(),
        KernelName::Reset => launch.reset(),
    }
}

/// Installs the five kernels of a geometry in a session.
pub fn install(session: &Session, p: Params) {
    for kernel in KernelName::ALL {
        let body = move |device: &ClosureDevice<'_>| {
            run(kernel, p, device.args, &|at, bytes| device.slice(at, bytes))
        };
        let name = kernel.entry().to_str().expect("ASCII");
        session.kernel(name, ClosureKernel::new(kernel == KernelName::Step, body));
    }
}
