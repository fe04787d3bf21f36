/* A decode loop in plain C: one pool, one engine and one plan. Every gathered row is compared.
 *
 *   cc decode.c $(pkg-config --cflags --libs avsg) -o decode && ./decode
 *
 * Two requests decode with one draft token each (N_q = 2). Their KV rows are in host memory, and the
 * fresh rows of a step are "on the device" until avsg_engine_append writes them to the pool.
 */
#include <avsg.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { K = 64, NQ = 2, S = 256, REQUESTS = 2, TOKENS = NQ * REQUESTS, STEPS = 300 };
enum { PROMPT = 1000, BLOCK = 16, OWN_BLOCKS = 128, ROW_BYTES = 1152 };

/* Ends the program with the library's message if a call failed. */
static void check(avsg_status status, const char *call) {
    if (status != AVSG_OK) {
        fprintf(stderr, "%s: %s: %s\n", call, avsg_status_name(status), avsg_last_error());
        exit(1);
    }
}
#define CHECK(call) check((call), #call)

/* Fills the KV row of a request's token with bytes that differ from every other row's. */
static void make_row(int request, int32_t id, unsigned char *row) {
    uint32_t x = (uint32_t)(id * 4 + request) * 2654435761u + 1u;
    for (size_t i = 0; i < ROW_BYTES; i++) {
        x = x * 1664525u + 1013904223u;
        row[i] = (unsigned char)(x >> 24);
    }
}

/* Selects K distinct ids, as an indexer does: the newest, the first, and a window that drifts. */
static void select_ids(int step, int32_t seq_len, int32_t *ids) {
    unsigned char taken[4096] = {0};
    for (int i = 0; i < K; i++) {
        int32_t id = i < 8 ? seq_len - 1 - i : i < 16 ? i - 8 : ((step / 2 + i) * 11) % seq_len;
        while (taken[id]) id = (id + 1) % seq_len;
        taken[id] = 1;
        ids[i] = id;
    }
}

int main(void) {
    if (avsg_abi_version() != AVSG_ABI_VERSION) {
        fprintf(stderr, "libavsg has interface %u, this program %u\n", (unsigned)avsg_abi_version(),
                (unsigned)AVSG_ABI_VERSION);
        return 1;
    }

    /* Every field that is not set has its default. */
    avsg_pool_config pool_config = AVSG_INIT(avsg_pool_config);
    pool_config.layers = 1;
    pool_config.rows = REQUESTS * OWN_BLOCKS * BLOCK;
    pool_config.segments = 1;
    pool_config.segment_bytes[0] = ROW_BYTES;

    avsg_engine_config config = AVSG_INIT(avsg_engine_config);
    config.device = "cpu";
    config.k = K;
    config.tokens = NQ;
    config.slots = S;
    config.page = BLOCK;
    config.states = REQUESTS;

    /* The memory can be computed before it is allocated. */
    avsg_memory memory = AVSG_INIT(avsg_memory);
    CHECK(avsg_get_memory(&config, &pool_config, TOKENS, REQUESTS, OWN_BLOCKS, &memory));
    printf("host pool %zu KiB, device buffer %zu KiB, tables %zu KiB, plan %zu KiB\n", memory.pool >> 10,
           memory.buffer >> 10, memory.tables >> 10, memory.plan_host >> 10);

    avsg_pool *pool;
    avsg_engine *engine;
    avsg_plan *plan;
    CHECK(avsg_pool_create(&pool_config, &pool));
    CHECK(avsg_engine_create(&config, pool, &engine));
    CHECK(avsg_plan_create(engine, TOKENS, REQUESTS, &plan));

    /* The addresses of the slots and of the device buffer never change. */
    avsg_plan_arrays out = AVSG_INIT(avsg_plan_arrays);
    avsg_buffer buffer = AVSG_INIT(avsg_buffer);
    CHECK(avsg_plan_get_arrays(plan, AVSG_MEMORY_HOST, &out));
    CHECK(avsg_engine_get_buffer(engine, 0, 0, &buffer));

    /* Write the rows of the prompts. Request r owns every second block of the pool. */
    static unsigned char row[ROW_BYTES], fresh_rows[TOKENS * ROW_BYTES];
    static int32_t ids[TOKENS * K], blocks[REQUESTS * OWN_BLOCKS];
    for (int r = 0; r < REQUESTS; r++) {
        for (int b = 0; b < OWN_BLOCKS; b++) blocks[r * OWN_BLOCKS + b] = b * REQUESTS + r;
        for (int32_t id = 0; id < PROMPT; id++) {
            size_t at = (size_t)blocks[r * OWN_BLOCKS + id / BLOCK] * BLOCK + (size_t)(id % BLOCK);
            make_row(r, id, row);
            CHECK(avsg_pool_write_row(pool, 0, at, row, ROW_BYTES));
        }
    }

    int32_t cu_q[REQUESTS + 1], state[REQUESTS], generation[REQUESTS];
    int32_t stable_len[REQUESTS], seq_len[REQUESTS];
    avsg_batch batch = AVSG_INIT(avsg_batch);
    batch.k = batch.ids_stride = K;
    batch.ids = (avsg_i32s){ids, TOKENS * K};
    batch.cu_q = (avsg_i32s){cu_q, REQUESTS + 1};
    batch.state = (avsg_i32s){state, REQUESTS};
    batch.generation = (avsg_i32s){generation, REQUESTS};
    batch.stable_len = (avsg_i32s){stable_len, REQUESTS};
    batch.seq_len = (avsg_i32s){seq_len, REQUESTS};
    batch.block_table = (avsg_i32s){blocks, REQUESTS * OWN_BLOCKS};
    batch.block_stride = OWN_BLOCKS;
    const size_t layer = 0;
    avsg_fresh fresh = AVSG_INIT(avsg_fresh);
    fresh.segments = 1;
    fresh.data[0] = fresh_rows;
    fresh.bytes[0] = sizeof fresh_rows;

    int32_t length[REQUESTS] = {PROMPT, PROMPT - 37};
    size_t selected = 0, hits = 0, wrong = 0;
    for (int step = 0; step < STEPS; step++) {
        for (int r = 0; r < REQUESTS; r++) {
            cu_q[r] = r * NQ;
            state[r] = r;
            generation[r] = 1;
            stable_len[r] = length[r];     /* the rows that were final before this step */
            seq_len[r] = length[r] + NQ;   /* the sequence with this step's tokens */
            for (int g = 0; g < NQ; g++) {
                select_ids(step + g, length[r] + g + 1, ids + (r * NQ + g) * K);
                make_row(r, length[r] + g, fresh_rows + (size_t)(r * NQ + g) * ROW_BYTES);
            }
        }
        cu_q[REQUESTS] = TOKENS;

        CHECK(avsg_engine_step(engine, &batch, plan, 0, &fresh, NULL));

        /* Attention would read the device buffer here. The example compares its rows. */
        for (int q = 0; q < TOKENS; q++) {
            for (int i = 0; i < K; i++) {
                int r = q / NQ;
                int32_t slot = out.slot[(size_t)q * out.k + (size_t)i];
                const unsigned char *got = (const unsigned char *)buffer.base +
                                           (size_t)r * buffer.state_stride +
                                           (size_t)slot * buffer.slot_stride;
                make_row(r, ids[q * K + i], row);
                if (slot < 0 || memcmp(got, row, ROW_BYTES) != 0) wrong++;
            }
        }
        avsg_plan_counters counters = AVSG_INIT(avsg_plan_counters);
        CHECK(avsg_plan_get_counters(plan, &counters));
        selected += counters.selected;
        hits += counters.hits;

        CHECK(avsg_engine_append(engine, &batch, &layer, 1, &fresh, NULL));
        /* Every third draft is rejected: stable_len excludes its row, which the next step makes anew. */
        for (int r = 0; r < REQUESTS; r++) length[r] += (step + r) % 3 == 0 ? 1 : NQ;
    }
    printf("%d steps, %zu rows selected, %.2f %% hit, %zu copied, %zu wrong\n", STEPS, selected,
           100.0 * (double)hits / (double)selected, selected - hits, wrong);

    CHECK(avsg_plan_destroy(plan));
    CHECK(avsg_engine_destroy(engine));
    CHECK(avsg_pool_destroy(pool));
    /* A handle is looked up and never dereferenced, so that a destroyed one is refused. */
    if (avsg_pool_destroy(pool) != AVSG_HANDLE) wrong++;
    return wrong != 0;
}
