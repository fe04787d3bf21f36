// The part of CANN's aclnn interface that the example uses, declared so that it compiles without CANN.
#pragma once

#include "acl/acl.h"

struct aclTensor;
struct aclIntArray;
struct aclOpExecutor;
using aclnnStatus = int32_t;

extern "C" {
aclTensor *aclCreateTensor(const int64_t *, uint64_t, aclDataType, const int64_t *, int64_t, aclFormat,
                           const int64_t *, uint64_t, void *);
aclIntArray *aclCreateIntArray(const int64_t *, uint64_t);
}
