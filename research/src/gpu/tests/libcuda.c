/* A CUDA driver for tests: one device whose memory is that of this process, and one stream, whose work runs when a call
   waits for it. Kernels run on the shim: the image of a module is the words "avsgshim" and the address of the function
   that launches them. Every misuse is an error, and a call of a chosen name fails. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID = 1, NO_MEMORY = 2, NO_CONTEXT = 201, BAD_IMAGE = 200, NOT_FOUND = 500, NOT_READY = 600, BAD_KERNEL = 700,
       CAPTURING = 900 };
enum { MOST = 4096, POINTERS = 32, SCALAR_BYTES = 256 };

typedef uint64_t Address;
typedef int (*ShimLaunch)(const char *, uint32_t, void *const *, uint32_t, const void *, char *, size_t);

struct Region { void *base; uint64_t len; uint32_t kind; };
struct Options {
    uint32_t size, cores;
    uint64_t seed;
    uint32_t mode, regions;
    const struct Region *region;
    int32_t fault_block;
    uint32_t shared_bytes;
    uint32_t *peak;
    const void *cycles;
};

/* The kernels: the pointers that they take, and the bytes of the struct behind them. */
static const struct Signature { const char *name; int pointers, scalar_bytes; } SIGNATURES[] = {
    {"avsg_step", 21, 128},       {"avsg_plan", 16, 128},           {"avsg_comparator", 9, 4},
    {"avsg_probe_loads", 3, 24},  {"avsg_probe_loads_ahead", 3, 24}, {"avsg_probe_bulk", 3, 24},
    {"avsg_probe_table", 3, 24},  {"avsg_probe_table_bulk", 3, 24},  {"avsg_probe_nothing", 1, 24},
};

enum Kind { MODULE = 1, FUNCTION, STREAM, GRAPH, REPLAYED, EVENT };
enum Work { COPY, CLEAR, KERNEL, RECORD };

struct Object;
struct Op {
    enum Work work;
    Address to, from;
    size_t bytes;
    struct Object *object; /* a function or an event */
    unsigned blocks, shared_bytes;
    void *pointers[POINTERS];
    unsigned char scalars[SCALAR_BYTES];
};
struct Object {
    enum Kind kind;
    ShimLaunch launch;                  /* of a module and a function */
    const struct Signature *signature;  /* of a function */
    int shared_bytes;
    struct Op *ops;                     /* of a graph */
    int count;
    double us;                          /* of an event that the stream has reached, or -1 */
};

static struct { void *at; size_t bytes; int host; } memory[MOST];
static int memories, objects, contexts, current, kernels_run;
static struct Op queue[MOST];
static int queued;
static struct Object *capture;
static double clock_us;
static char failing[64], words[1024];
static int failing_code, dry, major = 9;
static uint64_t seed;

/* Controls. A dry driver runs no kernel. */
void fake_start(const char *name, int code, int is_dry, int capability)
{
    snprintf(failing, sizeof failing, "%s", name);
    failing_code = code;
    dry = is_dry;
    major = capability;
    kernels_run = 0;
    /* What an earlier run left because a release failed. */
    memories = objects = contexts = current = queued = 0;
    capture = NULL;
}
int fake_live(void) { return memories + objects + contexts + queued; }
int fake_kernels(void) { return kernels_run; }

#define CALL                                                            \
    do {                                                                \
        if (strcmp(failing, __func__) == 0) return failing_code;        \
    } while (0)
#define NEED(holds, code)                                               \
    do {                                                                \
        if (!(holds)) return code;                                      \
    } while (0)

static int is(struct Object *object, enum Kind kind) { return object != NULL && object->kind == kind; }

static struct Object *make(enum Kind kind)
{
    struct Object *object = calloc(1, sizeof *object);
    object->kind = kind;
    objects++;
    return object;
}

static int drop(struct Object *object, enum Kind kind)
{
    NEED(is(object, kind), INVALID);
    free(object->ops);
    memset(object, 0, sizeof *object); /* it is not freed, so that a later use is noticed */
    objects--;
    return 0;
}

/* Returns the allocation with some bytes, or -1. */
static int find(Address at, size_t bytes)
{
    for (int i = 0; i < memories; i++) {
        const Address base = (Address)memory[i].at;
        if (at >= base && at + bytes <= base + memory[i].bytes) return i;
    }
    return -1;
}

static int run_kernel(const struct Op *op)
{
    struct Region regions[MOST];
    for (int i = 0; i < memories; i++) {
        regions[i] = (struct Region){memory[i].at, memory[i].bytes, memory[i].host};
    }
    void *args[POINTERS + 1];
    const struct Signature *signature = op->object->signature;
    memcpy(args, op->pointers, sizeof op->pointers);
    args[signature->pointers] = (void *)op->scalars;
    const struct Options options = {sizeof options, 1, ++seed, 1, (uint32_t)memories, regions, -1, op->shared_bytes, NULL, NULL};
    char error[1024] = "";
    kernels_run++;
    if (op->object->launch(signature->name, op->blocks, args, signature->pointers + 1, &options, error, sizeof error)) {
        snprintf(words, sizeof words, "%.100s: %.900s", signature->name, error);
        return BAD_KERNEL;
    }
    return 0;
}

static int run(const struct Op *op)
{
    clock_us += 1;
    switch (op->work) {
    case COPY: memmove((void *)op->to, (const void *)op->from, op->bytes); break;
    case CLEAR: memset((void *)op->to, 0, op->bytes); break;
    case RECORD: op->object->us = clock_us; break;
    case KERNEL: return dry ? 0 : run_kernel(op);
    }
    return 0;
}

static int run_all(void)
{
    int code = 0;
    for (int i = 0; i < queued && code == 0; i++) code = run(&queue[i]);
    queued = 0;
    return code;
}

static int put(const struct Op *op)
{
    NEED(current, NO_CONTEXT);
    if (capture != NULL) {
        capture->ops = realloc(capture->ops, (capture->count + 1) * sizeof *op);
        capture->ops[capture->count++] = *op;
        return 0;
    }
    NEED(queued < MOST, NO_MEMORY);
    queue[queued++] = *op;
    return 0;
}

int cuInit(unsigned flags) { CALL; return flags == 0 ? 0 : INVALID; }
int cuDriverGetVersion(int *version) { CALL; *version = 13010; return 0; }
int cuGetErrorName(int code, const char **name)
{
    CALL;
    *name = code == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : code == BAD_KERNEL ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR";
    return 0;
}
int cuGetErrorString(int code, const char **text) { CALL; *text = code == BAD_KERNEL ? words : "words"; return 0; }
int cuDeviceGet(int *device, int number) { CALL; *device = number; return number == 0 ? 0 : 101; }
int cuDeviceGetName(char *name, int length, int device)
{
    CALL;
    snprintf(name, length, "Shim");
    return device == 0 ? 0 : 101;
}
int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    CALL;
    NEED(device == 0, 101);
    switch (attribute) {
    case 16: *value = 4; return 0;
    case 38: *value = 1 << 20; return 0;
    case 75: *value = major; return 0;
    case 76: *value = 0; return 0;
    case 97: *value = 227 * 1024; return 0;
    default: return INVALID;
    }
}
int cuDevicePrimaryCtxRetain(struct Object **context, int device)
{
    CALL;
    *context = (struct Object *)&contexts;
    contexts++;
    return device == 0 ? 0 : 101;
}
int cuDevicePrimaryCtxRelease_v2(int device) { CALL; NEED(contexts > 0, INVALID); contexts--; return device == 0 ? 0 : 101; }
int cuCtxSetCurrent(struct Object *context) { CALL; current = context == (struct Object *)&contexts; return 0; }

int cuModuleLoadData(struct Object **module, const void *image)
{
    CALL;
    NEED(current && capture == NULL, NO_CONTEXT);
    NEED(memcmp(image, "avsgshim", 8) == 0, BAD_IMAGE);
    *module = make(MODULE);
    memcpy(&(*module)->launch, (const char *)image + 8, sizeof(ShimLaunch));
    return 0;
}
int cuModuleUnload(struct Object *module) { CALL; return drop(module, MODULE); }
int cuModuleGetFunction(struct Object **function, struct Object *module, const char *name)
{
    CALL;
    NEED(is(module, MODULE), INVALID);
    for (size_t i = 0; i < sizeof SIGNATURES / sizeof *SIGNATURES; i++) {
        if (strcmp(SIGNATURES[i].name, name) == 0) {
            *function = make(FUNCTION);
            objects--; /* it belongs to its module */
            (*function)->signature = &SIGNATURES[i];
            (*function)->launch = module->launch;
            return 0;
        }
    }
    return NOT_FOUND;
}
int cuFuncSetAttribute(struct Object *function, int attribute, int value)
{
    CALL;
    NEED(is(function, FUNCTION) && attribute == 8 && value >= 0 && value <= 227 * 1024, INVALID);
    function->shared_bytes = value;
    return 0;
}

static int allocate(void **at, size_t bytes, int host)
{
    NEED(current && capture == NULL, CAPTURING);
    NEED(bytes > 0 && memories < MOST && posix_memalign(at, 4096, bytes) == 0, NO_MEMORY);
    memset(*at, host ? 0 : 0xA5, bytes);
    memory[memories].at = *at;
    memory[memories].bytes = bytes;
    memory[memories++].host = host;
    return 0;
}
static int release(void *at, int host)
{
    const int code = run_all();
    for (int i = 0; i < memories; i++) {
        if (memory[i].at == at && memory[i].host == host) {
            free(at);
            memory[i] = memory[--memories];
            return code;
        }
    }
    return INVALID;
}
int cuMemAlloc_v2(Address *at, size_t bytes) { CALL; return allocate((void **)at, bytes, 0); }
int cuMemFree_v2(Address at) { CALL; return release((void *)at, 0); }
int cuMemHostAlloc(void **at, size_t bytes, unsigned flags) { CALL; return flags == 0 ? allocate(at, bytes, 1) : INVALID; }
int cuMemFreeHost(void *at) { CALL; return release(at, 1); }

int cuMemcpyAsync(Address to, Address from, size_t bytes, struct Object *stream)
{
    CALL;
    const int known = (find(to, bytes) >= 0) + (find(from, bytes) >= 0);
    const int begin = (find(to, 1) >= 0) + (find(from, 1) >= 0);
    /* The other one may be memory of the process, but not in a graph, which is replayed later. */
    NEED(is(stream, STREAM) && known == begin && known >= (capture == NULL ? 1 : 2), INVALID);
    return put(&(struct Op){.work = COPY, .to = to, .from = from, .bytes = bytes});
}
int cuMemsetD8Async(Address to, unsigned char byte, size_t bytes, struct Object *stream)
{
    CALL;
    NEED(is(stream, STREAM) && byte == 0 && find(to, bytes) >= 0, INVALID);
    return put(&(struct Op){.work = CLEAR, .to = to, .bytes = bytes});
}

int cuStreamCreate(struct Object **stream, unsigned flags)
{
    CALL;
    NEED(current && flags == 1, NO_CONTEXT);
    *stream = make(STREAM);
    return 0;
}
int cuStreamDestroy_v2(struct Object *stream) { CALL; run_all(); return drop(stream, STREAM); }
int cuStreamSynchronize(struct Object *stream)
{
    CALL;
    NEED(capture == NULL, CAPTURING);
    return is(stream, STREAM) ? run_all() : INVALID;
}
int cuStreamBeginCapture_v2(struct Object *stream, int mode)
{
    CALL;
    NEED(is(stream, STREAM) && mode == 1 && capture == NULL, CAPTURING);
    capture = make(GRAPH);
    return 0;
}
int cuStreamEndCapture(struct Object *stream, struct Object **graph)
{
    CALL;
    NEED(is(stream, STREAM) && capture != NULL, CAPTURING);
    *graph = capture;
    capture = NULL;
    return 0;
}
int cuGraphInstantiateWithFlags(struct Object **replayed, struct Object *graph, unsigned long long flags)
{
    CALL;
    NEED(is(graph, GRAPH) && graph->count > 0 && flags == 0, INVALID);
    *replayed = make(REPLAYED);
    (*replayed)->count = graph->count;
    (*replayed)->ops = malloc(graph->count * sizeof(struct Op));
    memcpy((*replayed)->ops, graph->ops, graph->count * sizeof(struct Op));
    return 0;
}
int cuGraphLaunch(struct Object *replayed, struct Object *stream)
{
    CALL;
    NEED(is(replayed, REPLAYED) && is(stream, STREAM) && capture == NULL, INVALID);
    int code = 0;
    for (int i = 0; i < replayed->count && code == 0; i++) code = put(&replayed->ops[i]);
    return code;
}
int cuGraphDestroy(struct Object *graph) { CALL; return drop(graph, GRAPH); }
int cuGraphExecDestroy(struct Object *replayed) { CALL; return drop(replayed, REPLAYED); }

int cuEventCreate(struct Object **event, unsigned flags)
{
    CALL;
    NEED(current && flags == 0, NO_CONTEXT);
    *event = make(EVENT);
    (*event)->us = -1;
    return 0;
}
int cuEventRecord(struct Object *event, struct Object *stream)
{
    CALL;
    NEED(is(event, EVENT) && is(stream, STREAM), INVALID);
    event->us = -1;
    return put(&(struct Op){.work = RECORD, .object = event});
}
int cuEventElapsedTime(float *ms, struct Object *from, struct Object *to)
{
    CALL;
    NEED(is(from, EVENT) && is(to, EVENT), INVALID);
    NEED(from->us >= 0 && to->us >= 0, NOT_READY);
    *ms = (float)((to->us - from->us) / 1000);
    return 0;
}
int cuEventDestroy_v2(struct Object *event) { CALL; return drop(event, EVENT); }

int cuLaunchKernel(struct Object *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared_bytes, struct Object *stream, void **arguments, void **extra)
{
    CALL;
    NEED(is(function, FUNCTION) && is(stream, STREAM) && extra == NULL, INVALID);
    NEED(x > 0 && y == 1 && z == 1 && threads == 256 && ty == 1 && tz == 1, INVALID);
    NEED((int)shared_bytes <= function->shared_bytes, INVALID);
    struct Op op = {.work = KERNEL, .object = function, .blocks = x, .shared_bytes = shared_bytes};
    const struct Signature *signature = function->signature;
    for (int i = 0; i < signature->pointers; i++) {
        op.pointers[i] = *(void **)arguments[i];
        NEED(op.pointers[i] == NULL || find((Address)op.pointers[i], 1) >= 0, INVALID);
    }
    memcpy(op.scalars, arguments[signature->pointers], signature->scalar_bytes);
    return put(&op);
}
