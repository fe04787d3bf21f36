// One decode step through aclnn: shows how AvsgStep is called, with the sizes of a small batch. The
// runtime provides the data.
//
//   g++ -std=c++17 avsg_step.cpp -I$ASCEND_HOME_PATH/include -I$ASCEND_OPP_PATH/vendors/avsg/op_api/include
//     -L$ASCEND_HOME_PATH/lib64 -L$ASCEND_OPP_PATH/vendors/avsg/op_api/lib -lascendcl -lnnopbase -lcust_opapi
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnn_avsg_step.h"

#include "../op_host/avsg_sizes.h"

namespace {

using avsg::K;
using avsg::SLOTS;
using avsg::TABLE_WORDS;
constexpr int64_t REQUESTS = 4;
constexpr int64_t STATES = 4;
constexpr int64_t ROW_BYTES = 1152;
constexpr int64_t POOL_ROWS = 32768;

// Ends the program with the runtime's message if a call has failed.
void check(aclnnStatus status, const char *what)
{
    if (status != 0) {
        std::fprintf(stderr, "%s: %d: %s\n", what, static_cast<int>(status), aclGetRecentErrMsg());
        std::exit(1);
    }
}

// Returns new device memory.
void *allocated(size_t bytes)
{
    void *data = nullptr;
    check(aclrtMalloc(&data, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    return data;
}

// Returns a tensor in new device memory that is filled with zeros.
aclTensor *tensor(const std::vector<int64_t> &shape, aclDataType type, size_t element)
{
    size_t bytes = element;
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = i + 1 < shape.size() ? strides[i + 1] * shape[i + 1] : 1;
        bytes *= shape[i];
    }
    void *const data = allocated(bytes);
    check(aclrtMemset(data, bytes, 0, bytes), "aclrtMemset");
    return aclCreateTensor(
        shape.data(), shape.size(), type, strides.data(), 0, ACL_FORMAT_ND, shape.data(), shape.size(), data);
}

aclTensor *words(const std::vector<int64_t> &shape) { return tensor(shape, ACL_INT32, 4); }

aclIntArray *list(int64_t value) { return aclCreateIntArray(&value, 1); }

} // namespace

int main()
{
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(0), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    // The host pool is one registered chunk, whose device address is the only entry of `chunks`.
    void *pool = nullptr;
    void *mapped = nullptr;
    const size_t poolBytes = POOL_ROWS * ROW_BYTES;
    check(aclrtMallocHost(&pool, poolBytes), "aclrtMallocHost");
    check(aclrtHostRegister(pool, poolBytes, ACL_HOST_REGISTER_MAPPED, &mapped), "aclrtHostRegister");
    void *const addresses = allocated(8);
    check(aclrtMemcpy(addresses, 8, &mapped, 8, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    const int64_t one = 1;
    aclTensor *chunks = aclCreateTensor(&one, 1, ACL_INT64, &one, 0, ACL_FORMAT_ND, &one, 1, addresses);
    aclTensor *ids = words({REQUESTS, K});
    aclTensor *cuQ = words({REQUESTS + 1});
    aclTensor *state = words({REQUESTS}), *generation = words({REQUESTS});
    aclTensor *stableLen = words({REQUESTS}), *seqLen = words({REQUESTS});
    aclTensor *tables = words({STATES, TABLE_WORDS});
    aclTensor *rules = tensor({256}, ACL_FLOAT16, 2); // rules.f16
    aclTensor *kv = tensor({STATES * SLOTS, ROW_BYTES}, ACL_INT8, 1);
    aclTensor *fresh = tensor({REQUESTS, ROW_BYTES}, ACL_INT8, 1);
    aclTensor *slot = words({REQUESTS, K}), *valid = words({REQUESTS}), *summary = words({REQUESTS, 16});
    aclTensor *missPos = words({REQUESTS * K}), *missId = words({REQUESTS * K});
    aclTensor *missSlot = words({REQUESTS * K}), *missRow = words({REQUESTS * K});
    // Before the first step, AvsgReset is called on `tables`. Each step writes ids, cuQ, state and
    // the lengths.

    aclIntArray *bytes = list(ROW_BYTES);
    uint64_t workspaceBytes = 0;
    aclOpExecutor *executor = nullptr;
    check(aclnnAvsgStepGetWorkspaceSize(
              ids, cuQ, state, generation, stableLen, seqLen, nullptr, tables, rules, chunks, kv, kv, nullptr, fresh,
              nullptr, POOL_ROWS, bytes, bytes, bytes, bytes, list(1), list(15), 0, 0, -1, slot, valid, missPos, missId,
              missSlot, missRow, summary, &workspaceBytes, &executor),
          "aclnnAvsgStepGetWorkspaceSize");
    void *workspace = workspaceBytes > 0 ? allocated(workspaceBytes) : nullptr;
    check(aclnnAvsgStep(workspace, workspaceBytes, executor, stream), "aclnnAvsgStep");
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    // `slot` contains the slot in kv of each id, from which attention reads the row. No slot
    // changes until the next step.
    std::puts("AvsgStep: done");
}
