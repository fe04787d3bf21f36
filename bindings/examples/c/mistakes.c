/* Mistakes and the statuses that they return. Each prints its status and message.
 *
 *   cc mistakes.c $(pkg-config --cflags --libs avsg) -o mistakes && ./mistakes
 */
#include <avsg.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Calls that returned another status than expected. */
static int unexpected;

static void expect(avsg_status got, avsg_status want, const char *what) {
    printf("%-28s %-16s %s\n", what, avsg_status_name(got), got == AVSG_OK ? "" : avsg_last_error());
    if (got != want) unexpected++;
}

int main(void) {
    avsg_pool_config pool_config = AVSG_INIT(avsg_pool_config);
    avsg_engine_config config = AVSG_INIT(avsg_engine_config);
    avsg_pool *pool;
    avsg_engine *engine;
    avsg_plan *plan;

    pool_config.size = 0;
    expect(avsg_pool_create(&pool_config, &pool), AVSG_SIZE, "size is not set");
    expect(avsg_pool_create(NULL, &pool), AVSG_NULL, "a NULL configuration");
    pool_config.size = sizeof pool_config;
    pool_config.layers = 1;
    pool_config.rows = 64;
    pool_config.segments = 1;
    expect(avsg_pool_create(&pool_config, &pool), AVSG_INVALID, "an empty segment");
    pool_config.segment_bytes[0] = 32;
    pool_config.rows = (size_t)1 << 50;
    expect(avsg_pool_create(&pool_config, &pool), AVSG_NO_MEMORY, "more memory than there is");
    pool_config.rows = 64;
    expect(avsg_pool_create(&pool_config, &pool), AVSG_OK, "a pool");

    config.k = 4;
    config.tokens = 1;
    config.slots = 100;
    config.states = 1;
    expect(avsg_engine_create(&config, pool, &engine), AVSG_INVALID, "S is no multiple of 64");
    config.slots = 64;
    config.device = "ascend";
    expect(avsg_engine_create(&config, pool, &engine), AVSG_UNSUPPORTED, "a missing device");
    config.device = NULL;
    expect(avsg_engine_create(&config, (avsg_pool *)&config, &engine), AVSG_HANDLE, "a pointer as a handle");
    expect(avsg_engine_create(&config, pool, &engine), AVSG_OK, "an engine");
    expect(avsg_plan_create(engine, 0, 1, &plan), AVSG_INVALID, "a plan of no tokens");
    expect(avsg_plan_create(engine, 1, 1, &plan), AVSG_OK, "a plan");

    int32_t ids[4] = {1, 2, 3, 99}, cu_q[2] = {0, 1}, zero[1] = {0}, none[1] = {-1}, length[1] = {64};
    avsg_batch batch = AVSG_INIT(avsg_batch);
    batch.k = batch.ids_stride = 4;
    batch.ids.data = ids;
    batch.ids.len = 3;
    batch.cu_q.data = cu_q;
    batch.cu_q.len = 2;
    batch.state.data = batch.generation.data = zero;
    batch.stable_len.data = none;
    batch.seq_len.data = length;
    batch.state.len = batch.generation.len = batch.stable_len.len = batch.seq_len.len = 1;
    expect(avsg_engine_step(engine, &batch, plan, 0, NULL, NULL), AVSG_INVALID, "a short array");
    batch.ids.len = 4;
    expect(avsg_engine_step(engine, &batch, plan, 1, NULL, NULL), AVSG_INVALID, "a layer out of range");
    expect(avsg_engine_step(engine, NULL, plan, 0, NULL, NULL), AVSG_NULL, "a NULL batch");
    zero[0] = 7;
    expect(avsg_engine_step(engine, &batch, plan, 0, NULL, NULL), AVSG_INVALID, "a state out of range");
    zero[0] = 0;
    expect(avsg_engine_step(engine, &batch, plan, 0, NULL, NULL), AVSG_OK, "a step");

    /* An id out of range is no error: it is padding and sets a status bit of its request. */
    avsg_plan_counters counters = AVSG_INIT(avsg_plan_counters);
    expect(avsg_plan_get_counters(plan, &counters), AVSG_OK, "counters");
    if (counters.selected != 3 || counters.status != AVSG_REQUEST_ID_OUT_OF_RANGE) unexpected++;

    expect(avsg_engine_destroy((avsg_engine *)(void *)plan), AVSG_HANDLE, "a plan as an engine");
    expect(avsg_engine_destroy(engine), AVSG_OK, "destroy the engine");
    expect(avsg_engine_destroy(engine), AVSG_HANDLE, "destroy the engine twice");
    expect(avsg_engine_step(engine, &batch, plan, 0, NULL, NULL), AVSG_HANDLE, "a step after destroy");
    expect(avsg_plan_destroy(plan), AVSG_OK, "destroy the plan");
    expect(avsg_pool_destroy(pool), AVSG_OK, "destroy the pool");
    expect(avsg_pool_destroy(pool), AVSG_HANDLE, "destroy the pool twice");
    expect(avsg_pool_destroy(NULL), AVSG_OK, "destroy NULL");
    if (unexpected) printf("%d unexpected results\n", unexpected);
    return unexpected != 0;
}
