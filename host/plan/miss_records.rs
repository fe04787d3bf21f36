//! The records of a plan's misses, where the pool is a file.
//!
//! The rows of one id in all layers of an indexer are one record of the file. Several misses may be of
//! one row, and so of one record, which is read once. A record has the number that its row has among
//! the rows of all misses, so that records of neighbouring rows have neighbouring numbers.

use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::disk::Bits;
use crate::system::allocator::Allocator;
use crate::system::array::Array;
use crate::system::mapping::Mapping;
use crate::system::reserve;
use crate::{Result, ensure};

const WHAT: &str = "plan's records";

/// What a plan keeps of the records of its misses. A place is an index in the miss lists.
#[derive(Debug)]
pub(crate) struct MissRecords {
    /// The places of the misses with a row of the pool, by ascending row.
    order: Array<i32>,
    /// `[records + 1]`, the index in `order` of the first place of each record, then the end.
    first: Array<i32>,
    /// The number of the record of each place in `order`.
    number: Array<i32>,
    /// The number of records.
    pub count: usize,
    sorted: bool,
    /// What the transfer that runs has found of each request.
    pub lost: Vec<FirstLost>,
    /// The places whose rows were not whole.
    pub lost_places: Bits,
    /// Memory for records that the layers of an indexer share; `None` if each has a record of its own.
    pub bounce: Option<Arc<Mapping>>,
    /// The store's stamp before the records in `bounce` were read; `None` if it does not hold them.
    pub held: Option<u64>,
}

impl MissRecords {
    /// Returns the bytes of the arrays for `places` places.
    ///
    /// # Errors
    /// If there are too many places to count with 31 bits.
    pub fn bytes_needed(places: usize) -> Result<usize> {
        ensure!(places < i32::MAX as usize, "ids of a plan" is places, but
            "a pool in a file takes fewer than {}", i32::MAX; "make a plan for fewer tokens");
        Ok((3 * places + 1) * size_of::<i32>())
    }

    /// Allocates the arrays for miss lists of `places` places, of at most `requests` requests.
    ///
    /// # Errors
    /// If memory is refused.
    pub fn new(
        places: usize,
        requests: usize,
        bounce: Option<Arc<Mapping>>,
        allocator: Option<&Arc<dyn Allocator>>,
    ) -> Result<Self> {
        let filled = |len| Array::filled(WHAT, len, 0, allocator);
        let (order, first, number) = (filled(places)?, filled(places + 1)?, filled(places)?);
        let (lost, lost_places) =
            (reserve::defaults(WHAT, requests)?, Bits::new(WHAT, places, false)?);
        let (count, sorted, held) = (0, false, None);
        Ok(Self { order, first, number, count, sorted, lost, lost_places, bounce, held })
    }

    /// Forgets the records, because the plan gets other misses.
    pub fn clear(&mut self) {
        (self.count, self.sorted, self.held) = (0, false, None);
    }

    /// Finds the records of the misses at these places, unless that is done. `rows` has the row of each
    /// place; a negative one is that of a fresh row, which is in no record.
    pub fn sort(&mut self, places: impl Iterator<Item = usize>, rows: &[i32]) {
        if self.sorted {
            return;
        }
        let mut len = 0;
        for place in places.filter(|&place| rows[place] >= 0) {
            // `bytes_needed` has checked that places fit.
            self.order[len] = place as i32;
            len += 1;
        }
        let row = |place: i32| rows[place as usize];
        sort_by_row(&mut self.order[..len], &mut self.number[..len], rows);
        (self.count, self.sorted) = (0, true);
        for at in 0..len {
            let place = self.order[at];
            if at == 0 || row(place) != row(self.order[at - 1]) {
                self.first[self.count] = at as i32;
                self.count += 1;
            }
            self.number[place as usize] = self.count as i32 - 1;
        }
        self.first[self.count] = len as i32;
    }

    /// Returns the places that are of a range of records.
    pub fn places_of(&self, records: Range<usize>) -> &[i32] {
        &self.order[self.first[records.start] as usize..self.first[records.end] as usize]
    }

    /// Returns the number of the record of a place.
    pub fn number(&self, place: usize) -> usize {
        self.number[place] as usize
    }
}

/// The first row of a request that is not whole, which threads note without a lock: the complement of its layer and row,
/// so that the first row is the largest number; 0 if all are whole.
#[derive(Debug, Default)]
pub(crate) struct FirstLost(AtomicU64);

impl FirstLost {
    pub fn note(&self, layer: usize, row: usize) {
        self.0.fetch_max(!((layer as u64) << 32 | row as u64), Ordering::Relaxed);
    }

    /// Returns the layer and the row, if there are any, and forgets them.
    pub fn take(&self) -> Option<(usize, usize)> {
        let lost = !self.0.swap(0, Ordering::Relaxed);
        (lost != u64::MAX).then_some(((lost >> 32) as usize, lost as u32 as usize))
    }
}

/// Sorts places by their rows, none of which is negative, by one byte of the rows after the other. It takes
/// as much stack for a long list as for a short one, and less time than the sorts of the standard library,
/// which recurse. `spare` is as long as `places`.
fn sort_by_row(places: &mut [i32], spare: &mut [i32], rows: &[i32]) {
    let row = |place: i32| rows[place as usize];
    let last = places.iter().map(|&place| row(place)).max().unwrap_or(0);
    for shift in (0..i32::BITS).step_by(8).take_while(|&shift| last >> shift > 0) {
        let byte = |place: i32| usize::from((row(place) >> shift) as u8);
        // The number of places with each byte, and then where the next one of them goes.
        let mut next = [0u32; 256];
        places.iter().for_each(|&place| next[byte(place)] += 1);
        let mut before = 0;
        for count in &mut next {
            before += mem::replace(count, before);
        }
        for &place in &*places {
            let to = &mut next[byte(place)];
            spare[*to as usize] = place;
            *to += 1;
        }
        places.copy_from_slice(spare);
    }
}
