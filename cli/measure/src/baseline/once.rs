//! Gathers that copy a row once: within each step they need no buffer, within a whole trace they are the ceiling of
//! all buffers.

use super::Policy;

/// The steps in which rows were selected.
#[derive(Debug)]
pub struct Once {
    /// The last step that selected each id, counted from 1; 0 for none.
    last: Vec<u32>,
    /// The running step, counted from 1.
    step: u32,
    /// Whether rows are kept from one step to the next.
    keeps: bool,
}

impl Once {
    /// Returns the gather that copies each row once per step, whichever tokens of the step select it.
    pub fn per_step() -> Self {
        Self { last: Vec::new(), step: 0, keeps: false }
    }

    /// Returns the buffer of unlimited size, which no other can surpass.
    pub fn per_trace() -> Self {
        Self { keeps: true, ..Self::per_step() }
    }
}

impl Policy for Once {
    fn begin_step(&mut self) {
        self.step += 1;
    }

    fn token(&mut self, ids: &[i32], misses: &mut Vec<i32>) {
        for &id in ids.iter().filter(|&&id| id >= 0) {
            let at = id as usize;
            if at >= self.last.len() {
                self.last.resize(at + 1, 0);
            }
            let before = std::mem::replace(&mut self.last[at], self.step);
            if before == 0 || before != self.step && !self.keeps {
                misses.push(id);
            }
        }
    }
}
