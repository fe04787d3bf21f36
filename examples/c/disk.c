/* Rows in a file: two layers of one indexer decode, and the file is opened again. Every row is compared.
 *
 *   cc disk.c $(pkg-config --cflags --libs avsg) -o disk && ./disk NEW_FILE
 */
#include <avsg.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 2, K = 64, S = 256, PROMPT = 1000, STEPS = 200, ROWS = PROMPT + STEPS, ROW_BYTES = 1152 };

static void check(avsg_status status, const char *call) {
    if (status == AVSG_OK) return;
    fprintf(stderr, "%s: %s: %s\n", call, avsg_status_name(status), avsg_last_error());
    exit(1);
}
#define CHECK(call) check((call), #call)

/* The row of a token in a layer. The same bytes are returned until the next call. */
static const unsigned char *make_row(int layer, int id) {
    static unsigned char row[ROW_BYTES];
    for (int i = 0; i < ROW_BYTES; i++) row[i] = (unsigned char)((id + 1) * (2 * i + 7) + id / 256 + layer);
    return row;
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: disk NEW_FILE\n"), 2;
    avsg_pool_file file = AVSG_INIT(avsg_pool_file);
    file.path = argv[1], file.keep = 1;
    avsg_pool_config pool_config = AVSG_INIT(avsg_pool_config);
    pool_config.layers = LAYERS, pool_config.rows = ROWS;
    pool_config.segments = 1, pool_config.segment_bytes[0] = ROW_BYTES;
    pool_config.file = &file;
    avsg_engine_config config = AVSG_INIT(avsg_engine_config);
    config.k = K, config.slots = S, config.tokens = config.states = 1;
    avsg_pool *pool;
    avsg_engine *engine;
    avsg_plan *plan;
    CHECK(avsg_pool_create(&pool_config, &pool));
    CHECK(avsg_engine_create(&config, pool, &engine));
    CHECK(avsg_plan_create(engine, 1, 1, &plan));
    for (int id = 0; id < PROMPT; id++)
        for (int l = 0; l < LAYERS; l++) CHECK(avsg_pool_write_row(pool, l, id, make_row(l, id), ROW_BYTES));

    int32_t ids[K], cu_q[2] = {0, 1}, zero[1] = {0}, stable[1], length[1];
    avsg_batch batch = AVSG_INIT(avsg_batch);
    batch.ids = (avsg_i32s){ids, K}, batch.k = batch.ids_stride = K;
    batch.cu_q = (avsg_i32s){cu_q, 2}, batch.state = batch.generation = (avsg_i32s){zero, 1};
    batch.stable_len = (avsg_i32s){stable, 1}, batch.seq_len = (avsg_i32s){length, 1};
    avsg_plan_arrays out = AVSG_INIT(avsg_plan_arrays);
    avsg_buffer buffer = AVSG_INIT(avsg_buffer);
    avsg_fresh fresh = AVSG_INIT(avsg_fresh);
    fresh.segments = 1, fresh.bytes[0] = ROW_BYTES;
    CHECK(avsg_plan_get_arrays(plan, AVSG_MEMORY_HOST, &out));
    int wrong = 0;
    for (int n = 0; n < STEPS; n++) {
        stable[0] = PROMPT + n, length[0] = stable[0] + 1;
        for (int i = 0; i < K; i++) ids[i] = stable[0] - i * (1 + n / 20); /* the newest token and older ones */
        CHECK(avsg_engine_plan(engine, &batch, plan, NULL));
        for (int l = 0; l < LAYERS; l++) { /* the first layer reads the rows of both from the file */
            fresh.data[0] = make_row(l, stable[0]);
            CHECK(avsg_engine_transfer(engine, plan, l, &fresh, NULL));
            CHECK(avsg_engine_append(engine, &batch, l, &fresh, NULL));
            CHECK(avsg_engine_get_buffer(engine, l, 0, &buffer));
            for (int i = 0; i < K; i++) {
                const char *row = (const char *)buffer.base + (size_t)out.slot[i] * buffer.slot_stride;
                wrong += memcmp(row, make_row(l, ids[i]), ROW_BYTES) != 0;
            }
        }
    }
    avsg_pool_info info = AVSG_INIT(avsg_pool_info);
    CHECK(avsg_pool_flush(pool));
    CHECK(avsg_pool_get_info(pool, &info));
    printf("%zu reads and %zu bytes written in records of %zu bytes\n", info.reads, info.written_bytes, info.record_bytes);
    CHECK(avsg_plan_destroy(plan)), CHECK(avsg_engine_destroy(engine)), CHECK(avsg_pool_destroy(pool));

    unsigned char row[ROW_BYTES];
    CHECK(avsg_pool_open(&file, &pool));
    for (int at = 0; at < LAYERS * ROWS; at++) {
        CHECK(avsg_pool_read_row(pool, at % LAYERS, at / LAYERS, row, ROW_BYTES));
        wrong += memcmp(row, make_row(at % LAYERS, at / LAYERS), ROW_BYTES) != 0;
    }
    printf("%d wrong rows\n", wrong);
    return CHECK(avsg_pool_destroy(pool)), wrong != 0;
}
