//! The row-by-row results of a replay as an `.npz` file, which NumPy can check.

use std::path::Path;

use crate::npz;
use avsg::Result;
use avsg::engine::Engine;
use avsg::plan::Plan;

/// The arrays of the results file for request 0, filled step by step.
#[derive(Default)]
pub struct Results {
    /// The slot of every id, -1 for padding.
    slot: Vec<i32>,
    /// 1 for a hit, 0 for a miss and for padding.
    hit: Vec<u8>,
    /// The number of ids that each token missed.
    misses: Vec<i32>,
    /// The miss lists in their order: step, position (token * K + index), id and slot of each miss.
    miss: Vec<i32>,
    /// The start of each core's part of a step's miss list, then the length of the list.
    cut: Vec<i32>,
    /// The first 8 bytes of the row in the slot of every id, little endian; 0 for padding.
    tag: Vec<u64>,
    steps: usize,
}

impl Results {
    /// Adds the results of a step whose tokens selected `ids`, and whose slots begin with `tags`.
    pub fn push(&mut self, engine: &Engine, plan: &Plan, ids: &[i32], tags: &[u64]) {
        let (tokens, list) = (engine.config().params.tokens as usize, plan.misses(0));
        (0..tokens).for_each(|token| self.slot.extend(plan.slots(token)));
        let first = self.hit.len();
        self.hit.extend(ids.iter().map(|&id| u8::from(id >= 0)));
        list.position.iter().for_each(|&position| self.hit[first + position as usize] = 0);
        self.misses.extend(plan.row_misses());
        for (at, &position) in list.position.iter().enumerate() {
            self.miss.extend([self.steps as i32, position, list.id[at], list.slot[at]]);
        }
        self.cut.extend(engine.cuts(plan, 0).map(|cut| cut as i32));
        self.tag.extend(tags);
        self.steps += 1;
    }

    /// Writes the arrays of steps with `tokens` tokens of `k` ids to an `.npz` file.
    pub fn write(&self, path: &Path, tokens: usize, k: usize) -> Result<()> {
        let (steps, ids) = (self.steps, [self.steps, tokens, k]);
        let arrays = [
            ("slot", npz::array(&ids, &self.slot)),
            ("hit", npz::array(&ids, &self.hit)),
            ("misses", npz::array(&[steps, tokens], &self.misses)),
            ("miss", npz::array(&[self.miss.len() / 4, 4], &self.miss)),
            ("cut", npz::array(&[steps, self.cut.len() / steps.max(1)], &self.cut)),
            ("tag", npz::array(&ids, &self.tag)),
        ];
        npz::write(path, &arrays)
    }
}
