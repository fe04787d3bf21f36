//! A batch that owns its arrays, built request by request.

use avsg::engine::Batch;

/// The arrays of a [`Batch`]. Words between rows are junk that nobody may read.
#[derive(Clone, Debug)]
pub struct Owned {
    /// Ids per row.
    pub k: usize,
    /// Words from row to row of `ids`.
    pub stride: usize,
    /// Selected ids, row by row.
    pub ids: Vec<i32>,
    /// First row of each request, and the number of rows.
    pub cu_q: Vec<i32>,
    /// State of each request.
    pub state: Vec<i32>,
    /// Generation of each request.
    pub generation: Vec<i32>,
    /// `stable_len` of each request.
    pub stable: Vec<i32>,
    /// `seq_len` of each request.
    pub seq: Vec<i32>,
    /// Block tables, request by request.
    pub blocks: Vec<i32>,
    /// Entries of one request in `blocks`.
    pub block_stride: usize,
}

impl Owned {
    /// No requests yet; `gap` junk words lie between rows of `k` ids.
    pub fn new(k: usize, gap: usize) -> Self {
        let (ids, cu_q, blocks) = (Vec::new(), vec![0], Vec::new());
        let [state, generation, stable, seq] = [(); 4].map(|()| Vec::new());
        let stride = k + gap;
        Self { k, stride, ids, cu_q, state, generation, stable, seq, blocks, block_stride: 0 }
    }

    /// Zeroed arrays of the largest batch: so many requests, rows, and blocks of a request.
    pub fn room(k: usize, requests: usize, rows: usize, blocks: usize) -> Self {
        let [state, generation, stable, seq] = [(); 4].map(|()| vec![0; requests]);
        let (ids, cu_q, table) =
            (vec![0; rows * k], vec![0; requests + 1], vec![0; requests * blocks]);
        let (stride, blocks, block_stride) = (k, table, blocks);
        Self { k, stride, ids, cu_q, state, generation, stable, seq, blocks, block_stride }
    }

    /// Adds a request with these rows of ids: (state, generation, stable_len, seq_len).
    pub fn push(&mut self, [state, generation, stable, seq]: [i32; 4], rows: &[Vec<i32>]) {
        for row in rows {
            assert_eq!(row.len(), self.k, "a row of the test's own");
            self.ids.extend(row);
            self.ids.resize(self.ids.len() + self.stride - self.k, 0);
        }
        self.cu_q.push(self.cu_q[self.state.len()] + rows.len() as i32);
        self.state.push(state);
        self.generation.push(generation);
        self.stable.push(stable);
        self.seq.push(seq);
    }

    /// The view that the engine takes.
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
        }
    }

    /// All arrays, in the order in which kernels and the C ABI take them.
    pub fn arrays(&self) -> [&[i32]; 7] {
        [
            &self.ids,
            &self.cu_q,
            &self.state,
            &self.generation,
            &self.stable,
            &self.seq,
            &self.blocks,
        ]
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.cu_q[self.state.len()] as usize
    }

    /// The ids of one row.
    pub fn row(&self, row: usize) -> &[i32] {
        &self.ids[row * self.stride..][..self.k]
    }
}
