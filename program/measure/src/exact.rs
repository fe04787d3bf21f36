//! Compares the slots of a step with the rows that its ids select.

use avsg::engine::Batch;

use crate::content::check_row;

/// One selected id, with its slot and the bytes of that slot.
pub struct SelectedId<'a> {
    /// Index of the request in the batch.
    pub request: usize,
    /// Index of the row in the batch.
    pub row: usize,
    /// Index of the lane in the row, below K.
    pub lane: usize,
    /// The id.
    pub id: i32,
    /// The slot, or -1.
    pub slot: i32,
    /// The bytes of the slot; empty if there is no slot or it cannot be read.
    pub bytes: &'a [u8],
    /// Whether the slot contains the row of the id, or is -1 for a lane that selects nothing.
    pub exact: bool,
}

/// Calls `visit` for each id of a batch, in order.
///
/// `slots(row)` returns the slots of a row. `read(state, slot, bytes)` reads a slot and returns
/// whether that succeeded. `content(request, id)` returns the id and the version of the row that
/// the request's id selects; it is called only for ids in `[0, seq_len)` whose slot was read.
pub fn for_each_id<'s>(
    batch: &Batch<'_>,
    row_bytes: usize,
    slots: impl Fn(usize) -> &'s [i32],
    mut read: impl FnMut(usize, usize, &mut [u8]) -> bool,
    content: impl Fn(usize, i32) -> (i32, u32),
    mut visit: impl FnMut(&SelectedId<'_>),
) {
    let mut bytes = vec![0; row_bytes];
    for (request, pair) in batch.cu_q.windows(2).enumerate() {
        let (state, seq) = (usize::try_from(batch.state[request]).ok(), batch.seq_len[request]);
        for row in pair[0] as usize..pair[1] as usize {
            let ids = &batch.ids[row * batch.ids_stride..][..batch.k];
            for (lane, (&id, &slot)) in ids.iter().zip(slots(row)).enumerate() {
                let state = state.filter(|_| (0..seq).contains(&id));
                let (slot_bytes, exact) = match (state, usize::try_from(slot)) {
                    (None, _) => (&bytes[..0], slot == -1),
                    (Some(state), Ok(slot)) if read(state, slot, &mut bytes) => {
                        let (id, version) = content(request, id);
                        (&bytes[..], check_row(id, version, &bytes))
                    }
                    _ => (&bytes[..0], false),
                };
                visit(&SelectedId { request, row, lane, id, slot, bytes: slot_bytes, exact });
            }
        }
    }
}
