// AVSG for C++17: objects that own their handles, arrays as spans, failures as exceptions.
//
// The wrapper adds no rule and no state to avsg.h, whose comments hold for each call. A function throws avsg::Error where
// the C function fails; with -fno-exceptions it prints the message and aborts. Objects are moved, not copied. A
// destructor cannot report a failure: destroy an object only when no other thread uses it.
#ifndef AVSG_HPP
#define AVSG_HPP

#include "avsg.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace avsg {

// A failed call, with the library's message. std::bad_alloc is not used for AVSG_NO_MEMORY.
class Error : public std::runtime_error {
   public:
    explicit Error(avsg_status status)
        : std::runtime_error(std::string(avsg_status_name(status)) + ": " + avsg_last_error()), status_(status) {}
    avsg_status status() const noexcept { return status_; }

   private:
    avsg_status status_;
};

// AVSG_LOST_ROWS: a row of a file is not whole. All requests of a plan are served but those that
// Plan::failures names.
class LostRows : public Error {
   public:
    LostRows() : Error(AVSG_LOST_ROWS) {}
};

namespace detail {

template <class E>
[[noreturn]] void fail(const E &error) {
#ifdef __cpp_exceptions
    throw error;
#else
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
#endif
}

}  // namespace detail

// Throws if a call failed.
inline void check(avsg_status status) {
    if (status == AVSG_LOST_ROWS) detail::fail(LostRows());
    if (status != AVSG_OK) detail::fail(Error(status));
}

// Returns a zeroed struct of avsg.h with its size set.
template <class T>
T init() noexcept {
    T value;
    std::memset(&value, 0, sizeof value);
    value.size = sizeof value;
    return value;
}

// A pointer and a number of elements, as std::span of C++20.
template <class T>
class Span {
   public:
    constexpr Span() noexcept = default;
    constexpr Span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
    // Refers to one element, which must outlive the span: a list of one layer, for example.
    constexpr Span(T &element) noexcept : data_(&element), size_(1) {}
    // Refers to the elements of a container, which must outlive the span.
    template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C &>().data()), T *>>>
    constexpr Span(C &&container) noexcept : data_(container.data()), size_(container.size()) {}

    constexpr T *data() const noexcept { return data_; }
    constexpr std::size_t size() const noexcept { return size_; }
    constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
    constexpr bool empty() const noexcept { return size_ == 0; }
    constexpr T &operator[](std::size_t i) const noexcept { return data_[i]; }
    constexpr T *begin() const noexcept { return data_; }
    constexpr T *end() const noexcept { return data_ + size_; }

   private:
    T *data_ = nullptr;
    std::size_t size_ = 0;
};

// Returns an array of a batch that refers to the elements of a container. The container must outlive the
// batch, so that a temporary one does not compile.
template <class C>
avsg_i32s ints(C &elements) noexcept {
    return {elements.data(), elements.size()};
}

// Returns the struct of fresh rows, which refers to one container for each segment of a row.
template <class... Segments>
avsg_fresh fresh(Segments &...segments) noexcept {
    static_assert(sizeof...(segments) >= 1 && sizeof...(segments) <= AVSG_MAX_SEGMENTS, "a row has 1 to 4 segments");
    auto rows = init<avsg_fresh>();
    const auto add = [&rows](const auto &segment) {
        rows.data[rows.segments] = segment.data();
        rows.bytes[rows.segments++] = segment.size() * sizeof(*segment.data());
    };
    (add(segments), ...);
    return rows;
}

namespace detail {

// Owns a handle of the C ABI.
template <class T, avsg_status (*Destroy)(T *)>
class Handle {
   public:
    Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    Handle &operator=(Handle &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    Handle(const Handle &) = delete;
    Handle &operator=(const Handle &) = delete;
    ~Handle() { Destroy(handle_); }

    // The handle, for functions of avsg.h; NULL after a move.
    T *get() const noexcept { return handle_; }
    // Gives up the handle, which the caller then destroys.
    T *release() noexcept { return std::exchange(handle_, nullptr); }

   protected:
    explicit Handle(T *handle) noexcept : handle_(handle) {}

   private:
    T *handle_;
};

// Throws if two lists of a call differ in length.
inline void check_lists(const char *call, std::size_t one, std::size_t other) {
    if (one != other) fail(std::invalid_argument(std::string("avsg::Engine::") + call + ": the lists differ in length"));
}

// Calls a function that writes one value, and returns the value.
template <class T, class Call>
T out(T value, Call call) {
    check(call(&value));
    return value;
}

}  // namespace detail

// Sets the function that takes the library's messages up to a level, for the whole process; NULL for none.
inline void set_log(avsg_log_callback callback, void *user, std::int32_t level) {
    check(avsg_set_log(callback, user, level));
}

// The threads that run the steps of engines on "cpu": name them in avsg_engine_config.workers by get().
class Workers : public detail::Handle<avsg_workers, avsg_workers_destroy> {
   public:
    // Takes over a handle.
    explicit Workers(avsg_workers *handle) noexcept : Handle(handle) {}
    explicit Workers(const avsg_workers_config &config)
        : Handle(detail::out(static_cast<avsg_workers *>(nullptr),
                             [&](avsg_workers **workers) { return avsg_workers_create(&config, workers); })) {}
};

// A host pool.
class Pool : public detail::Handle<avsg_pool, avsg_pool_destroy> {
   public:
    // What another process needs to map a pool. The receiver of `fd` closes it.
    struct Export {
        std::array<std::uint8_t, AVSG_POOL_DESC_BYTES> desc;
        std::int32_t fd;
    };

    // Takes over a handle.
    explicit Pool(avsg_pool *handle) noexcept : Handle(handle) {}
    explicit Pool(const avsg_pool_config &config)
        : Handle(created([&](avsg_pool **pool) { return avsg_pool_create(&config, pool); })) {}
    // Opens a file that was kept.
    static Pool open(const avsg_pool_file &file) {
        return Pool(created([&](avsg_pool **pool) { return avsg_pool_open(&file, pool); }));
    }
    static Pool attach(const Export &from, avsg_role role) {
        return Pool(created([&](avsg_pool **pool) {
            return avsg_pool_import(from.desc.data(), from.desc.size(), from.fd, role, pool);
        }));
    }

    std::vector<avsg_chunk> chunks() const {
        std::size_t count = 0;
        check(avsg_pool_get_chunks(get(), nullptr, 0, &count));
        std::vector<avsg_chunk> list(count);
        check(avsg_pool_get_chunks(get(), list.data(), list.size(), &count));
        return list;
    }
    avsg_pool_info info() const {
        return detail::out(init<avsg_pool_info>(), [&](auto *info) { return avsg_pool_get_info(get(), info); });
    }

    void write_row(std::size_t layer, std::size_t row, Span<const unsigned char> bytes) const {
        check(avsg_pool_write_row(get(), layer, row, bytes.data(), bytes.size()));
    }
    void read_row(std::size_t layer, std::size_t row, Span<unsigned char> bytes) const {
        check(avsg_pool_read_row(get(), layer, row, bytes.data(), bytes.size()));
    }
    void write_rows(Span<const std::size_t> layers, std::size_t first, Span<const unsigned char> bytes) const {
        check(avsg_pool_write_rows(get(), layers.data(), layers.size(), first, bytes.data(), bytes.size()));
    }
    void read_rows(Span<const std::size_t> layers, std::size_t first, Span<unsigned char> bytes) const {
        check(avsg_pool_read_rows(get(), layers.data(), layers.size(), first, bytes.data(), bytes.size()));
    }
    void *row(std::size_t layer, std::size_t segment, std::size_t row) const {
        void *at = nullptr;
        return detail::out(at, [&](auto *data) { return avsg_pool_get_row(get(), layer, segment, row, data); });
    }

    Export share() const {
        Export made{{}, -1};
        check(avsg_pool_export(get(), made.desc.data(), made.desc.size(), &made.fd));
        return made;
    }
    void flush() const { check(avsg_pool_flush(get())); }
    // Fills `session`, whose `blocks` and `data` have the room that it says.
    void get_session(std::size_t number, avsg_session &session) const {
        check(avsg_pool_get_session(get(), number, &session));
    }
    void commit_session(std::size_t number, const avsg_session &session) const {
        check(avsg_pool_commit_session(get(), number, &session));
    }
    void write_tokens(std::size_t first, Span<const unsigned char> bytes) const {
        check(avsg_pool_write_tokens(get(), first, bytes.data(), bytes.size()));
    }
    void read_tokens(std::size_t first, Span<unsigned char> bytes) const {
        check(avsg_pool_read_tokens(get(), first, bytes.data(), bytes.size()));
    }
    void demote() { check(avsg_pool_demote(get())); }

   private:
    template <class Call>
    static avsg_pool *created(Call call) {
        return detail::out(static_cast<avsg_pool *>(nullptr), call);
    }
};

// Returns the memory of a pool, of an engine on it unless `config` is NULL, and of a plan if there are tokens.
inline avsg_memory memory(const avsg_engine_config *config, const avsg_pool_config &pool, std::size_t max_tokens = 0,
                          std::size_t max_requests = 0, std::size_t block_stride = 0) {
    return detail::out(init<avsg_memory>(), [&](auto *memory) {
        return avsg_get_memory(config, &pool, max_tokens, max_requests, block_stride, memory);
    });
}

class Engine;

// The outputs of Stage One for a batch.
class Plan : public detail::Handle<avsg_plan, avsg_plan_destroy> {
   public:
    // Takes over a handle.
    explicit Plan(avsg_plan *handle) : Handle(handle) {}
    Plan(const Engine &engine, std::size_t max_tokens, std::size_t max_requests);

    avsg_plan_arrays arrays(avsg_memory_kind memory = AVSG_MEMORY_HOST) const {
        return detail::out(init<avsg_plan_arrays>(),
                           [&](auto *arrays) { return avsg_plan_get_arrays(get(), memory, arrays); });
    }
    avsg_plan_counters counters() const {
        return detail::out(init<avsg_plan_counters>(),
                           [&](auto *counters) { return avsg_plan_get_counters(get(), counters); });
    }

    // A request that transfers leave out, a layer and a row that are not whole, whether the last transfer found
    // it, and the ids of all such rows.
    struct Failure {
        std::size_t request, layer, row;
        bool is_new;
        std::vector<std::int32_t> ids;
    };
    // The requests that the transfers so far left out, in the order of the batch.
    std::vector<Failure> failures() const {
        const auto out = arrays();
        std::vector<Failure> all;
        for (std::size_t r = 0, count = counters().requests; r < count; r++)
            if (out.failed_row[r] >= 0)
                all.push_back({r, static_cast<std::size_t>(out.failed_layer[r]), static_cast<std::size_t>(out.failed_row[r]),
                               out.failed_new[r] == 1, lost_ids(r)});
        return all;
    }
    std::vector<std::int32_t> lost_ids(std::size_t request) const {
        std::size_t count = 0;
        check(avsg_plan_get_lost_ids(get(), request, nullptr, 0, &count));
        std::vector<std::int32_t> ids(count);
        check(avsg_plan_get_lost_ids(get(), request, ids.data(), ids.size(), &count));
        return ids;
    }
};

// The operator on one device.
class Engine : public detail::Handle<avsg_engine, avsg_engine_destroy> {
   public:
    // Takes over a handle.
    explicit Engine(avsg_engine *handle) noexcept : Handle(handle) {}
    Engine(const avsg_engine_config &config, const Pool &pool)
        : Handle(detail::out(static_cast<avsg_engine *>(nullptr), [&](avsg_engine **engine) {
              return avsg_engine_create(&config, pool.get(), engine);
          })) {}

    avsg_engine_info info() const {
        return detail::out(init<avsg_engine_info>(), [&](auto *info) { return avsg_engine_get_info(get(), info); });
    }
    avsg_buffer buffer(std::size_t layer, std::size_t segment) const {
        return detail::out(init<avsg_buffer>(),
                           [&](auto *buffer) { return avsg_engine_get_buffer(get(), layer, segment, buffer); });
    }

    // Forgets the ids from `first` to `end` - 1 of a state.
    void invalidate(std::size_t state, std::size_t first, std::size_t end) {
        check(avsg_engine_invalidate(get(), state, first, end));
    }
    void load(const avsg_load &load, Plan &plan) { check(avsg_engine_load(get(), &load, plan.get())); }
    // Copies a request's state for sequences that are forked. `to_generation` has a generation for each of `to`.
    void fork(std::size_t from, std::int32_t from_generation, Span<const std::int32_t> to,
              Span<const std::int32_t> to_generation) {
        detail::check_lists("fork", to.size(), to_generation.size());
        check(avsg_engine_fork(get(), from, from_generation, to.data(), to_generation.data(), to.size()));
    }
    // Tells for each id from `first` to `end` - 1 whether a state holds it.
    std::vector<bool> held(std::size_t indexer, std::size_t state, std::int32_t generation, std::size_t first,
                           std::size_t end) {
        std::vector<std::uint64_t> bits(end > first ? (end - first + 63) / 64 : 1);
        check(avsg_engine_get_held(get(), indexer, state, generation, first, end, bits.data(), bits.size()));
        std::vector<bool> all(end - first);
        for (std::size_t i = 0; i < all.size(); i++) all[i] = bits[i / 64] >> i % 64 & 1;
        return all;
    }

    // Drops a planned batch that is not going to be transferred to every layer.
    void discard(Plan &plan) { check(avsg_engine_discard(get(), plan.get())); }
    avsg_engine_stats stats() const {
        return detail::out(init<avsg_engine_stats>(), [&](auto *stats) { return avsg_engine_get_stats(get(), stats); });
    }
    // The slots in use of each state for an indexer; -1 once a stream has planned.
    std::vector<std::int64_t> used_slots(std::size_t indexer = 0) const {
        std::vector<std::int64_t> used(info().states);
        check(avsg_engine_get_used_slots(get(), indexer, used.data(), used.size()));
        return used;
    }

    void plan(const avsg_batch &batch, Plan &plan, void *stream = nullptr) {
        check(avsg_engine_plan(get(), &batch, plan.get(), stream));
    }
    // `fresh` has the fresh rows of each layer; it is empty if no miss is a fresh row.
    void transfer(Plan &plan, Span<const std::size_t> layers, Span<const avsg_fresh> fresh, void *stream = nullptr) {
        if (!fresh.empty()) detail::check_lists("transfer", layers.size(), fresh.size());
        check(avsg_engine_transfer(get(), plan.get(), layers.data(), layers.size(),
                                   fresh.empty() ? nullptr : fresh.data(), stream));
    }
    // Starts a transfer, which `wait` ends. `test` tells whether that has nothing to wait for.
    void begin(Plan &plan, Span<const std::size_t> layers, Span<const avsg_fresh> fresh, void *stream = nullptr) {
        if (!fresh.empty()) detail::check_lists("begin", layers.size(), fresh.size());
        check(avsg_engine_begin(get(), plan.get(), layers.data(), layers.size(),
                                fresh.empty() ? nullptr : fresh.data(), stream));
    }
    void wait(Plan &plan) { check(avsg_engine_wait(get(), plan.get())); }
    bool test(Plan &plan) {
        return detail::out(std::int32_t{0}, [&](auto *done) { return avsg_engine_test(get(), plan.get(), done); }) == 1;
    }
    void step(const avsg_batch &batch, Plan &plan, std::size_t layer, const avsg_fresh *fresh, void *stream = nullptr) {
        check(avsg_engine_step(get(), &batch, plan.get(), layer, fresh, stream));
    }
    // `fresh` has the fresh rows of each layer.
    void append(const avsg_batch &batch, Span<const std::size_t> layers, Span<const avsg_fresh> fresh,
                void *stream = nullptr) {
        detail::check_lists("append", layers.size(), fresh.size());
        check(avsg_engine_append(get(), &batch, layers.data(), layers.size(), fresh.data(), stream));
    }
    // `table` has states.size() * stride elements, and `lengths` has states.size().
    void page_table(Span<const std::int32_t> states, std::size_t page, Span<std::int32_t> table, std::size_t stride,
                     Span<std::int32_t> lengths) const {
        if (table.size() / (stride == 0 ? 1 : stride) < states.size() || lengths.size() < states.size())
            detail::fail(std::invalid_argument("avsg::Engine::page_table: table or lengths is shorter than states needs"));
        check(avsg_engine_get_page_table(get(), states.data(), states.size(), page, table.data(), stride,
                                          lengths.data()));
    }
};

inline Plan::Plan(const Engine &engine, std::size_t max_tokens, std::size_t max_requests)
    : Handle(detail::out(static_cast<avsg_plan *>(nullptr), [&](avsg_plan **plan) {
          return avsg_plan_create(engine.get(), max_tokens, max_requests, plan);
      })) {}

}  // namespace avsg

#endif  // AVSG_HPP
