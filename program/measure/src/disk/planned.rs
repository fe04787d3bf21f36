//! Where the rows of a deployment would be in a file.

use anyhow::Result;
use avsg::disk::{Layout, Shape};
use avsg::indexers::Indexers;
use avsg::rows::RowFormat;

/// Returns the layout of a file with blocks of `block` bytes, in which `indexers` indexers
/// share the layers evenly.
///
/// # Errors
/// If a number is out of range.
pub fn layout(
    [layers, indexers, rows]: [usize; 3],
    format: &RowFormat,
    block: usize,
) -> Result<Layout> {
    let of_layer: Vec<usize> = (0..layers).map(|layer| layer * indexers / layers).collect();
    let indexers = Indexers::of_layers(&of_layer)?;
    let shape = Shape { layers, rows, format: format.clone(), indexers };
    Ok(Layout::new(&shape, block, 0)?)
}
