//! Which layers share an indexer.

use crate::sized;
use crate::status::Result;
use avsg::engine::Indexers;

/// Returns the indexers that an array names for the layers of a pool; one for all if it is empty.
///
/// # Safety
/// `of_layer` is NULL or valid for reads of `count` elements.
pub(crate) unsafe fn indexers(
    of_layer: *const u32,
    count: usize,
    layers: usize,
) -> Result<Indexers> {
    if count == 0 {
        return Ok(Indexers::default());
    }
    Indexers::check_count(count, layers)?;
    let given = contract!(sized::array("layer_indexer", of_layer, count))?;
    let of_layer = sized::converted("layer_indexer", given, |&of| Ok(of as usize))?;
    Ok(Indexers::of_layers(&of_layer)?)
}
