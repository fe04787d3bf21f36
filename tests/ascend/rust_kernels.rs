//! The five kernels in Rust, for the simulator: Stage One on the scalar machine, and rows copied
//! one by one. They have the calling convention of the emitted kernels, so that the host side can
//! be tested thousands of times and without a C++ compiler.

use std::slice;

use avsg::device::kernels::{Arg, KernelName};
use avsg::device::machine::cpu::{Cpu, Scalar};
use avsg::device::machine::emu::Emu;
use avsg::device::memory::{clear_state, learn, split_state, state_words};
use avsg::device::params::{Lifetime, NO_STABLE_LEN, Params};
use avsg::device::request::{Blocks, MissList, Request, Rows, Share, Span, record};
use avsg::device::sequential::Sequential;
use avsg::device::stage_one::stage_one;
use avsg::device::tiling::Tiling;
use avsg::device::work::{split_work, work_words};
use avsg_sim::{Device, Kernel, KernelFault, Session};

type KernelResult = Result<(), KernelFault>;

/// The addresses that a kernel was launched with.
#[derive(Clone, Copy)]
struct Args<'a> {
    kernel: KernelName,
    words: &'a [u64],
}

impl Args<'_> {
    /// Returns the address that was passed for a parameter.
    fn address(self, arg: Arg) -> u64 {
        let index = self.kernel.args().iter().position(|&a| a == arg);
        self.words[index.expect("a parameter of this kernel")]
    }
}

/// The miss lists, in the order of [`StageOneCall::miss`].
const MISSES: [Arg; 4] = [Arg::MissPos, Arg::MissId, Arg::MissSlot, Arg::MissRow];
/// Segments of the device buffer.
const KV: [Arg; 2] = [Arg::Kv0, Arg::Kv1];
/// Segments of the fresh rows.
const FRESH: [Arg; 2] = [Arg::Fresh0, Arg::Fresh1];

/// Returns the words of one table in the layout of the host.
fn table_words(p: &Params) -> usize {
    state_words(p).next_multiple_of(16)
}

/// Returns `n` words of device memory at an address.
#[expect(
    clippy::mut_from_ref,
    reason = "the simulator owns the device memory, and the arrays do not overlap"
)]
fn words<'a>(d: &'a Device<'_>, at: u64, n: usize) -> Result<&'a mut [i32], KernelFault> {
    if n == 0 {
        return Ok(&mut []);
    }
    let at = d.slice(at, 4 * n)?;
    // SAFETY: `slice` has checked the range, kernels run one at a time, and arrays do not overlap.
    Ok(unsafe { slice::from_raw_parts_mut(at.cast(), n) })
}

fn tiling(d: &Device<'_>) -> Result<Tiling, KernelFault> {
    let at = d.slice(d.args[d.args.len() - 1], size_of::<Tiling>())?;
    // SAFETY: `slice` has checked the range, which holds the struct that the host wrote.
    Ok(unsafe { at.cast::<Tiling>().read_unaligned() })
}

/// Stage One of one request.
struct StageOneCall<'a> {
    p: &'a Params,
    table: &'a mut [i32],
    work: &'a mut [i32],
    tokens: usize,
    /// The request's scalars: k, generation, stable, limit, rows, the stride of ids, and the number
    /// of block table entries.
    scalars: [i32; 7],
    ids: &'a [i32],
    blocks: &'a [i32],
    slot: &'a mut [i32],
    valid: &'a mut [i32],
    miss: [&'a mut [i32]; 4],
    record: &'a mut [i32],
}

impl avsg::device::machine::Kernel for StageOneCall<'_> {
    type Out = ();

    #[inline(always)]
    fn run<C: Cpu>(self, c: C) {
        let [k, generation, stable, limit, rows, ids_stride, blocks_len] =
            self.scalars.map(Scalar::new);
        let zero = Scalar::new(0);
        let mut state = split_state::<C>(self.p, self.table);
        let mut work = split_work::<C, Sequential>(self.p, self.work);
        let [position, id, slot, row] = self.miss;
        let mut request = Request::<C> {
            tokens: Scalar::new(self.tokens as i32),
            k,
            generation,
            stable,
            limit,
            rows,
            ids: Rows { words: self.ids, at: zero, stride: ids_stride },
            blocks: Blocks { words: self.blocks, at: zero, len: blocks_len },
            slot: Rows { words: self.slot, at: zero, stride: Scalar::new(self.p.k as i32) },
            valid: Span { words: self.valid, at: zero },
            misses: MissList { position, id, slot, row, at: zero },
            record: Span { words: self.record, at: zero },
            share: Share { shared: zero, at: zero, len: zero },
            deferred: zero,
        };
        stage_one(c, self.p, &mut state, &mut work, &mut request);
        if self.p.lifetime == Lifetime::Learned {
            learn(self.p, self.table);
        }
    }
}

/// Runs Stage One of a batch.
fn plan(d: &Device<'_>, p: &Params, t: &Tiling, a: Args<'_>) -> KernelResult {
    let (n, big_k) = (t.requests as usize, p.k as usize);
    let cu_q = words(d, a.address(Arg::CuQ), n + 1)?;
    let [state, generation, stable, seq] = [
        a.address(Arg::State),
        a.address(Arg::Generation),
        a.address(Arg::StableLen),
        a.address(Arg::SeqLen),
    ];
    let (k, stride) = (t.k as usize, t.ids_stride as usize);
    let mut work = vec![0; work_words::<Sequential>(p)];
    for r in 0..n {
        let word = |at: u64| words(d, at + 4 * r as u64, 1).map(|w| w[0]);
        let (first, tokens) = (cu_q[r] as usize, (cu_q[r + 1] - cu_q[r]) as usize);
        let at = |base: u64, index: usize| base + 4 * index as u64;
        let slot = words(d, at(a.address(Arg::Slot), first * big_k), tokens * big_k)?;
        let valid = words(d, at(a.address(Arg::Valid), first), tokens)?;
        let record = words(d, at(a.address(Arg::Record), r * record::WORDS), record::WORDS)?;
        slot.fill(-1);
        valid.fill(0);
        record.fill(0);
        let Ok(state) = usize::try_from(word(state)?) else { continue };
        let table = words(d, at(a.address(Arg::Tables), state * table_words(p)), table_words(p))?;
        let stable = word(stable)?;
        let ids = if tokens == 0 { 0 } else { (tokens - 1) * stride + k };
        let blocks = if p.page == 0 { 0 } else { t.block_stride as usize };
        let list = |i: usize| words(d, at(a.address(MISSES[i]), first * big_k), tokens * big_k);
        Emu::<1>.run(StageOneCall {
            p,
            table,
            work: &mut work,
            tokens,
            scalars: [
                t.k,
                word(generation)?,
                if stable < 0 { NO_STABLE_LEN } else { stable },
                word(seq)?,
                t.pool_units,
                t.ids_stride,
                blocks as i32,
            ],
            ids: words(d, at(a.address(Arg::Ids), first * stride), ids)?,
            blocks: words(d, at(a.address(Arg::BlockTable), r * blocks), blocks)?,
            slot,
            valid,
            miss: [list(0)?, list(1)?, list(2)?, list(3)?],
            record,
        });
    }
    Ok(())
}

/// Returns the address of a row of the host pool.
fn host_row(
    d: &Device<'_>,
    t: &Tiling,
    chunks: u64,
    segment: usize,
    row: i32,
) -> Result<u64, KernelFault> {
    let index = t.chunk_first[segment] + (row >> t.chunk_shift[segment]);
    let pair = words(d, chunks + 8 * index as u64, 2)?;
    let base = u64::from(pair[0] as u32) | u64::from(pair[1] as u32) << 32;
    let within = row & ((1 << t.chunk_shift[segment]) - 1);
    let (stride, gap) = (t.host_stride[segment], t.host_gap[segment]);
    Ok(base.wrapping_add(block_offset(within as u64, stride, t.host_block_shift, gap)))
}

/// Returns the offset of row `n` in blocks of `1 << shift` rows, each followed by `gap` more bytes.
fn block_offset(n: u64, stride: i32, shift: i32, gap: i32) -> u64 {
    (n * stride as u64).wrapping_add((n >> shift).wrapping_mul(gap as u64))
}

fn copy(d: &Device<'_>, to: u64, from: u64, bytes: i32) -> KernelResult {
    let (to, from) = (d.slice(to, bytes as usize)?, d.slice(from, bytes as usize)?);
    // SAFETY: `slice` has checked both ranges, and a row and its slot never overlap.
    unsafe { std::ptr::copy_nonoverlapping(from, to, bytes as usize) };
    Ok(())
}

/// Returns the index of a slot of a state among those of all states; `None` if its block is not in
/// the device buffer.
fn slot_index(
    d: &Device<'_>,
    p: &Params,
    t: &Tiling,
    a: Args<'_>,
    [state, slot]: [i32; 2],
) -> Result<Option<i64>, KernelFault> {
    if t.kv_blocks == 0 {
        return Ok(Some(i64::from(state) * i64::from(p.slots) + i64::from(slot)));
    }
    let entry = state as usize * (p.slots >> t.kv_block_shift) as usize;
    let entry = entry + (slot >> t.kv_block_shift) as usize;
    let block = words(d, a.address(Arg::SlotBlocks) + 4 * entry as u64, 1)?[0];
    let within = i64::from(slot & ((1 << t.kv_block_shift) - 1));
    let inside = (0..t.kv_blocks).contains(&block);
    Ok(inside.then_some((i64::from(block) << t.kv_block_shift) + within))
}

/// Replaces the returned slots by indices among the slots of all states, if a launch asks for them.
fn globalize(d: &Device<'_>, p: &Params, t: &Tiling, a: Args<'_>) -> KernelResult {
    if t.slot_base < 0 {
        return Ok(());
    }
    let cu_q = words(d, a.address(Arg::CuQ), t.requests as usize + 1)?;
    for (r, pair) in cu_q.windows(2).enumerate() {
        let state = words(d, a.address(Arg::State) + 4 * r as u64, 1)?[0];
        if !(0..t.states).contains(&state) {
            continue;
        }
        let at = a.address(Arg::Slot) + 4 * pair[0] as u64 * u64::from(p.k);
        let slots = words(d, at, (pair[1] - pair[0]) as usize * p.k as usize)?;
        for slot in slots.iter_mut().filter(|slot| **slot >= 0) {
            let index = slot_index(d, p, t, a, [state, *slot])?;
            *slot = index.map_or(-1, |index| t.slot_base + index as i32);
        }
    }
    Ok(())
}

/// Copies the missed rows of a batch (Stage Two).
fn transfer(d: &Device<'_>, p: &Params, t: &Tiling, a: Args<'_>) -> KernelResult {
    let cu_q = words(d, a.address(Arg::CuQ), t.requests as usize + 1)?;
    for (r, &first) in cu_q.iter().enumerate().take(t.requests as usize) {
        let n = words(d, a.address(Arg::Record) + 4 * (r * record::WORDS) as u64, record::WORDS)?;
        let n = n[record::TOTAL as usize] as usize;
        let list = |at: u64| words(d, at + 4 * first as u64 * u64::from(p.k), n);
        let (slots, rows) = (list(a.address(Arg::MissSlot))?, list(a.address(Arg::MissRow))?);
        for (&slot, &row) in slots.iter().zip(rows.iter()) {
            let state = words(d, a.address(Arg::State) + 4 * r as u64, 1)?[0];
            let Some(index) = slot_index(d, p, t, a, [state, slot])? else { continue };
            for s in 0..t.segments as usize {
                let from = match row {
                    0.. => host_row(d, t, a.address(Arg::HostChunks), s, row)?,
                    fresh => {
                        a.address(FRESH[s]) + (first + !fresh) as u64 * t.fresh_stride[s] as u64
                    }
                };
                let at = block_offset(index as u64, t.kv_stride[s], t.kv_block_shift, t.kv_gap[s]);
                copy(d, a.address(KV[s]).wrapping_add(at), from, t.bytes[s])?;
            }
        }
    }
    Ok(())
}

/// Copies the fresh rows of a batch to the pool.
fn append(d: &Device<'_>, p: &Params, t: &Tiling, a: Args<'_>) -> KernelResult {
    let n = t.requests as usize;
    let cu_q = words(d, a.address(Arg::CuQ), n + 1)?;
    let [state, stable, seq] = [
        words(d, a.address(Arg::State), n)?,
        words(d, a.address(Arg::StableLen), n)?,
        words(d, a.address(Arg::SeqLen), n)?,
    ];
    for (r, pair) in cu_q.windows(2).enumerate().filter(|(r, _)| state[*r] >= 0 && stable[*r] >= 0)
    {
        let (first, end) = (pair[0], pair[1]);
        for at in first..end {
            let id = stable[r] + at - first;
            if id >= seq[r] {
                continue;
            }
            let mut row = id;
            if p.page != 0 {
                let page = p.page as i32;
                let entry = r as u64 * t.block_stride as u64 + (id / page) as u64;
                row = words(d, a.address(Arg::BlockTable) + 4 * entry, 1)?[0] * page + id % page;
            }
            for (s, &fresh) in FRESH.iter().enumerate().take(t.segments as usize) {
                let from = a.address(fresh) + at as u64 * t.fresh_stride[s] as u64;
                copy(d, host_row(d, t, a.address(Arg::HostChunks), s, row)?, from, t.bytes[s])?;
            }
        }
    }
    Ok(())
}

fn reset(d: &Device<'_>, p: &Params, t: &Tiling, a: Args<'_>) -> KernelResult {
    for state in 0..t.states as usize {
        let at = a.address(Arg::Tables) + 4 * (state * table_words(p)) as u64;
        let table = words(d, at, table_words(p))?;
        table.fill(0);
        clear_state(p, &mut table[..state_words(p)]);
    }
    Ok(())
}

/// Installs the five kernels of a geometry in a session.
pub fn install(session: &Session, p: Params) {
    for kernel in KernelName::ALL {
        let run = move |d: &Device<'_>| {
            let (t, a) = (&tiling(d)?, Args { kernel, words: d.args });
            match kernel {
                KernelName::Plan => plan(d, &p, t, a).and_then(|()| globalize(d, &p, t, a)),
                KernelName::Transfer => transfer(d, &p, t, a),
                KernelName::Step => plan(d, &p, t, a)
                    .and_then(|()| transfer(d, &p, t, a))
                    .and_then(|()| globalize(d, &p, t, a)),
                KernelName::Append => append(d, &p, t, a),
                KernelName::Reset => reset(d, &p, t, a),
            }
        };
        let name = kernel.entry().to_str().expect("ASCII");
        session.kernel(name, Kernel::new(kernel == KernelName::Step, run));
    }
}
