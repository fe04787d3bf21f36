#include "hook.hpp"

#include <cstdlib>
#include <cstring>
#include <exception>

namespace {

// Returns the layer of a tensor named `prefix` and a number, or -1.
int layer_of(const char *name, const char *prefix) {
    size_t length = std::strlen(prefix);
    if (std::strncmp(name, prefix, length) != 0 || name[length] < '0' || name[length] > '9') return -1;
    return std::atoi(name + length);
}

// Returns the layer for which the node writes views of `what` to a cache, or -1: "Kcur-" are latent rows, and "indexer_k-"
// the keys of the indexer, which have a cache of their own.
int layer_written(const ggml_tensor *node, const char *what) {
    if (node->op != GGML_OP_SET_ROWS || node->view_src == nullptr) return -1;
    return layer_of(node->src[0]->name, what);
}

// Returns the layer whose indexer selects ids in the node, or -1. A router of experts selects by other scores.
int layer_selected(const ggml_tensor *node) {
    return node->op == GGML_OP_TOP_K ? layer_of(node->src[0]->name, "indexer_score-") : -1;
}

RowsWritten rows_of(int layer, const ggml_tensor *node) {
    const ggml_tensor *index = node->src[1];
    RowsWritten rows{layer, node->view_src, {}};
    for (int64_t i = 0; i < ggml_nelements(index); i++) {
        rows.cells.push_back(index->type == GGML_TYPE_I64 ? static_cast<const int64_t *>(index->data)[i]
                                                          : static_cast<const int32_t *>(index->data)[i]);
    }
    return rows;
}

}  // namespace

bool observe(ggml_tensor *node, bool ask, void *user) {
    int written = layer_written(node, "Kcur-"), selected = layer_selected(node);
    auto *observer = static_cast<Observer *>(user);
    if (ask) {
        int keyed = layer_written(node, "indexer_k-");
        if (keyed >= 0) observer->keys_are_in(keyed, node->view_src);
        return written >= 0 || selected >= 0;
    }
    try {
        if (written >= 0) observer->rows_written(rows_of(written, node));
        if (selected >= 0) observer->ids_selected({selected, node, node->src[0]});
    } catch (const std::exception &e) {
        if (observer->mistake.empty()) observer->mistake = e.what();
        return false;
    }
    return true;
}
