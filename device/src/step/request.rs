//! A request: what Stage One is told and where its results go.

use crate::machine::Machine;
use crate::machine::declare::Arguments;
use crate::table::params::{ID_LIMIT, Params};

/// Words of a request's record: one 64-byte line, so that two cores never write one line.
pub mod record {
    /// Words in a record.
    pub const WORDS: usize = 16;
    /// n_g, the misses of token g, is at g.
    pub const MISSES: i32 = 0;
    /// Misses of all tokens.
    pub const TOTAL: i32 = 8;
    /// Status bits, see [`super::status`].
    pub const STATUS: i32 = 9;
}

/// Status bits of a request. Ids that raise them were treated as padding.
pub mod status {
    /// Some id was at or above the request's sequence length.
    pub const ID_OUT_OF_RANGE: i32 = 1;
    /// Some id's row was outside the host pool.
    pub const ROW_OUT_OF_POOL: i32 = 2;
}

/// Rows of words in global memory: offsets and strides count words.
pub struct Rows<A, S> {
    /// The array.
    pub words: A,
    /// Where the first row begins.
    pub at: S,
    /// From row to row.
    pub stride: S,
}

/// Words in global memory from an offset on.
pub struct Span<A, S> {
    /// The array.
    pub words: A,
    /// Where the span begins.
    pub at: S,
}

/// The block table of a request; unused where a token's row is its id.
pub struct Blocks<A, S> {
    /// The array.
    pub words: A,
    /// Where this request's entries begin.
    pub at: S,
    /// How many entries it has.
    pub len: S,
}

/// The compact miss list: four arrays that begin at one offset.
pub struct MissList<A, S> {
    /// Positions: token · K + lane.
    pub position: A,
    /// Ids.
    pub id: A,
    /// Slots.
    pub slot: A,
    /// Host rows; -1 - n for fresh row n.
    pub row: A,
    /// Where this request's list begins.
    pub at: S,
}

/// This core's part of the first token, where several cores probe it: see [`crate::share`].
pub struct Share<S> {
    /// Whether several cores do: 1 or 0.
    pub shared: S,
    /// The part's first lane.
    pub at: S,
    /// The part's lanes.
    pub len: S,
}

/// One request of a batch.
pub struct Request<'a, M: Machine> {
    /// Tokens in this step, 0..=N_q.
    pub tokens: M::Scalar,
    /// Ids per token, at most K.
    pub k: M::Scalar,
    /// A generation other than the table's means a cold start.
    pub generation: M::Scalar,
    /// Tokens whose KV was final before this step, or [`crate::params::NO_STABLE_LEN`].
    pub stable: M::Scalar,
    /// Ids must be below it: the sequence length with this step's inputs.
    pub limit: M::Scalar,
    /// Rows (without block table) or blocks (with one) in the host pool.
    pub rows: M::Scalar,
    /// Selected ids, row by row.
    pub ids: Rows<M::Input<'a>, M::Scalar>,
    /// The block table.
    pub blocks: Blocks<M::Input<'a>, M::Scalar>,
    /// Returned slots, row by row; -1 for padding.
    pub slot: Rows<M::Output<'a>, M::Scalar>,
    /// Valid ids of each row.
    pub valid: Span<M::Output<'a>, M::Scalar>,
    /// The miss list.
    pub misses: MissList<M::Output<'a>, M::Scalar>,
    /// The record, [`record::WORDS`] long.
    pub record: Span<M::Output<'a>, M::Scalar>,
    /// This core's part of the first token.
    pub share: Share<M::Scalar>,
    /// The token, counted from 1, whose hits are refreshed after the step; 0: none. See [`crate::batched`].
    pub deferred: M::Scalar,
}

impl<'a, M: Machine> Request<'a, M> {
    /// A request with the arguments that `a` has under these names. Names of arrays begin with `gm_`, because working
    /// columns have the same ones.
    ///
    /// The ranges are what whoever launches the kernel must keep. Offsets into global memory are not bounded
    /// here: each access is checked when a tape is replayed.
    pub fn declare(p: &Params, a: &mut impl Arguments<'a, M>) -> Self {
        let (k, tokens) = (p.k as i32, p.tokens as i32);
        let offset = 0..=i32::MAX;
        let at = |a: &mut _, name, doc| Arguments::<'a, M>::scalar(a, name, doc, offset.clone());
        Self {
            tokens: a.scalar("tokens", "Tokens in this step.", 0..=tokens),
            k: a.scalar("k", "Ids per token.", 0..=k),
            generation: a.scalar(
                "generation",
                "Another generation than the table's empties it.",
                i32::MIN..=i32::MAX,
            ),
            stable: a.scalar("stable", "Tokens that were final before this step.", 0..=ID_LIMIT),
            limit: a.scalar("limit", "Ids are below it.", 0..=ID_LIMIT),
            // A block's first row must not overflow.
            rows: a.scalar(
                "rows",
                "Rows or blocks of the host pool.",
                0..=i32::MAX / p.page.max(1) as i32,
            ),
            ids: Rows {
                words: a.input("gm_ids"),
                at: at(a, "ids_at", "First word of the ids."),
                stride: at(a, "ids_stride", "Words from row to row of ids."),
            },
            blocks: Blocks {
                words: a.input("gm_block_table"),
                at: at(a, "blocks_at", "First entry of the block table."),
                len: at(a, "blocks_len", "Entries of the block table."),
            },
            slot: Rows {
                words: a.output("gm_slot"),
                at: at(a, "slot_at", "First word of the slots."),
                stride: at(a, "slot_stride", "Words from row to row of slots."),
            },
            valid: Span {
                words: a.output("gm_valid"),
                at: at(a, "valid_at", "First word of the valid counts."),
            },
            misses: MissList {
                position: a.output("gm_miss_pos"),
                id: a.output("gm_miss_id"),
                slot: a.output("gm_miss_slot"),
                row: a.output("gm_miss_row"),
                at: at(a, "miss_at", "First entry of the miss list."),
            },
            record: Span {
                words: a.line("gm_record"),
                at: a.scalar(
                    "record_at",
                    "First word of the record.",
                    0..=i32::MAX - record::WORDS as i32,
                ),
            },
            share: Share {
                shared: a.scalar(
                    "shared",
                    "1: several cores probe the first token, each a part of it.",
                    0..=1,
                ),
                at: a.scalar("share_at", "First lane of this core's part.", 0..=k - 1),
                len: a.scalar("share_len", "Lanes of this core's part.", 0..=k),
            },
            deferred: a.scalar(
                "deferred",
                "The token, from 1, whose hits are refreshed after the step; 0: none.",
                0..=tokens,
            ),
        }
    }
}
