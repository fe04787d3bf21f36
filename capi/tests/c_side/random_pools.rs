//! Random pools: in memory of the library, and in memory of the caller by a layout.

use std::ptr::null_mut;
use std::sync::Arc;

use avsg_capi::*;
use avsg_capi_testkit::*;

use super::models::{Memory, PoolModel, SEGMENTS};
use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

/// Where the rows of a region are.
struct RegionShape {
    block_rows: usize,
    block_stride: usize,
    row_stride: [usize; 2],
    layer_stride: usize,
    offset: [usize; 2],
    bytes: usize,
}

impl RegionShape {
    fn new(kind: usize, rows: usize) -> Self {
        match kind {
            // Layer-major, with padded rows.
            0 => Self {
                block_rows: 0,
                block_stride: 0,
                row_stride: [31, 17],
                layer_stride: rows * 48 + 5,
                offset: [0, rows * 31],
                bytes: 2 * (rows * 48 + 5),
            },
            // Token-major: both layers of a row, and padding.
            1 => Self {
                block_rows: 0,
                block_stride: 0,
                row_stride: [86; 2],
                layer_stride: ROW,
                offset: [0, SEGMENTS[0]],
                bytes: rows * 86,
            },
            // Block-major: the rows of both segments in both layers, and padding.
            _ => Self {
                block_rows: 16,
                block_stride: 2 * 16 * 49 + 100,
                row_stride: [32, 17],
                layer_stride: 16 * 49,
                offset: [0, 16 * 32],
                bytes: rows / 16 * (2 * 16 * 49 + 100),
            },
        }
    }

    /// Returns the start and length of each segment of each row.
    fn rows(&self, rows: usize) -> impl Iterator<Item = (usize, usize)> {
        let block = if self.block_rows == 0 { usize::MAX } else { self.block_rows };
        let indices = (0..rows * 4).map(|n| (n / 4, n / 2 % 2, n % 2));
        indices.map(move |(row, layer, segment)| {
            let at = self.offset[segment]
                + layer * self.layer_stride
                + row / block * self.block_stride
                + row % block * self.row_stride[segment];
            (at, SEGMENTS[segment])
        })
    }
}

impl RandomCaller<'_> {
    /// Creates a pool, at times with a mistake, and keeps its handle.
    pub(super) fn create_pool(&mut self) {
        let (mut config, mut created) = (pool_config(), null_mut());
        config.layers = self.mostly(2);
        config.segments = self.mostly(2);
        config.chunk_bytes = [0, 4096, usize::MAX][self.below(3)];
        if self.mistake(20) {
            config.pages = self.word() as i32;
        }
        let mut allocator = sized();
        config.allocator = self.lent_allocator(&mut allocator);
        self.corrupt_size(&mut config);
        let to = self.pointer(&mut created);
        let (status, memory) = match self.below(2) {
            // SAFETY: `config` is a struct with a `size` that may be wrong, and `to` is NULL or a
            // local variable.
            0 => (unsafe { avsg_pool_create(&config, to) }, None),
            _ => self.pool_by_layout(&config, to),
        };
        self.shared.allocator.state().until_null = 0;
        if !self.record(status) {
            return;
        }
        if self.mistakes > 0 {
            // Its rows may have another shape.
            self.destroy(Kind::Pool, created.addr());
            return;
        }
        let model = Arc::new(PoolModel::new(memory));
        let handles = Handles::from_raw(created, null_mut(), null_mut());
        for layer in 0..2 {
            (0..ROWS).for_each(|i| handles.write_row(layer, i, &model.row(layer, i)));
        }
        self.shared.known().pools.insert(created.addr(), model);
        self.keep(Kind::Pool, created.addr());
    }

    fn pool_by_layout(
        &mut self,
        config: &avsg_pool_config,
        to: *mut *mut avsg_pool,
    ) -> (avsg_status, Option<Memory>) {
        let count = 1 + self.below(2);
        let (rows, kind) = (ROWS / count, self.below(3));
        let shape = RegionShape::new(kind, rows);
        let start = |region: usize| 3 + region * (shape.bytes + 13);
        let used = (0..count).flat_map(|r| shape.rows(rows).map(move |(at, n)| (start(r) + at, n)));
        let memory = Memory::new(start(count), used);
        let mut regions: Vec<avsg_region> = (0..count)
            .map(|r| {
                let data = memory.address(start(r)).cast();
                avsg_region { data, bytes: shape.bytes, device_address: 0 }
            })
            .collect();
        let mut parts: Vec<avsg_pool_part> = (0..2 * count)
            .map(|n| avsg_pool_part {
                region: n / 2,
                offset: shape.offset[n % 2],
                segment: n % 2,
                first_layer: 0,
                layers: 2,
                layer_stride: shape.layer_stride,
                first_row: n / 2 * rows,
                rows,
            })
            .collect();
        let mut layout = avsg_pool_layout {
            block_rows: shape.block_rows,
            block_stride: [shape.block_stride, shape.block_stride, 0, 0],
            row_stride: [shape.row_stride[0], shape.row_stride[1], 0, 0],
            region_count: self.mostly(count),
            part_count: self.mostly(2 * count),
            ..sized()
        };
        if self.mistake(3) {
            let odd = [0, 1, 3, 64, usize::MAX, usize::MAX / 2, self.word() as usize];
            let (odd, n) = (odd[self.below(7)], self.below(count));
            let part = self.below(parts.len());
            let part = &mut parts[part];
            match self.below(14) {
                0 => regions[n].data = null_mut(),
                1 => regions[n].bytes = odd.min(shape.bytes - 1),
                2 => part.region = odd,
                3 => part.offset = odd,
                4 => part.segment = odd,
                5 => part.first_layer = odd,
                6 => part.layers = odd,
                7 => part.layer_stride = odd,
                8 => part.first_row = odd,
                9 => part.rows = odd,
                10 => layout.block_rows = odd,
                11 => layout.block_stride[n] = odd,
                12 => layout.row_stride[n] = odd,
                _ => parts.swap(0, 1),
            }
        }
        self.corrupt_size(&mut layout);
        (layout.regions, layout.parts) = (regions.as_ptr(), parts.as_ptr());
        // SAFETY: the arrays have at least the lengths beside them, or no memory has that many
        // elements; the regions outlive the pool. A pool of a wrong layout is not used.
        (
            unsafe { avsg_pool_create(&avsg_pool_config { layout: &layout, ..*config }, to) },
            Some(memory),
        )
    }
}
