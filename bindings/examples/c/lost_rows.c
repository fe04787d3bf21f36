/* Damaged rows in a file cost the request that misses them: of eight, seven finish in the step that finds the rows,
 * and the eighth does so once they are written again, all of them at once. Every row is compared.
 *
 *   cc lost_rows.c $(pkg-config --cflags --libs avsg) -o lost_rows && ./lost_rows NEW_FILE
 */
#include <avsg.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REQUESTS = 8, K = 32, S = 128, PAGE = 16, PROMPT = 128, BLOCKS = PROMPT / PAGE, STEPS = 6, ROW_BYTES = 504 };

static void check(avsg_status status, const char *call) {
    if (status == AVSG_OK) return;
    fprintf(stderr, "%s: %s: %s\n", call, avsg_status_name(status), avsg_last_error());
    exit(1);
}
#define CHECK(call) check((call), #call)

/* Returns the row of an id of a request, which the next call overwrites. */
static const unsigned char *make_row(int32_t request, int32_t id) {
    static unsigned char row[ROW_BYTES];
    for (int32_t i = 0; i < ROW_BYTES; i++) row[i] = (unsigned char)((id + 1) * (2 * i + 7) + id / 256 + 31 * request);
    return row;
}

/* Computes the row of an id and writes it. */
static void compute(avsg_pool *pool, int32_t request, int32_t id) {
    CHECK(avsg_pool_write_row(pool, 0, (size_t)(request * PROMPT + id), make_row(request, id), ROW_BYTES));
}

/* Changes a bit of a row, as a failing disk may. */
static void damage(const char *path, const unsigned char *row) {
    unsigned char found[ROW_BYTES];
    FILE *file = fopen(path, "r+b");
    if (file == NULL) exit(1);
    for (long at = 0; fseek(file, at, SEEK_SET) == 0 && fread(found, 1, ROW_BYTES, file) == ROW_BYTES; at += 512) {
        if (memcmp(found, row, ROW_BYTES) != 0) continue;
        fseek(file, at, SEEK_SET), fputc(found[0] ^ 1, file), fclose(file);
        return;
    }
    exit(1);
}

int main(int argc, char **argv) {
    avsg_pool_file file = AVSG_INIT(avsg_pool_file);
    file.path = argc > 1 ? argv[1] : "rows.avsg", file.keep = 1;
    avsg_pool_config pool_config = AVSG_INIT(avsg_pool_config);
    pool_config.layers = 1, pool_config.rows = REQUESTS * PROMPT;
    pool_config.segments = 1, pool_config.segment_bytes[0] = ROW_BYTES;
    pool_config.file = &file;
    avsg_engine_config config = AVSG_INIT(avsg_engine_config);
    config.k = K, config.slots = S, config.tokens = 1, config.states = REQUESTS, config.page = PAGE;
    avsg_pool *pool;
    avsg_engine *engine;
    avsg_plan *plan;
    CHECK(avsg_pool_create(&pool_config, &pool));
    for (int32_t i = 0; i < REQUESTS * PROMPT; i++) compute(pool, i / PROMPT, i % PROMPT);
    CHECK(avsg_pool_flush(pool));
    CHECK(avsg_pool_destroy(pool));
    damage(file.path, make_row(5, 66)), damage(file.path, make_row(5, 70));
    CHECK(avsg_pool_open(&file, &pool));
    CHECK(avsg_engine_create(&config, pool, &engine));
    CHECK(avsg_plan_create(engine, REQUESTS, REQUESTS, &plan));

    int32_t ids[REQUESTS * K], cu_q[REQUESTS + 1] = {0}, state[REQUESTS], generation[REQUESTS], stable[REQUESTS],
        length[REQUESTS], blocks[REQUESTS * BLOCKS], wrong = 0;
    for (int32_t r = 0; r < REQUESTS; r++) {
        cu_q[r + 1] = r + 1, state[r] = r, generation[r] = 0, stable[r] = -1, length[r] = PROMPT;
        for (int32_t b = 0; b < BLOCKS; b++) blocks[r * BLOCKS + b] = r * BLOCKS + b;
    }
    avsg_batch batch = {.size = sizeof batch, .ids = {ids, REQUESTS * K}, .ids_stride = K, .k = K,
                        .cu_q = {cu_q, REQUESTS + 1}, .state = {state, REQUESTS}, .generation = {generation, REQUESTS},
                        .stable_len = {stable, REQUESTS}, .seq_len = {length, REQUESTS},
                        .block_table = {blocks, REQUESTS * BLOCKS}, .block_stride = BLOCKS};
    avsg_buffer buffer = AVSG_INIT(avsg_buffer);
    avsg_plan_arrays out = AVSG_INIT(avsg_plan_arrays);
    CHECK(avsg_engine_get_buffer(engine, 0, 0, &buffer));
    CHECK(avsg_plan_get_arrays(plan, AVSG_MEMORY_HOST, &out));
    for (int32_t step = 0; step < STEPS; step++) {
        for (int32_t i = 0; i < REQUESTS * K; i++) ids[i] = (step * 20 + i % K) % PROMPT;
        for (int32_t left = REQUESTS; left > 0;) { /* requests that have not finished this step */
            avsg_status status = avsg_engine_step(engine, &batch, plan, 0, NULL, NULL);
            if (status != AVSG_LOST_ROWS) CHECK(status);
            int32_t finished = 0;
            for (int32_t r = 0; r < REQUESTS; r++) {
                if (state[r] < 0) continue;
                if (out.failed_row[r] >= 0) {
                    int32_t lost[K]; /* all rows that it lacks */
                    size_t count;
                    CHECK(avsg_plan_get_lost_ids(plan, (size_t)r, lost, K, &count));
                    for (size_t i = 0; i < count; i++) compute(pool, r, lost[i]);
                    printf("step %" PRId32 ": %zu rows of request %" PRId32 " are computed again\n", step, count, r);
                    continue; /* its state is empty, and the next step is a repetition for it alone */
                }
                for (int32_t i = 0; i < K; i++) { /* attention reads the rows through the slots */
                    const char *row = (const char *)buffer.base + (size_t)r * buffer.state_stride +
                                      (size_t)out.slot[r * K + i] * buffer.slot_stride;
                    wrong += memcmp(row, make_row(r, ids[r * K + i]), ROW_BYTES) != 0;
                }
                state[r] = -1, finished++;
            }
            printf("step %" PRId32 ": %" PRId32 " requests finished\n", step, finished);
            left -= finished;
        }
        for (int32_t r = 0; r < REQUESTS; r++) state[r] = r;
    }
    CHECK(avsg_plan_destroy(plan)), CHECK(avsg_engine_destroy(engine)), CHECK(avsg_pool_destroy(pool));
    printf("%" PRId32 " rows wrong\n", wrong);
    return wrong != 0;
}
