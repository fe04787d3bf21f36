//! The indexers of a model: which layers select the same ids, and so share a table of each state.

use std::sync::Arc;

use crate::{Error, Result, rows};

/// The indexer of every layer of a pool. The layers of one indexer share one table per state, and
/// one plan of a step serves all of them. By default one indexer serves all layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexers {
    /// The indexer of each layer; empty if one indexer serves all layers.
    of_layer: Arc<[usize]>,
    count: usize,
}

impl Default for Indexers {
    fn default() -> Self {
        Self { of_layer: Arc::default(), count: 1 }
    }
}

impl Indexers {
    /// Returns one indexer for each of `layers` layers.
    pub fn per_layer(layers: usize) -> Self {
        Self { of_layer: (0..layers).collect(), count: layers.max(1) }
    }

    /// Returns indexers by layer: layer l belongs to indexer `of_layer[l]`. The indexers are
    /// numbered from 0, and each number below the largest has a layer.
    ///
    /// # Errors
    /// If there is no layer, or a number has no layer.
    pub fn of_layers(of_layer: &[usize]) -> Result<Self> {
        rows::at_least_one("layers with an indexer", of_layer.len())?;
        let mut used = vec![false; of_layer.len()];
        for &indexer in of_layer {
            rows::index("indexer of a layer", indexer, of_layer.len())?;
            used[indexer] = true;
        }
        let count = used.iter().rposition(|&used| used).map_or(0, |last| last + 1);
        if let Some(unused) = used[..count].iter().position(|&used| !used) {
            let limit = format!("no layer has it, but one has indexer {}", count - 1);
            let remedy = "number the indexers without a gap";
            return Err(Error::invalid("indexer of a layer", unused, limit, remedy));
        }
        Ok(Self { of_layer: of_layer.into(), count })
    }

    /// Returns the number of indexers.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the indexer of a layer; 0 if there is no such layer.
    pub fn of(&self, layer: usize) -> usize {
        self.of_layer.get(layer).copied().unwrap_or(0)
    }

    /// Checks that each of a pool's `layers` layers has an indexer.
    ///
    /// # Errors
    /// If there is one indexer for each of another number of layers.
    pub fn check(&self, layers: usize) -> Result<()> {
        let given = self.of_layer.len();
        if given == 0 || given == layers {
            return Ok(());
        }
        let limit = format!("the pool has {layers} layers");
        Err(Error::invalid(
            "layers with an indexer",
            given,
            limit,
            "name an indexer for each layer",
        ))
    }
}
