//! Random pools in files: private ones, and ones that are kept, closed and opened again. Some of their rows
//! are not written at first. A single thread demands that a read fails exactly if it needs such a row, and
//! recovers from that in one of three ways.

use std::ffi::{CString, OsStr};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::ptr::{null, null_mut, without_provenance_mut};

use avsg_capi::avsg_status::AVSG_INVALID;
use avsg_capi::*;
use avsg_capi_testkit::*;

use super::models::{EngineModel, PoolModel};
use super::random_caller::RandomCaller;

/// The file of a pool.
pub(super) struct RandomFile {
    path: CString,
    indexers: [u32; 2],
    file: avsg_pool_file,
}

impl RandomFile {
    /// Returns the struct of the file, which this value owns.
    pub(super) fn c(&self) -> avsg_pool_file {
        let file = self.file;
        let layer_indexer = if file.layer_indexers == 0 { null() } else { self.indexers.as_ptr() };
        avsg_pool_file { path: self.path.as_ptr(), layer_indexer, ..file }
    }

    /// Returns the number of indexers of the pool's layers.
    pub(super) fn indexers(&self) -> usize {
        if self.file.layer_indexers == 0 { 1 } else { 1 + self.indexers[1] as usize }
    }

    /// Removes the name of a kept file. What has it open keeps it.
    pub(super) fn remove(&self) {
        if self.file.keep == 1 {
            std::fs::remove_file(OsStr::from_bytes(self.path.as_bytes())).unwrap();
        }
    }
}

impl RandomCaller<'_> {
    /// Returns the description of a file, which may have a mistake.
    pub(super) fn file(&mut self) -> RandomFile {
        let mut path = self.shared.folder.path().to_owned();
        let mut file: avsg_pool_file = sized();
        (file.keep, file.buffered) = (self.below(2) as i32, self.shared.buffered.into());
        file.queue_bytes = [0, 1, 9000][self.below(3)];
        file.layer_indexers = [0, 2][self.below(2)];
        let mut indexers = [0, self.below(2) as u32];
        if self.mistake(8) {
            let word = self.word();
            match self.below(6) {
                0 => file.keep = word as i32,
                1 => file.buffered = word as i32,
                2 => file.layer_indexers = word as usize % 3,
                3 => indexers[1] = word as u32,
                4 => path.push("no folder"),
                _ => file.size = word as usize % 80,
            }
        }
        if file.keep == 1 {
            path.push(format!("{:x}", self.word()));
        }
        let path = CString::new(path.into_os_string().into_vec()).unwrap();
        RandomFile { path, indexers, file }
    }

    /// Flushes and destroys a pool in a file that is kept, opens the file, and removes its name.
    pub(super) fn open_again(&mut self, pool: *mut avsg_pool, file: &RandomFile) -> *mut avsg_pool {
        if file.file.keep == 0 {
            return pool;
        }
        self.expect(avsg_pool_flush(pool));
        self.expect(avsg_pool_destroy(pool));
        let mut opened = null_mut();
        // SAFETY: the struct has its `size` set, and `file` owns what it points to.
        self.expect(unsafe { avsg_pool_open(&file.c(), &mut opened) });
        file.remove();
        opened
    }

    /// Checks that a transfer of a plan to some layers without a mistake has failed exactly if it needs a row
    /// that was never written. After a failure it writes these rows and transfers the plan again, discards the
    /// plan, or leaves it and takes new generations. Returns whether the layers have the plan.
    pub(super) fn recover(
        &mut self,
        (engine, model): (*mut avsg_engine, &EngineModel),
        plan: *mut avsg_plan,
        layers: &[usize],
        fresh: &[avsg_fresh],
        status: avsg_status,
    ) -> bool {
        let text = last_error();
        let unwritten = self.unwritten(&model.pool.0, plan, layers);
        if unwritten.is_empty() {
            assert_eq!(status, avsg_status::AVSG_OK, "a transfer without a mistake: {text}");
            return true;
        }
        assert!(status == AVSG_INVALID && text.contains("never written"), "{status:?}: {text}");
        let known = self.shared.known().pools.contains_key(&model.pool.1);
        let way = if known { self.below(3) } else { 1 + self.below(2) };
        self.recovered[way] += 1;
        match way {
            0 => {
                let pool = without_provenance_mut(model.pool.1);
                for (layer, row) in unwritten {
                    model.pool.0.write(pool, layer, row, &model.pool.0.row(layer, row));
                }
                let (at, count, fresh) = (layers.as_ptr(), layers.len(), fresh.as_ptr());
                // SAFETY: the lists have the same length, and the caller owns the fresh rows.
                self.expect(unsafe {
                    avsg_engine_transfer(engine, plan, at, count, fresh, null_mut())
                });
                return true;
            }
            1 => self.expect(avsg_engine_discard(engine, plan)),
            _ => self.epoch += 1,
        }
        false
    }

    /// Returns the layer and row of what a plan missed and some of the layers lack.
    fn unwritten(
        &mut self,
        pool: &PoolModel,
        plan: *mut avsg_plan,
        layers: &[usize],
    ) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        let mut counters: avsg_plan_counters = sized();
        // SAFETY: the struct has its `size` set.
        self.expect(unsafe { avsg_plan_get_counters(plan, &mut counters) });
        for request in 0..counters.requests {
            let rows = missed(plan, request, false);
            let rows = rows.into_iter().filter_map(|row| usize::try_from(row).ok());
            all.extend(rows.flat_map(|row| layers.iter().map(move |&layer| (layer, row))));
        }
        all.retain(|&(layer, row)| !pool.is_written(layer, row));
        all
    }
}
