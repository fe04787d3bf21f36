// The part of ACL that the example uses, declared so that it compiles without CANN.
#pragma once

#include <cstddef>
#include <cstdint>

using aclError = int;
using aclrtStream = void *;
enum aclDataType { ACL_FLOAT16 = 1, ACL_INT8 = 2, ACL_INT32 = 3, ACL_INT64 = 9 };
enum aclFormat { ACL_FORMAT_ND = 2 };
enum aclrtMemMallocPolicy { ACL_MEM_MALLOC_HUGE_FIRST = 0 };
enum aclrtMemcpyKind { ACL_MEMCPY_HOST_TO_DEVICE = 1 };
enum aclrtHostRegisterType { ACL_HOST_REGISTER_MAPPED = 0 };

extern "C" {
aclError aclInit(const char *);
aclError aclrtSetDevice(int32_t);
aclError aclrtCreateStream(aclrtStream *);
aclError aclrtSynchronizeStream(aclrtStream);
aclError aclrtMalloc(void **, size_t, aclrtMemMallocPolicy);
aclError aclrtMallocHost(void **, size_t);
aclError aclrtMemset(void *, size_t, int32_t, size_t);
aclError aclrtMemcpy(void *, size_t, const void *, size_t, aclrtMemcpyKind);
aclError aclrtHostRegister(void *, uint64_t, aclrtHostRegisterType, void **);
const char *aclGetRecentErrMsg();
}
