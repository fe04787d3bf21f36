//! A request: the inputs of Stage One, and the places of its results.

use crate::machine::Machine;
use crate::machine::declare::Arguments;
use crate::table::params::{ID_LIMIT, Params};
use crate::table::state::EMPTY;

/// The words of the summary of a request: one 64-byte line, so that two cores never write to one
/// line.
pub mod summary {
    use crate::table::params::{MAX_SLOTS, MAX_TOKENS};
    use bitfield::bitfield;

    /// The number of words in a summary.
    pub const WORDS: usize = 16;
    /// The words from here on are n_g, the misses of token g, for the first [`TOKENS`] tokens. In a request of
    /// more tokens, word g has those of token g + [`TOKENS`] in its upper half ([`row_misses`]).
    pub const MISSES: i32 = 0;
    /// The number of words with misses of tokens.
    pub const TOKENS: u32 = 8;
    /// The misses of all tokens.
    pub const TOTAL: i32 = 8;
    /// The status bits, see [`super::status`].
    pub const STATUS: i32 = 9;

    /// The names of these words in emitted text.
    pub const NAMES: [(i32, &str); 3] =
        [(MISSES, "SUMMARY_MISSES"), (TOTAL, "SUMMARY_TOTAL"), (STATUS, "SUMMARY_STATUS")];

    /// The upper half of a word counts misses in this unit.
    pub const UPPER: i32 = 1 << 16;

    // A request of more than `TOKENS` tokens misses fewer than 2^15 rows per token, because N_q · K <= S.
    const _: () = assert!(MAX_TOKENS <= 2 * TOKENS && MAX_SLOTS / (TOKENS + 1) < 1 << 15);

    bitfield! {
        /// The misses of two tokens.
        struct Two(u32);
        u32;
        first, _: 15, 0;
        second, _: 31, 16;
    }

    /// Returns the numbers of misses of a request's `tokens` tokens.
    ///
    /// # Panics
    /// If there are fewer than [`TOKENS`] words, or more than twice as many tokens.
    pub fn row_misses(summary: &[i32], tokens: usize) -> impl Iterator<Item = i32> + '_ {
        let words = &summary[MISSES as usize..][..TOKENS as usize];
        let packed = tokens > words.len();
        let two = |word: i32| Two(word as u32);
        let first = move |&word: &i32| if packed { two(word).first() as i32 } else { word };
        let second = move |&word: &i32| two(word).second() as i32;
        assert!(tokens <= 2 * words.len(), "{tokens} tokens");
        words.iter().map(first).chain(words.iter().map(second)).take(tokens)
    }
}

/// The status bits of a request. Ids that set a bit were treated as padding.
pub mod status {
    /// An id was at or above the sequence length of the request.
    pub const ID_OUT_OF_RANGE: i32 = 1;
    /// The row of an id was outside of the host pool.
    pub const ROW_OUT_OF_POOL: i32 = 2;
    /// A state has more entries in the table of the device buffer's blocks than a kernel has memory
    /// for ([`crate::tiling::MAX_SLOT_BLOCKS`]), so that all ids of the batch were treated as padding.
    /// The host refuses such tables; only kernels that were built with another limit set this bit.
    pub const TOO_MANY_SLOT_BLOCKS: i32 = 4;
}

/// Rows in global memory: the first begins at word `at`, and each `stride` words after the one
/// before it.
#[expect(missing_docs, reason = "the comment of the struct says it")]
pub struct Rows<A, S> {
    pub words: A,
    pub at: S,
    pub stride: S,
}

/// Global memory from word `at` on.
#[expect(missing_docs, reason = "the comment of the struct says it")]
pub struct Span<A, S> {
    pub words: A,
    pub at: S,
}

/// The block table of a request: `len` words from word `at` on. It is not used where the row of an
/// id is the id.
#[expect(missing_docs, reason = "the comment of the struct says it")]
pub struct Blocks<A, S> {
    pub words: A,
    pub at: S,
    pub len: S,
}

/// The compact miss list: four arrays, in each of which the request begins at word `at`.
#[expect(missing_docs, reason = "the comment of the struct says it")]
pub struct MissList<A, S> {
    /// The positions: token · K + lane.
    pub position: A,
    pub id: A,
    pub slot: A,
    /// The host rows; -1 - n for fresh row n.
    pub row: A,
    pub at: S,
}

/// This core's share of the first token, `len` lanes from lane `at` on, if several cores probe it:
/// see [`crate::sharers`].
#[expect(missing_docs, reason = "the comment of the struct says it")]
pub struct Share<S> {
    /// 1 if several cores probe the first token, else 0.
    pub shared: S,
    pub at: S,
    pub len: S,
}

/// One request of a batch.
#[expect(missing_docs, reason = "the others are documented by their types")]
pub struct Request<'a, M: Machine> {
    /// The number of tokens in this step, 0..=N_q.
    pub tokens: M::Scalar,
    /// The number of ids per token, 1..=K.
    pub k: M::Scalar,
    /// The generation of the request. The table is emptied if it belongs to another one.
    pub generation: M::Scalar,
    /// The number of tokens whose KV was final before this step, or
    /// [`crate::params::NO_STABLE_LEN`].
    pub stable: M::Scalar,
    /// The sequence length with the inputs of this step; ids are below it.
    pub limit: M::Scalar,
    /// The number of rows (without block table) or blocks (with one) in the host pool.
    pub rows: M::Scalar,
    /// The selected ids, row by row.
    pub ids: Rows<M::Input<'a>, M::Scalar>,
    pub blocks: Blocks<M::Input<'a>, M::Scalar>,
    /// The returned slots, row by row; -1 for padding.
    pub slot: Rows<M::Output<'a>, M::Scalar>,
    /// The number of valid ids of each row.
    pub valid: Span<M::Output<'a>, M::Scalar>,
    pub misses: MissList<M::Output<'a>, M::Scalar>,
    /// The summary, [`summary::WORDS`] words long.
    pub summary: Span<M::Output<'a>, M::Scalar>,
    pub share: Share<M::Scalar>,
    /// The token, counted from 1, whose hits are refreshed after the step, or 0 for none. See
    /// [`crate::vector_core`].
    pub deferred: M::Scalar,
}

impl<'a, M: Machine> Request<'a, M> {
    /// Declares a request with its arguments. Names of arrays begin with `gm_`, because working
    /// columns have the same names without it.
    ///
    /// Code that launches the kernel must keep the ranges. Offsets into global memory are not
    /// bounded here: a CPU and the model of a vector core check each access.
    pub fn declare(p: &Params, a: &mut impl Arguments<'a, M>) -> Self {
        let (k, tokens) = (p.k as i32, p.tokens as i32);
        let (offset, any) = (0..=i32::MAX, i32::MIN..=i32::MAX);
        let at = |a: &mut _, name, doc| Arguments::<'a, M>::scalar(a, name, doc, offset.clone());
        Self {
            tokens: a.scalar("tokens", "The number of tokens in this step.", 0..=tokens),
            k: a.scalar("k", "The number of ids per token.", 1..=k),
            generation: a.scalar(
                "generation",
                "The table is emptied if it belongs to another generation.",
                i32::MIN..=i32::MAX,
            ),
            stable: a.scalar(
                "stable",
                "The number of tokens that were final before this step.",
                0..=ID_LIMIT,
            ),
            limit: a.scalar("limit", "The sequence length; ids are below it.", 0..=ID_LIMIT),
            // The first row of a block must not overflow.
            rows: a.scalar(
                "rows",
                "The number of rows or blocks of the host pool.",
                0..=i32::MAX / p.page.max(1) as i32,
            ),
            ids: Rows {
                words: a.input("gm_ids"),
                at: at(a, "ids_at", "The first word of the ids."),
                stride: at(a, "ids_stride", "The number of words from one row of ids to the next."),
            },
            blocks: Blocks {
                words: a.input("gm_block_table"),
                at: at(a, "blocks_at", "The first entry of the block table."),
                len: at(a, "blocks_len", "The number of entries of the block table."),
            },
            slot: Rows {
                words: a.output("gm_slot", EMPTY..=p.slots as i32 - 1),
                at: at(a, "slot_at", "The first word of the slots."),
                stride: at(
                    a,
                    "slot_stride",
                    "The number of words from one row of slots to the next.",
                ),
            },
            valid: Span {
                words: a.output("gm_valid", any.clone()),
                at: at(a, "valid_at", "The first word of the counts of valid ids."),
            },
            misses: MissList {
                position: a.output("gm_miss_pos", any.clone()),
                id: a.output("gm_miss_id", any.clone()),
                slot: a.output("gm_miss_slot", any.clone()),
                row: a.output("gm_miss_row", any),
                at: at(a, "miss_at", "The first entry of the miss list."),
            },
            summary: {
                let last = i32::MAX - summary::WORDS as i32;
                let at = a.scalar("summary_at", "The first word of the summary.", 0..=last);
                Span { words: a.line("gm_summary", at, &summary::NAMES), at }
            },
            share: Share {
                shared: a.scalar(
                    "shared",
                    "1 if several cores probe the first token, each one a share of it, else 0.",
                    0..=1,
                ),
                at: a.scalar("share_at", "The first lane of this core's share.", 0..=k - 1),
                len: a.scalar("share_len", "The number of lanes of this core's share.", 0..=k),
            },
            deferred: a.scalar(
                "deferred",
                "The token, counted from 1, whose hits are refreshed after the step; 0 for none.",
                0..=tokens,
            ),
        }
    }
}
