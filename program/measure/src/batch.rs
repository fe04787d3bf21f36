//! A batch that owns its arrays and is built request by request.

use avsg::engine::Batch;

/// The arrays of a [`Batch`]. The words of `ids` between rows must not be read.
#[derive(Clone, Debug, Default)]
pub struct OwnedBatch {
    /// K, the number of ids per row.
    pub k: usize,
    /// Distance between rows of `ids`, in words.
    pub stride: usize,
    /// Selected ids, one row after the other, `stride` words each.
    pub ids: Vec<i32>,
    /// First row of each request, followed by the number of rows.
    pub cu_q: Vec<i32>,
    /// State of each request.
    pub state: Vec<i32>,
    /// Generation of each request.
    pub generation: Vec<i32>,
    /// `stable_len` of each request.
    pub stable: Vec<i32>,
    /// `seq_len` of each request.
    pub seq: Vec<i32>,
    /// Block tables, one request after the other, `block_stride` words each.
    pub blocks: Vec<i32>,
    /// Number of entries per request in `blocks`.
    pub block_stride: usize,
    /// Indexer that selected the ids.
    pub indexer: usize,
}

impl OwnedBatch {
    /// Returns a batch without requests, with `gap` unused words between rows of `k` ids.
    pub fn new(k: usize, gap: usize) -> Self {
        Self { k, stride: k + gap, cu_q: vec![0], ..Self::default() }
    }

    /// Returns a batch of `requests` requests with `tokens` rows of zeros each, in the states 0, 1, .. and
    /// of generation 1, without a stable length or a block table.
    pub fn uniform(k: usize, requests: usize, tokens: usize, seq: usize) -> Self {
        Self {
            ids: vec![0; requests * tokens * k],
            cu_q: (0..=requests).map(|request| (request * tokens) as i32).collect(),
            state: (0..requests as i32).collect(),
            generation: vec![1; requests],
            stable: vec![-1; requests],
            seq: vec![seq as i32; requests],
            ..Self::new(k, 0)
        }
    }

    /// Adds a request (state, generation, stable_len, seq_len) with rows of `k` ids.
    pub fn push(&mut self, [state, generation, stable, seq]: [i32; 4], rows: &[Vec<i32>]) {
        for row in rows {
            assert_eq!(row.len(), self.k, "a row has k ids");
            self.ids.extend(row);
            self.ids.resize(self.ids.len() + self.stride - self.k, 0);
        }
        self.cu_q.push(self.cu_q[self.state.len()] + rows.len() as i32);
        self.state.push(state);
        self.generation.push(generation);
        self.stable.push(stable);
        self.seq.push(seq);
    }

    /// Returns the batch as the engine takes it.
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            ids: &self.ids,
            ids_stride: self.stride,
            k: self.k,
            cu_q: &self.cu_q,
            state: &self.state,
            generation: &self.generation,
            stable_len: &self.stable,
            seq_len: &self.seq,
            block_table: &self.blocks,
            block_stride: self.block_stride,
            indexer: self.indexer,
        }
    }

    /// Returns all arrays in the order in which kernels and the C ABI take them.
    pub fn arrays(&self) -> [&[i32]; 7] {
        let Self { ids, cu_q, state, generation, stable, seq, blocks, .. } = self;
        [ids, cu_q, state, generation, stable, seq, blocks].map(|array| &array[..])
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.cu_q[self.state.len()] as usize
    }

    /// Returns the `k` ids of one row.
    pub fn row(&self, row: usize) -> &[i32] {
        &self.ids[row * self.stride..][..self.k]
    }
}
