//! The slots of a buffer in an order from the oldest to the newest.

/// A doubly linked ring of slots; node S is the head between the newest and the oldest slot.
#[derive(Debug)]
pub struct Order {
    /// The next older node of each node.
    older: Vec<u32>,
    /// The next newer node of each node.
    newer: Vec<u32>,
}

impl Order {
    /// Creates an order of at least one slot, in which slot 0 is the oldest.
    pub fn new(slots: usize) -> Self {
        let n = slots as u32 + 1;
        let older = (0..n).map(|i| (i + n - 1) % n).collect();
        let newer = (0..n).map(|i| (i + 1) % n).collect();
        Self { older, newer }
    }

    fn head(&self) -> usize {
        self.newer.len() - 1
    }

    /// Returns the oldest slot.
    pub fn oldest(&self) -> usize {
        self.newer[self.head()] as usize
    }

    /// Returns the next newer slot; behind the newest comes the oldest.
    pub fn newer(&self, slot: usize) -> usize {
        match self.newer[slot] as usize {
            head if head == self.head() => self.oldest(),
            newer => newer,
        }
    }

    /// Makes a slot the newest.
    pub fn make_newest(&mut self, slot: usize) {
        let head = self.head();
        let (older, newer) = (self.older[slot], self.newer[slot]);
        self.newer[older as usize] = newer;
        self.older[newer as usize] = older;
        let newest = self.older[head];
        (self.older[slot], self.newer[slot]) = (newest, head as u32);
        self.newer[newest as usize] = slot as u32;
        self.older[head] = slot as u32;
    }
}
