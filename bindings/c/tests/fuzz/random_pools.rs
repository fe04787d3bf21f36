//! Random pools: in memory of the library, in memory of the caller by a layout, and in a file. The query of
//! their size refuses what creation refuses, and nothing else.

use std::ptr::{null, null_mut};
use std::sync::Arc;

use avsg_capi::avsg_status::*;
use avsg_capi::*;
use avsg_capi_testkit::caller_memory::{self, BLOCK, BLOCK_ROWS, LAYER, ROW_STRIDE, part, region};
use avsg_capi_testkit::*;

use super::models::{Memory, PoolModel, SEGMENTS};
use super::random_caller::RandomCaller;
use super::random_files::RandomFile;
use super::shared_handles::Kind;

/// Bytes from the start of a region to the first row of each segment.
const OFFSET: [usize; 2] = [0, BLOCK_ROWS * 32];

/// Returns the start and length of each segment of each row of a region.
fn segments_of(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    let indices = (0..rows * 4).map(|n| (n / 4, n / 2 % 2, n % 2));
    indices.map(|(row, layer, segment)| {
        let in_block = OFFSET[segment] + row % BLOCK_ROWS * ROW_STRIDE[segment];
        (row / BLOCK_ROWS * BLOCK + layer * LAYER + in_block, SEGMENTS[segment])
    })
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
        let file = (self.below(3) == 0).then(|| self.file());
        if let Some(RandomFile { file, .. }) = &file {
            config.file = file;
            config.allocator = if self.mistake(20) { config.allocator } else { null() };
        }
        self.corrupt_size(&mut config);
        let to = self.pointer(&mut created);
        let own = (file.is_none() && !self.rarely(2)).then(|| self.layout());
        config.layout = own.as_ref().map_or(null(), |(layout, _)| layout);
        // SAFETY: `config` and what it points to are structs with a `size` that may be wrong, whose arrays have at
        // least the lengths beside them, or no memory has that many elements; the regions outlive the pool, which is
        // not used if its layout is wrong; and `to` is NULL or a local variable.
        let [query, status] = unsafe {
            [avsg_get_memory(null(), &config, 0, 0, 0, &mut sized()), avsg_pool_create(&config, to)]
        };
        self.shared.allocator.state().until_null = 0;
        if self.verify && !to.is_null() && !matches!(status, AVSG_NO_MEMORY | AVSG_OS) {
            assert_eq!(query, status, "one of them said: {}", last_error());
        }
        if !self.record(status) {
            return;
        }
        if self.mistakes > 0 {
            // Its rows may have another shape.
            self.destroy(Kind::Pool, created.addr());
            file.inspect(RandomFile::remove);
            return;
        }
        let memory = own.map(|(_, memory)| memory);
        let mut model =
            PoolModel::new(created.addr(), file.as_ref().map(RandomFile::indexers), memory);
        let gaps = file.is_some() && !self.rarely(3);
        for (layer, i) in (0..2 * ROWS).map(|n| (n / ROWS, n % ROWS)) {
            if !(gaps && self.rarely(4)) {
                model.restore(layer, i);
            }
        }
        if let Some(file) = &file {
            created = self.open_again(created, file);
            model.handle = created.addr();
        }
        self.shared.known().pools.insert(created.addr(), Arc::new(model));
        self.keep(Kind::Pool, created.addr());
    }

    /// Returns a layout, which may have a mistake, and its memory.
    fn layout(&mut self) -> (avsg_pool_layout, Memory) {
        let count = 1 + self.below(2);
        let rows = ROWS / count;
        let bytes = rows / BLOCK_ROWS * BLOCK;
        let start = |region: usize| 3 + region * (bytes + 13);
        let used =
            (0..count).flat_map(|r| segments_of(rows).map(move |(at, n)| (start(r) + at, n)));
        let memory = Memory::new(start(count), used);
        let mut regions: Vec<avsg_region> =
            (0..count).map(|r| region(memory.address(start(r)), bytes)).collect();
        let part = |n: usize| {
            let (region, first_row) = (n / 2, n / 2 * rows);
            avsg_pool_part { region, first_row, rows, ..part(n % 2, OFFSET[n % 2], LAYER) }
        };
        let mut parts: Vec<_> = (0..2 * count).map(part).collect();
        let mut layout = avsg_pool_layout {
            block_rows: BLOCK_ROWS,
            block_stride: [BLOCK, BLOCK, 0, 0],
            row_stride: [ROW_STRIDE[0], ROW_STRIDE[1], 0, 0],
            region_count: self.mostly(count),
            part_count: self.mostly(2 * count),
            ..sized()
        };
        if self.mistake(3) {
            let odd = [0, 1, 3, 64, usize::MAX, usize::MAX / 2, self.word() as usize];
            let (odd, n) = (odd[self.below(7)], self.below(count));
            let at = self.below(parts.len());
            let part = &mut parts[at];
            match self.below(14) {
                0 => regions[n].data = null_mut(),
                1 => regions[n].bytes = odd.min(bytes - 1),
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
        let arrays = caller_memory::layout(ROW_STRIDE, &regions, &parts);
        (layout.regions, layout.parts) = (arrays.regions, arrays.parts);
        (layout, memory)
    }
}
