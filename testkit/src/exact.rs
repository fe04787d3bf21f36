//! What must hold of every selected id after a step: it has a slot that holds its row, byte for byte,
//! and what selects nothing has no slot.

use avsg::engine::{Batch, Engine};
use avsg::plan::Plan;

use crate::batch::Owned;
use crate::content::check_row;

/// One selected id and what the step gave it.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Its request.
    pub request: usize,
    /// The row of the batch.
    pub row: usize,
    /// Its place in the row.
    pub lane: usize,
    /// The id.
    pub id: i32,
    /// Its slot, or -1.
    pub slot: i32,
    /// What the slot holds; nothing where there is no slot or it cannot be read.
    pub bytes: &'a [u8],
    /// Whether all of that is as it must be.
    pub right: bool,
}

/// Looks at every id of a batch in its order. `slots` are a row's; `read` reads the slot of a state and
/// says whether it could; `content` is the id and version of the row that a request's id names. It is asked
/// for ids with a slot alone, and for no padding and no id from the sequence length on.
pub fn look<'s>(
    batch: &Batch<'_>,
    row_bytes: usize,
    slots: impl Fn(usize) -> &'s [i32],
    mut read: impl FnMut(usize, usize, &mut [u8]) -> bool,
    content: impl Fn(usize, i32) -> (i32, u32),
    mut seen: impl FnMut(&Seen<'_>),
) {
    let mut bytes = vec![0; row_bytes];
    for (request, pair) in batch.cu_q.windows(2).enumerate() {
        let (state, seq) = (usize::try_from(batch.state[request]).ok(), batch.seq_len[request]);
        for row in pair[0] as usize..pair[1] as usize {
            let ids = &batch.ids[row * batch.ids_stride..][..batch.k];
            for (lane, (&id, &slot)) in ids.iter().zip(slots(row)).enumerate() {
                let state = state.filter(|_| (0..seq).contains(&id));
                let (held, right) = match (state, usize::try_from(slot)) {
                    (None, _) => (&bytes[..0], slot == -1),
                    (Some(state), Ok(place)) if read(state, place, &mut bytes) => {
                        let (id, version) = content(request, id);
                        (&bytes[..], check_row(id, version, &bytes))
                    }
                    _ => (&bytes[..0], false),
                };
                seen(&Seen { request, row, lane, id, slot, bytes: held, right });
            }
        }
    }
}

/// Every id of a step on an engine is right on this layer; `content` is the id and version of the row
/// that a request's id names. Returns how many rows were compared.
pub fn expect(
    engine: &Engine,
    plan: &Plan,
    owned: &Owned,
    layer: usize,
    content: impl Fn(usize, i32) -> (i32, u32),
) -> usize {
    let mut checked = 0;
    look(
        &owned.batch(),
        engine.pool().format().bytes(),
        |row| plan.slots(row),
        |state, slot, bytes| engine.buffer().slot_bytes(state, layer, slot, bytes).is_ok(),
        content,
        |seen| checked += expect_right(seen, layer),
    );
    checked
}

/// Fails if an id is wrong. Returns the number of rows that were compared for it, 0 or 1.
pub fn expect_right(seen: &Seen<'_>, layer: usize) -> usize {
    let Seen { request, row, lane, id, slot, .. } = seen;
    assert!(
        seen.right,
        "layer {layer}, request {request}, row {row}, lane {lane}, id {id}, slot {slot}"
    );
    usize::from(!seen.bytes.is_empty())
}
