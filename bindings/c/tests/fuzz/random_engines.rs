//! Random engines and plans: with slots of the library and of the caller, with one indexer and two.

use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use avsg_capi::*;
use avsg_capi_testkit::caller_memory::buffer;
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
        config.buffer = own.as_ref().map_or(null(), |(_, buffer)| buffer);
        let mut allocator = sized();
        config.allocator = self.lent_allocator(&mut allocator);
        let (pool, to) = (self.handle::<avsg_pool>(Kind::Pool), self.pointer(&mut created));
        let model = self.pool_model(pool);
        let of_file = model.as_ref().and_then(|model| model.indexers_of_file);
        if let Some(indexers) = of_file.filter(|_| !self.mistake(12)) {
            let lists = [(null(), 0), (parts.0.as_ptr(), 2)];
            (config.layer_indexer, config.layer_indexers) = lists[indexers - 1];
        }
        // SAFETY: `config` and the buffer are structs with a `size` that may be wrong, their arrays
        // have the lengths beside them or no memory has that many elements, the slots outlive the
        // engine, and `to` is NULL or a local variable.
        let [query, status] = unsafe {
            let query = avsg_get_memory(&config, &pool_config(), 0, 0, 0, &mut sized());
            [query, avsg_engine_create(&config, pool, to)]
        };
        self.shared.allocator.state().until_null = 0;
        let made = self.record(status);
        // A pool in a file has indexers of its own.
        let comparable = model.is_some() && of_file.is_none() && !to.is_null();
        // The query does not know where the rows of this pool are, which slots with a wrong stride may reach.
        let at_rows = query == avsg_status::AVSG_OK && last_error().contains("have the same bytes");
        let comparable = comparable && (made || !at_rows);
        if self.verify && (made || comparable && status != avsg_status::AVSG_NO_MEMORY) {
            assert_eq!(query, status, "one of them said: {}", last_error());
        }
        if !made {
            return;
        }
        if self.mistakes > 0 {
            // Its slots may have another shape.
            self.destroy(Kind::Engine, created.addr());
            return;
        }
        let model = EngineModel {
            pool: model.expect("an engine is made on a pool that exists"),
            tokens: config.tokens as usize,
            slots: match own {
                Some((slots, _)) => slots,
                None => self.library_slots(created, slots_per_state),
            },
            paged: config.page != 0,
            indexers: if config.layer_indexer.is_null() { 1 } else { 2 },
            global: (config.global_slots == 1).then_some(config.slot_base),
        };
        self.shared.known().engines.insert(created.addr(), Arc::new(model));
        self.keep(Kind::Engine, created.addr());
    }

    /// Returns where the slots of an engine's own buffer are.
    fn library_slots(&mut self, engine: *mut avsg_engine, block_slots: usize) -> Slots {
        let buffers = [0, 1, 2, 3].map(|n| {
            // SAFETY: the struct has its `size` set.
            self.filled(|to| unsafe { avsg_engine_get_buffer(engine, n / 2, n % 2, to) })
        });
        Slots {
            bases: buffers.map(|buffer| buffer.base.expose_provenance()),
            block_slots,
            block_stride: [0, 1].map(|segment| buffers[segment].state_stride),
            slot_stride: [0, 1].map(|segment| buffers[segment].slot_stride),
            table: vec![AtomicI32::new(0), AtomicI32::new(1)],
            blocks: STATES,
            _memory: None,
        }
    }

    /// Returns slots in the caller's memory: with padding, in blocks or without, and with a table
    /// of blocks or in order. Their description may have a mistake.
    fn own_slots(&mut self, slots_per_state: usize) -> (Slots, avsg_caller_buffer) {
        // The largest power of two that divides S.
        let most = 1 << slots_per_state.trailing_zeros();
        let given = [0, 16, most][self.below(3)];
        let block_slots = if given == 0 { slots_per_state } else { given };
        let slot_stride = SEGMENTS.map(|bytes| bytes + self.below(9));
        let padding = if given == 0 { 0 } else { 11 };
        let block_stride = slot_stride.map(|stride| block_slots * stride + padding);
        let used = STATES * slots_per_state / block_slots;
        let movable = given != 0 && self.rarely(2);
        let blocks = if movable { used + 3 } else { used };
        let mut order: Vec<i32> = (0..blocks as i32).collect();
        if movable {
            self.random.shuffle(&mut order);
        }
        let table: Vec<AtomicI32> = order[..used].iter().map(|&n| AtomicI32::new(n)).collect();
        let area = blocks * block_stride[0].max(block_stride[1]) + 30;
        let places = (0..4 * blocks * block_slots).map(|n| {
            let (place, part, segment) = (n / 4, n % 4, n % 2);
            let at = place / block_slots * block_stride[segment]
                + place % block_slots * slot_stride[segment];
            (part * area + at, SEGMENTS[segment])
        });
        let memory = Memory::new(4 * area, places);
        let bases = [0, 1, 2, 3].map(|part| memory.address(part * area));
        let mut buffer = avsg_caller_buffer {
            base_count: self.mostly(4),
            block_slots: given,
            block_stride: [block_stride[0], block_stride[1], 0, 0],
            ..buffer(bases, slot_stride)
        };
        if movable {
            buffer.state_blocks = table.as_ptr().cast();
            (buffer.state_blocks_len, buffer.blocks) = (self.mostly(used), blocks);
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
        let (bases, _memory) = (bases.map(|base| base.expose_provenance()), Some(memory));
        (Slots { bases, block_slots, block_stride, slot_stride, table, blocks, _memory }, buffer)
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

    /// Puts the blocks of an engine's slots in another order at times, if the library reads a table of them.
    pub(super) fn move_blocks(&mut self, model: &EngineModel) {
        let Slots { table, blocks, .. } = &model.slots;
        if *blocks > table.len() && self.rarely(100) {
            let mut order: Vec<i32> = (0..*blocks as i32).collect();
            self.random.shuffle(&mut order);
            table.iter().zip(order).for_each(|(entry, n)| entry.store(n, Ordering::Relaxed));
            self.epoch += 1;
        }
    }
}
