"""DeepSeek sparse attention of the unmodified package mlx-lm, with its KV rows in AVSG's host pool.

`offload` does it for a loaded model. mlx-lm's attention runs as it is: the cache returns the rows
that the slots hold, and the indexer's ids become places among those rows.
"""

from .cache import AvsgKVCache
from .layer import Counts, LayerRows, ModelRows
from .offload import offload

__all__ = ["AvsgKVCache", "Counts", "LayerRows", "ModelRows", "offload"]
