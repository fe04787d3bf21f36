//! What a caller asks for: the batch of a decode step, and the checked call that both devices take.

/// The most requests of a batch, and the most tokens and requests of a plan.
pub const MAX_REQUESTS: usize = 1 << 20;

/// The batch of one decode step, with arrays of int32 of the type `A`. Every array has one entry per
/// request unless its field says otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct BatchOf<A> {
    /// `[tokens, K]` int32, the ids that each token selects, `ids_stride` words from one token to
    /// the next. Negative ids are padding.
    pub ids: A,
    /// Words from one token to the next in `ids`; at least `k`.
    pub ids_stride: usize,
    /// K, the number of ids per token; 1 up to the K of the geometry.
    pub k: usize,
    /// `[requests + 1]` int32, the first token of each request, then the number of tokens. It starts at
    /// 0 and ascends by at most N_q per request.
    pub cu_q: A,
    /// `[requests]` int32, the state of each request; no two requests may name one state. -1 marks
    /// a padded request, which gets slots of -1 and copies nothing. Its length is the number of
    /// requests, at most [`MAX_REQUESTS`].
    pub state: A,
    /// `[requests]` int32, the generation of each request: a number that its state has not had for
    /// another request. A table that has another one is emptied first. An append ignores it.
    pub generation: A,
    /// `[requests]` int32, the number of tokens whose KV was final before this step. -1 turns
    /// invalidation and fresh rows off.
    pub stable_len: A,
    /// `[requests]` int32, the sequence length including this step's tokens. Ids must be below it.
    pub seq_len: A,
    /// `[requests, block_stride]` int32, the host blocks of each request; unused if the geometry has
    /// no pages (`page` is 0).
    pub block_table: A,
    /// Entries per request in `block_table`.
    pub block_stride: usize,
    /// The indexer that selected the ids ([`Config::indexers`](crate::engine::Config::indexers)); 0
    /// in an engine with one indexer. An append ignores it.
    pub indexer: usize,
}

/// A batch in the memory of this process.
pub type Batch<'a> = BatchOf<&'a [i32]>;

/// An array of a call, which is in the memory of this process or of a device.
pub(crate) trait CallArray: Copy {
    /// Returns the number of elements.
    fn count(self) -> usize;

    /// Returns the address of an array in device memory.
    fn device_address(self) -> Option<u64>;
}

impl<T> CallArray for &[T] {
    fn count(self) -> usize {
        self.len()
    }

    fn device_address(self) -> Option<u64> {
        None
    }
}

/// An array of a batch.
pub(crate) trait BatchArray: CallArray + Default {
    /// Returns a batch whose elements the host can read.
    fn readable(batch: &BatchOf<Self>) -> Option<&Batch<'_>>;
}

impl BatchArray for &[i32] {
    fn readable(batch: &BatchOf<Self>) -> Option<&Batch<'_>> {
        Some(batch)
    }
}

impl<A> BatchOf<A> {
    /// Returns the number of requests, padded ones included.
    pub(crate) fn requests(&self) -> usize
    where
        A: CallArray,
    {
        self.state.count()
    }
}

impl Batch<'_> {
    /// Returns the number of tokens in a batch whose `cu_q` was checked.
    pub(crate) fn tokens(&self) -> usize {
        self.cu_q.last().map_or(0, |&tokens| usize::try_from(tokens).unwrap_or(0))
    }
}

/// Returns the requests that name a state, as (request, state).
pub(crate) fn named(states: &[i32]) -> impl Iterator<Item = (usize, usize)> + Clone + '_ {
    let state = |(request, &state)| Some((request, usize::try_from(state).ok()?));
    states.iter().enumerate().filter_map(state)
}

/// The stages that one call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Stage One.
    Plan,
    /// Stage Two of an earlier plan.
    Transfer,
    /// Both, with SyncAll between them.
    Step,
    /// Writes fresh rows to the host pool.
    Append,
}

/// A call with arrays of the type `A` and fresh rows of the type `R`. Devices take those that the engine has checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a, A, R> {
    pub work: Work,
    /// The batch. That of a transfer from host memory has no arrays, because the plan has them.
    pub batch: BatchOf<A>,
    /// The tokens of the batch; in a stream the most that `cu_q` may count. Before the check it is what the caller
    /// says of them, or 0.
    pub tokens: usize,
    /// The layers whose rows are copied, in ascending order.
    pub layers: &'a [usize],
    /// The segments of the fresh rows of all layers.
    pub fresh: Option<&'a [R]>,
}

/// A checked call whose arrays are in the memory of this process.
pub(crate) type HostCall<'a> = Call<'a, &'a [i32], &'a [u8]>;

impl<'a, A: Copy, R> Call<'a, A, R> {
    /// Returns a call without layers.
    pub fn of(work: Work, batch: BatchOf<A>, tokens: usize) -> Self {
        Self { work, batch, tokens, layers: &[], fresh: None }
    }

    /// Returns the fresh rows of the layer at an index of the list.
    pub fn fresh_of(&self, index: usize) -> Option<&'a [R]> {
        let fresh = self.fresh?;
        let segments = fresh.len() / self.layers.len();
        Some(&fresh[index * segments..][..segments])
    }

    /// Returns the call for each layer of the list alone, or the call itself if it only plans.
    pub fn launches(&self) -> impl Iterator<Item = Self> + '_ {
        let whole = (self.work == Work::Plan).then_some(Self { ..*self });
        whole.into_iter().chain((0..self.layers.len()).map(|index| self.layer(index)))
    }

    /// Returns the call for the layer at an index of the list alone.
    pub fn layer(&self, index: usize) -> Self {
        Self { layers: &self.layers[index..=index], fresh: self.fresh_of(index), ..*self }
    }
}
