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

/* Returns the row of a token, which the next call overwrites. */
static const unsigned char *make_row(size_t layer, int32_t id) {
    static unsigned char row[ROW_BYTES];
    for (int32_t i = 0; i < ROW_BYTES; i++) row[i] = (unsigned char)((id + 1) * (2 * i + 7) + id / 256 + (int32_t)layer);
    return row;
}

int main(int argc, char **argv) {
    avsg_pool_file file = AVSG_INIT(avsg_pool_file);
    file.path = argc > 1 ? argv[1] : "rows.avsg";
    file.keep = 1; /* without it `path` is a folder, and nothing stays behind */
    avsg_pool_config pool_config = AVSG_INIT(avsg_pool_config);
    pool_config.layers = LAYERS, pool_config.rows = ROWS;
    pool_config.segments = 1, pool_config.segment_bytes[0] = ROW_BYTES;
    pool_config.file = &file;
    avsg_engine_config config = AVSG_INIT(avsg_engine_config);
    config.k = K, config.slots = S, config.tokens = 1, config.states = 1;
    avsg_pool *pool;
    avsg_engine *engine;
    avsg_plan *plan;
    CHECK(avsg_pool_create(&pool_config, &pool));
    CHECK(avsg_engine_create(&config, pool, &engine));
    CHECK(avsg_plan_create(engine, 1, 1, &plan));
    for (int32_t id = 0; id < PROMPT; id++)
        for (size_t l = 0; l < LAYERS; l++) CHECK(avsg_pool_write_row(pool, l, (size_t)id, make_row(l, id), ROW_BYTES));

    int32_t ids[K], cu_q[2] = {0, 1}, zero[1] = {0}, stable[1], length[1], wrong = 0;
    avsg_batch batch = {.size = sizeof batch, .ids = {ids, K}, .ids_stride = K, .k = K, .cu_q = {cu_q, 2}, .state = {zero, 1},
                        .generation = {zero, 1}, .stable_len = {stable, 1}, .seq_len = {length, 1}};
    avsg_fresh fresh = {.size = sizeof fresh, .segments = 1, .bytes = {ROW_BYTES}};
    avsg_buffer buffer = AVSG_INIT(avsg_buffer);
    avsg_plan_arrays out = AVSG_INIT(avsg_plan_arrays);
    CHECK(avsg_plan_get_arrays(plan, AVSG_MEMORY_HOST, &out));
    for (int32_t step = 0; step < STEPS; step++) {
        stable[0] = PROMPT + step, length[0] = stable[0] + 1;
        for (int32_t i = 0; i < K; i++) ids[i] = stable[0] - i * (1 + step / 20); /* this token and older ones */
        CHECK(avsg_engine_plan(engine, &batch, plan, NULL));
        for (size_t l = 0; l < LAYERS; l++) {
            fresh.data[0] = make_row(l, stable[0]);
            CHECK(avsg_engine_transfer(engine, plan, &l, 1, &fresh, NULL)); /* layer 0 reads the rows of both layers */
            CHECK(avsg_engine_append(engine, &batch, &l, 1, &fresh, NULL)); /* returns before the row is written */
            CHECK(avsg_engine_get_buffer(engine, l, 0, &buffer));
            for (int32_t i = 0; i < K; i++) {
                const char *row = (const char *)buffer.base + (size_t)out.slot[i] * buffer.slot_stride;
                wrong += memcmp(row, make_row(l, ids[i]), ROW_BYTES) != 0;
            }
        }
    }
    CHECK(avsg_pool_flush(pool)); /* from here on the rows survive this process */
    CHECK(avsg_plan_destroy(plan)), CHECK(avsg_engine_destroy(engine)), CHECK(avsg_pool_destroy(pool));

    CHECK(avsg_pool_open(&file, &pool));
    unsigned char row[ROW_BYTES];
    for (int32_t at = 0; at < LAYERS * ROWS; at++) {
        CHECK(avsg_pool_read_row(pool, (size_t)at % LAYERS, (size_t)at / LAYERS, row, ROW_BYTES));
        wrong += memcmp(row, make_row((size_t)at % LAYERS, at / LAYERS), ROW_BYTES) != 0;
    }
    CHECK(avsg_pool_destroy(pool));
    printf("%d rows wrong\n", wrong);
    return wrong != 0;
}
