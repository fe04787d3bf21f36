// One indexer and the layers that use its ids, with their KV rows behind AVSG.
#pragma once

#include "hook.hpp"
#include "mapped_rows.hpp"
#include "times.hpp"

#include <avsg.hpp>

#include <optional>
#include <string>
#include <vector>

// A mistake that is made on purpose, to show that the comparison notices it.
enum class Fault {
    None,
    WrongSlot,           // one row of one step comes through another row's slot
    StaleRow,            // the rows of one step do not reach the host pool
    MissedInvalidation,  // slots of rejected drafts stay valid while their rows are computed anew
};

struct Settings {
    uint32_t slots = 128;   // S
    uint32_t tokens = 1;    // N_q
    uint32_t context = 0;   // rows of the host pool
    Fault fault = Fault::None;
    bool every_row = false;  // empties the table at each step, so that every selected row is copied
    std::string disk;        // a folder, in whose file the rows are; empty: the rows are in memory
    size_t token_bytes = 0;  // above 0: `disk` is the path of a file that stays, with a session and these bytes for each token
    int32_t kept = 0;        // tokens whose rows the file has from an earlier process
    uint32_t k = 0;          // the most ids that an indexer selects for a token; 0: as the prompt shows
    bool mapped = false;     // the rows are in a mapped file of that folder, and AVSG has no part
    int fault_step = 5;     // the step, from 1, of the faults that happen once
};

// Sums over steps; rows are counted in each layer that reads them.
struct Counts {
    size_t selected = 0, missed = 0, evicted = 0, invalidated = 0;
    size_t bytes = 0;  // of the missed rows
};

// AVSG's objects for all layers.
struct Avsg {
    std::optional<avsg::Pool> pool;  // no pool and no engine if the rows are in a mapped file
    std::optional<avsg::Engine> engine;
    size_t memory = 0;  // bytes of pool, engine and plans
};

// Layers with one indexer and one plan. The first layer has the indexer.
class Group {
  public:
    explicit Group(int first) : layers_{first} {}

    void add(int layer) { layers_.push_back(layer); }
    bool has(int layer) const;
    int first() const { return layers_.front(); }

    // Creates the plan, and moves the rows of the prompt to the pool or to a mapped file, unless it has them. `caches` has the
    // rows of each layer of the model, and `avsg` outlives the group.
    void start(const Settings &settings, Avsg &avsg, size_t indexer, const std::vector<ggml_tensor *> &caches, int32_t length);

    // Sets the number of tokens whose rows are final before the next step.
    void begin(int32_t stable);

    // Keeps the rows that a step has just written to a layer. A layer that follows is attended to at
    // once, because the ids are known.
    void take_fresh(const RowsWritten &rows);

    // Plans the step, and leaves in the first layer's cache only what the slots hold.
    void select(const IdsSelected &selected);

    // Checks that every layer has had its step, and takes a mapped file's pages beyond AVSG's memory out of the page cache.
    void finish();

    Counts counts;
    Times times;  // of the last step

    // The bytes that the last step copied in each layer.
    size_t step_bytes() const { return step_bytes_; }
    size_t layers() const { return layers_.size(); }
    size_t cached_bytes() const { return mapped_ ? mapped_->cached_bytes() : 0; }  // of the mapped file

  private:
    size_t index_of(int layer) const;
    size_t pool_layer(size_t layer) const { return static_cast<size_t>(layers_[layer]); }
    void take_prompt(size_t first, size_t end);
    void plan();
    void count_misses();
    void attend(size_t layer);
    // Writes the step's rows to the mapped file, and copies the selected rows from there.
    void read_mapped(size_t layer);
    // Returns a layer's row of the id at a place of `ids_`, as a slot or the copy from the mapped file has it.
    const uint8_t *held(size_t layer, size_t at) const;
    void put_back(size_t layer);
    void append(size_t layer);

    std::vector<int> layers_;
    Settings settings_;
    std::vector<ggml_tensor *> caches_;
    size_t row_bytes_ = 0, step_bytes_ = 0, indexer_ = 0;
    Avsg *avsg_ = nullptr;
    int32_t stable_ = 0, drawn_ = 0;
    int step_ = 0;  // counts from 1
    std::vector<bool> attended_;
    std::optional<MappedRows> mapped_;
    std::vector<uint8_t> gathered_;  // the selected rows of a mapped file
    std::optional<avsg::Plan> plan_;
    avsg_plan_arrays out_{};
    std::vector<int32_t> ids_, shown_;         // of this step and, without -1, of the last one
    std::vector<std::vector<uint8_t>> fresh_;  // of each layer
    std::vector<int32_t> occupant_;            // the id of each slot, or -1
};
