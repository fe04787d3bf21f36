//! Random engines and plans: with slots of the library and of the caller, with one indexer and two.

use std::ffi::c_void;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use avsg_capi::*;
use avsg_capi_testkit::*;

use super::models::{EngineModel, Memory, SEGMENTS, Slots};
use super::random_caller::RandomCaller;
use super::shared_handles::Kind;

const STATES: usize = 2;

impl RandomCaller<'_> {
    /// Returns the configuration of an engine, which may have a mistake. The second value is what it
    /// points to.
    pub(super) fn engine_config(&mut self) -> (avsg_engine_config, Box<([u32; 2], avsg_tuning)>) {
        let mut config = engine_config();
        let mut parts = Box::new(([0, 1], sized::<avsg_tuning>()));
        let (indexers, tuning) = &mut *parts;
        tuning.table = self.below(2) as i32;
        // The paper's table has a power of two.
        let paper = tuning.table == avsg_table::AVSG_TABLE_PAPER as i32;
        config.slots = [64, 128, 192][self.below(if paper { 2 } else { 3 })];
        if self.rarely(3) {
            config.tokens = (config.slots / K as u32).min(16);
        }
        config.page = [0, 16][self.below(2)];
        config.cores = 1 + self.below(3) as u32;
        tuning.copier = self.below(4) as i32;
        tuning.copier_ahead = if tuning.copier < 2 { 0 } else { self.below(9) as u32 };
        config.workers = if self.rarely(2) { null() } else { self.handle(Kind::Workers) };
        if self.rarely(2) {
            config.layer_indexer = indexers.as_ptr();
            config.layer_indexers = self.mostly(2);
        }
        if self.rarely(3) {
            config.global_slots = 1;
            config.slot_base = self.below(5000) as i32;
        }
        if self.mistake(8) {
            let word = self.word() as u32;
            match self.below(12) {
                0 => config.slots = word,
                1 => tuning.table = word as i32,
                2 => tuning.lifetime = word as i32,
                3 => config.page = word,
                4 => config.k = word % 1000,
                5 => config.tokens = word % 20,
                6 => config.states = [0, 1, usize::MAX][word as usize % 3],
                7 => config.global_slots = word as i32,
                8 => config.slot_base = -1,
                9 => indexers[1] = word,
                10 => tuning.machine = word as i32,
                _ => tuning.copier = word as i32,
            }
        }
        self.corrupt_size(tuning);
        config.tuning = tuning;
        self.corrupt_size(&mut config);
        (config, parts)
    }

    /// Creates an engine, at times with a mistake, and keeps its handle.
    pub(super) fn create_engine(&mut self) {
        let ((mut config, parts), mut created) = (self.engine_config(), null_mut());
        let slots_per_state =
            [128, 192].into_iter().find(|&s| s == config.slots).unwrap_or(64) as usize;
        let own = self.rarely(2).then(|| self.own_slots(slots_per_state));
        let bases: Vec<*mut c_void> = own.iter().flat_map(base_pointers).collect();
        let buffer = own.as_ref().map(|slots| self.caller_buffer(slots, &bases));
        config.buffer = buffer.as_ref().map_or(null(), |buffer| buffer);
        let mut allocator = sized();
        config.allocator = self.lent_allocator(&mut allocator);
        let (pool, to) = (self.handle::<avsg_pool>(Kind::Pool), self.pointer(&mut created));
        let model = self.shared.known().pools.get(&pool.addr()).cloned();
        let of_file = model.as_ref().and_then(|model| model.indexers_of_file);
        if let Some(indexers) = of_file.filter(|_| !self.mistake(12)) {
            let several = indexers == 2;
            config.layer_indexer = if several { parts.0.as_ptr() } else { null() };
            config.layer_indexers = if several { 2 } else { 0 };
        }
        // SAFETY: `config` and the buffer are structs with a `size` that may be wrong, their arrays
        // have the lengths beside them or no memory has that many elements, the slots outlive the
        // engine, and `to` is NULL or a local variable.
        let status = unsafe { avsg_engine_create(&config, pool, to) };
        self.shared.allocator.state().until_null = 0;
        let made = self.record(status);
        if made && self.verify {
            // SAFETY: as above; a pool that exists was made of this configuration.
            let sizes = unsafe { avsg_get_memory(&config, &pool_config(), 0, 0, 0, &mut sized()) };
            assert_eq!(sizes, avsg_status::AVSG_OK, "an engine that was made: {}", last_error());
        }
        drop(parts);
        if !made {
            return;
        }
        if self.mistakes > 0 {
            // Its slots may have another shape.
            self.destroy(Kind::Engine, created.addr());
            return;
        }
        let slots = own.unwrap_or_else(|| self.library_slots(created));
        let model = EngineModel {
            pool: (model.expect("an engine is made on a pool that exists"), pool.addr()),
            slots_per_state,
            tokens: config.tokens as usize,
            slots,
            paged: config.page != 0,
            indexers: if config.layer_indexer.is_null() { 1 } else { 2 },
            global: (config.global_slots == 1).then_some(config.slot_base),
        };
        self.shared.known().engines.insert(created.addr(), Arc::new(model));
        self.keep(Kind::Engine, created.addr());
    }

    /// Returns where the slots of an engine's own buffer are.
    fn library_slots(&mut self, engine: *mut avsg_engine) -> Slots {
        let (mut bases, mut slot_stride) = ([[0; 2]; 2], [0; 2]);
        for n in 0..4 {
            let mut buffer: avsg_buffer = sized();
            // SAFETY: the struct has its `size` set.
            self.expect(unsafe { avsg_engine_get_buffer(engine, n / 2, n % 2, &mut buffer) });
            bases[n / 2][n % 2] = buffer.base.expose_provenance();
            slot_stride[n % 2] = buffer.slot_stride;
        }
        let (block_slots, block_stride, table) = (usize::MAX, [0; 2], Vec::new());
        Slots { bases, block_slots, block_stride, slot_stride, table, blocks: 0, _memory: None }
    }

    /// Returns slots in the caller's memory: with padding, in blocks or without, and with a table
    /// of blocks or in order.
    fn own_slots(&mut self, slots_per_state: usize) -> Slots {
        // The largest power of two that divides S.
        let most = 1 << slots_per_state.trailing_zeros();
        let block_slots = [usize::MAX, 16, most][self.below(3)];
        let slot_stride = SEGMENTS.map(|bytes| bytes + self.below(9));
        let total = STATES * slots_per_state;
        let (mut blocks, mut table) = (total.div_ceil(block_slots), Vec::new());
        if block_slots != usize::MAX && self.rarely(2) {
            let mut order: Vec<i32> = (0..blocks as i32 + 3).collect();
            self.random.shuffle(&mut order);
            table = order[..blocks].iter().map(|&block| AtomicI32::new(block)).collect();
            blocks += 3;
        }
        let in_block = block_slots.min(total);
        let block_stride = slot_stride.map(|stride| in_block * stride + 11);
        let area = blocks * block_stride[0].max(block_stride[1]) + 30;
        let places: Vec<(usize, usize)> = (0..4 * blocks * in_block)
            .map(|n| {
                let (place, part) = (n / 4, n % 4);
                let at = part * area
                    + place / in_block * block_stride[part % 2]
                    + place % in_block * slot_stride[part % 2];
                (at, SEGMENTS[part % 2])
            })
            .collect();
        let memory = Memory::new(4 * area, places.into_iter());
        let base = |part: usize| memory.address(part * area).expose_provenance();
        let bases = [[base(0), base(1)], [base(2), base(3)]];
        let _memory = Some(memory);
        Slots { bases, block_slots, block_stride, slot_stride, table, blocks, _memory }
    }

    /// Returns the description of slots in the caller's memory, which may have a mistake.
    fn caller_buffer(&mut self, slots: &Slots, bases: &[*mut c_void]) -> avsg_caller_buffer {
        let [first, second] = slots.slot_stride;
        let mut buffer = avsg_caller_buffer {
            bases: bases.as_ptr(),
            base_count: self.mostly(4),
            block_slots: if slots.block_slots == usize::MAX { 0 } else { slots.block_slots },
            block_stride: [slots.block_stride[0], slots.block_stride[1], 0, 0],
            slot_stride: [first, second, 0, 0],
            ..sized()
        };
        if !slots.table.is_empty() {
            buffer.state_blocks = slots.table.as_ptr().cast();
            (buffer.state_blocks_len, buffer.blocks) =
                (self.mostly(slots.table.len()), slots.blocks);
        }
        if self.mistake(6) {
            let odd = [0, 1, 15, 48, 1024, usize::MAX, self.word() as usize][self.below(7)];
            let n = self.below(3);
            match self.below(6) {
                0 => buffer.bases = null(),
                1 => buffer.block_slots = odd,
                2 => buffer.block_stride[n] = odd,
                3 => buffer.slot_stride[n] = odd,
                4 => buffer.state_blocks = null(),
                _ => buffer.blocks = odd,
            }
        }
        self.corrupt_size(&mut buffer);
        buffer
    }

    /// Creates a plan, at times with a mistake, keeps its handle, and returns it.
    pub(super) fn create_plan(&mut self, engine: *mut avsg_engine) -> *mut avsg_plan {
        let mut created = null_mut();
        let before = self.mistakes;
        let tokens = self.engine_model(engine).map_or(2, |model| model.tokens);
        let (rows, requests) = (self.mostly(2 * tokens), self.mostly(2));
        let to = self.pointer(&mut created);
        // SAFETY: `to` is NULL or a local variable, and handles are looked up.
        if self.record(unsafe { avsg_plan_create(engine, rows, requests, to) }) {
            if self.mistakes > before {
                self.destroy(Kind::Plan, created.addr());
            } else {
                self.shared.known().plans.insert(created.addr(), engine.addr());
                self.keep(Kind::Plan, created.addr());
            }
        }
        created
    }

    /// Puts the blocks of an engine's slots in another order.
    pub(super) fn move_blocks(&mut self, model: &EngineModel) {
        let mut order: Vec<i32> = (0..model.slots.blocks as i32).collect();
        self.random.shuffle(&mut order);
        let blocks = model.slots.table.iter().zip(order);
        blocks.for_each(|(entry, block)| entry.store(block, Ordering::Relaxed));
    }
}

fn base_pointers(slots: &Slots) -> impl Iterator<Item = *mut c_void> {
    let addresses = slots.bases.into_iter().flatten();
    addresses.map(std::ptr::with_exposed_provenance_mut)
}
