// avsg.hpp with rows in a file, two of which were never written: the step serves three of four requests, and the
// program writes the rows and repeats the step for the fourth. Every row is compared.
//
//   c++ -std=c++17 lost_rows.cpp $(pkg-config --cflags --libs avsg) -o lost_rows && ./lost_rows FOLDER
#include <avsg.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <vector>

namespace {

constexpr std::int32_t kRequests = 4, kK = 16, kRows = 96;
constexpr std::size_t kRowBytes = 200;

bool is_missing(std::int32_t id) { return id == 40 || id == 44; }

std::vector<unsigned char> make_row(std::int32_t id) {
    std::vector<unsigned char> row(kRowBytes);
    for (std::size_t i = 0; i < kRowBytes; i++) row[i] = static_cast<unsigned char>((id + 1) * (2 * static_cast<int>(i) + 7));
    return row;
}

int run(const char *folder) {
    auto file = avsg::init<avsg_pool_file>();
    file.path = folder;
    auto pool_config = avsg::init<avsg_pool_config>();
    pool_config.layers = 1, pool_config.rows = kRows;
    pool_config.segments = 1, pool_config.segment_bytes[0] = kRowBytes;
    pool_config.file = &file;
    auto config = avsg::init<avsg_engine_config>();
    config.k = kK, config.slots = 64, config.tokens = 1, config.states = kRequests;
    avsg::Pool pool(pool_config);
    for (std::int32_t id = 0; id < kRows; id++)
        if (!is_missing(id)) pool.write_row(0, static_cast<std::size_t>(id), make_row(id));
    avsg::Engine engine(config, pool);
    avsg::Plan plan(engine, kRequests, kRequests);

    std::vector<std::int32_t> ids, cu_q{0}, state, generation(kRequests, 0), stable(kRequests, -1), length(kRequests, kRows);
    for (std::int32_t r = 0; r < kRequests; r++) {
        for (std::int32_t i = 0; i < kK; i++) ids.push_back(r * 20 + i); // request 2 selects the missing rows
        cu_q.push_back(r + 1), state.push_back(r);
    }
    auto batch = avsg::init<avsg_batch>();
    batch.ids = avsg::ints(ids), batch.ids_stride = kK, batch.k = kK;
    batch.cu_q = avsg::ints(cu_q), batch.state = avsg::ints(state), batch.generation = avsg::ints(generation);
    batch.stable_len = avsg::ints(stable), batch.seq_len = avsg::ints(length);

    const auto buffer = engine.buffer(0, 0);
    std::size_t compared = 0, wrong = 0;
    const auto compare = [&](std::size_t r) {
        for (std::size_t i = r * kK; i < (r + 1) * kK; i++, compared++) {
            const auto slot = static_cast<std::size_t>(plan.arrays().slot[i]);
            const auto *row = static_cast<const char *>(buffer.base) + r * buffer.state_stride + slot * buffer.slot_stride;
            wrong += std::memcmp(row, make_row(ids[i]).data(), kRowBytes) != 0;
        }
    };
    try {
        engine.step(batch, plan, 0, nullptr);
        wrong++; // rows are missing
    } catch (const avsg::LostRows &lost) {
        std::printf("%s\n", lost.what());
    }
    const auto failures = plan.failures();
    if (failures.size() != 1 || failures[0].request != 2 || !failures[0].is_new || failures[0].ids.size() != 2) return 1;
    for (std::size_t r = 0; r < kRequests; r++)
        if (r != failures[0].request) compare(r);
    for (const auto id : failures[0].ids) pool.write_row(0, static_cast<std::size_t>(id), make_row(id));
    for (std::size_t r = 0; r < kRequests; r++)
        if (r != failures[0].request) state[r] = -1; // these have finished the step
    engine.step(batch, plan, 0, nullptr);
    compare(failures[0].request);
    std::printf("%zu rows compared, %zu wrong\n", compared, wrong);
    return compared != kRequests * kK || wrong != 0;
}

}  // namespace

int main(int argc, char **argv) {
    try {
        return run(argc > 1 ? argv[1] : ".");
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
