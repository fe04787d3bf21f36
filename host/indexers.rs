//! The indexers of a model: which layers select the same ids, and so share a table of each state.

use std::sync::Arc;

use crate::system::reserve;
use crate::{Result, ensure, invalid, rows};

const WHAT: &str = "indexers of layers";

/// The indexer of every layer of a pool. The layers of one indexer share one table per state, and
/// one plan of a step serves all of them. By default one indexer serves all layers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexers {
    /// The indexer of each layer; `None` if one indexer serves all layers.
    of_layer: Option<Arc<Vec<usize>>>,
    last: usize,
}

impl Indexers {
    /// Returns indexers by layer: layer l belongs to indexer `of_layer[l]`. The indexers are
    /// numbered from 0, and each number below the largest has a layer.
    ///
    /// # Errors
    /// If there is no layer, a number has no layer, or there is no memory for a number per layer.
    pub fn of_layers(of_layer: &[usize]) -> Result<Self> {
        rows::at_least_one("layers with an indexer", of_layer.len())?;
        let mut used = reserve::filled(WHAT, of_layer.len(), false)?;
        for &indexer in of_layer {
            rows::index("indexer of a layer", indexer, of_layer.len())?;
            used[indexer] = true;
        }
        let last = of_layer.iter().max().map_or(0, |&last| last);
        if let Some(unused) = used[..last].iter().position(|&used| !used) {
            return Err(invalid!("indexer of a layer" is unused, but
                "no layer has it, but one has indexer {last}";
                "number the indexers without a gap"));
        }
        Ok(Self { of_layer: Some(Arc::new(reserve::copied(WHAT, of_layer)?)), last })
    }

    /// Returns the number of indexers.
    pub fn count(&self) -> usize {
        self.last + 1
    }

    /// Returns the indexer of a layer; 0 if there is no such layer.
    pub fn of(&self, layer: usize) -> usize {
        let of_layer = self.of_layer.as_ref().and_then(|of_layer| of_layer.get(layer));
        of_layer.copied().unwrap_or(0)
    }

    /// Returns those of a pool's `layers` layers that belong to an indexer.
    pub(crate) fn layers_of(
        &self,
        indexer: usize,
        layers: usize,
    ) -> impl Iterator<Item = usize> + Clone + '_ {
        (0..layers).filter(move |&layer| self.of(layer) == indexer)
    }

    /// Checks that each of a pool's `layers` layers has an indexer.
    ///
    /// # Errors
    /// If there is one indexer for each of another number of layers.
    pub fn check(&self, layers: usize) -> Result<()> {
        let given = self.of_layer.as_ref().map(|of_layer| of_layer.len());
        given.map_or(Ok(()), |given| Self::check_count(given, layers))
    }

    /// Checks the number of layers that an indexer is named for, before one is read.
    ///
    /// # Errors
    /// If it is not the pool's number of layers.
    pub fn check_count(given: usize, layers: usize) -> Result<()> {
        ensure!(given == layers, "layers with an indexer" is given, but
            "the pool has {layers} layers"; "name an indexer for each layer");
        Ok(())
    }
}
