// One decode step through aclnn: shows how AvsgStep is called, with the sizes of a small batch. The
// runtime provides the data.
//
//   g++ -std=c++17 avsg_step.cpp -I$ASCEND_HOME_PATH/include -I$ASCEND_OPP_PATH/vendors/avsg/op_api/include
//     -L$ASCEND_HOME_PATH/lib64 -L$ASCEND_OPP_PATH/vendors/avsg/op_api/lib -lascendcl -lnnopbase -lcust_opapi
#include <cstdint>
#include <cstdio>
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

// Prints the message of an error; returns whether there was one.
bool failed(aclnnStatus status, const char *what)
{
    if (status == 0) {
        return false;
    }
    std::fprintf(stderr, "%s: %d: %s\n", what, static_cast<int>(status), aclGetRecentErrMsg());
    return true;
}

// Returns a tensor in new device memory that is filled with zeros.
aclTensor *tensor(const std::vector<int64_t> &shape, aclDataType type, size_t element, void **data)
{
    size_t bytes = element;
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t i = shape.size(); i-- > 0;) {
        strides[i] = i + 1 < shape.size() ? strides[i + 1] * shape[i + 1] : 1;
        bytes *= shape[i];
    }
    if (failed(aclrtMalloc(data, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc")
        || failed(aclrtMemset(*data, bytes, 0, bytes), "aclrtMemset")) {
        return nullptr;
    }
    return aclCreateTensor(shape.data(), shape.size(), type, strides.data(), 0, ACL_FORMAT_ND, shape.data(),
                           shape.size(), *data);
}

} // namespace

int main()
{
    aclrtStream stream = nullptr;
    if (failed(aclInit(nullptr), "aclInit") || failed(aclrtSetDevice(0), "aclrtSetDevice")
        || failed(aclrtCreateStream(&stream), "aclrtCreateStream")) {
        return 1;
    }
    // The host pool is one registered chunk, whose device address is the only entry of `chunks`.
    void *pool = nullptr;
    void *mapped = nullptr;
    const size_t poolBytes = POOL_ROWS * ROW_BYTES;
    if (failed(aclrtMallocHost(&pool, poolBytes), "aclrtMallocHost")
        || failed(aclrtHostRegister(pool, poolBytes, ACL_HOST_REGISTER_MAPPED, &mapped), "aclrtHostRegister")) {
        return 1;
    }
    std::vector<void *> memory(21);
    auto words = [&](size_t i, const std::vector<int64_t> &shape) {
        return tensor(shape, ACL_INT32, 4, &memory[i]);
    };
    aclTensor *ids = words(0, {REQUESTS, K});
    aclTensor *cuQ = words(1, {REQUESTS + 1});
    aclTensor *state = words(2, {REQUESTS});
    aclTensor *generation = words(3, {REQUESTS});
    aclTensor *stableLen = words(4, {REQUESTS});
    aclTensor *seqLen = words(5, {REQUESTS});
    aclTensor *tables = words(6, {STATES, TABLE_WORDS});
    aclTensor *rules = tensor({256}, ACL_FLOAT16, 2, &memory[7]); // rules.f16
    aclTensor *chunks = tensor({1}, ACL_INT64, 8, &memory[8]);
    aclTensor *kv = tensor({STATES * SLOTS, ROW_BYTES}, ACL_INT8, 1, &memory[9]);
    aclTensor *fresh = tensor({REQUESTS, ROW_BYTES}, ACL_INT8, 1, &memory[10]);
    aclTensor *slot = words(11, {REQUESTS, K});
    aclTensor *valid = words(12, {REQUESTS});
    aclTensor *missPos = words(13, {REQUESTS * K});
    aclTensor *missId = words(14, {REQUESTS * K});
    aclTensor *missSlot = words(15, {REQUESTS * K});
    aclTensor *missRow = words(16, {REQUESTS * K});
    aclTensor *record = words(17, {REQUESTS, 16});
    if (failed(aclrtMemcpy(memory[8], 8, &mapped, 8, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy")) {
        return 1;
    }
    // Before the first step, AvsgReset is called on `tables`. Each step writes ids, cuQ, state and
    // the lengths.

    auto list = [](const std::vector<int64_t> &v) { return aclCreateIntArray(v.data(), v.size()); };
    aclIntArray *bytes = list({ROW_BYTES});
    aclIntArray *one = list({1});
    aclIntArray *shift = list({15});
    uint64_t workspaceBytes = 0;
    aclOpExecutor *executor = nullptr;
    if (failed(aclnnAvsgStepGetWorkspaceSize(
                   ids, cuQ, state, generation, stableLen, seqLen, nullptr, tables, rules, chunks, kv, kv,
                   nullptr, fresh, nullptr, POOL_ROWS, bytes, bytes, bytes, bytes, one, shift, 0, 0, -1, slot, valid,
                   missPos, missId, missSlot, missRow, record, &workspaceBytes, &executor),
               "aclnnAvsgStepGetWorkspaceSize")) {
        return 1;
    }
    void *workspace = nullptr;
    if (workspaceBytes > 0
        && failed(aclrtMalloc(&workspace, workspaceBytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc")) {
        return 1;
    }
    if (failed(aclnnAvsgStep(workspace, workspaceBytes, executor, stream), "aclnnAvsgStep")
        || failed(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream")) {
        return 1;
    }
    // `slot` contains the slot in kv of each id, from which attention reads the row. No slot
    // changes until the next step.
    std::puts("AvsgStep: done");
    return 0;
}
