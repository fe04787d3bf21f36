// The functions that CANN's generator writes for AvsgStep. Their arguments are the inputs, the attributes,
// and the outputs that are not inputs.
#pragma once

#include "aclnn/acl_meta.h"

extern "C" {
aclnnStatus aclnnAvsgStepGetWorkspaceSize(
    const aclTensor *ids, const aclTensor *cuQ, const aclTensor *state, const aclTensor *generation,
    const aclTensor *stableLen, const aclTensor *seqLen, const aclTensor *blockTableOptional,
    aclTensor *tablesRef, const aclTensor *rulesOptional, const aclTensor *hostChunks, aclTensor *kv0Ref,
    aclTensor *kv1Ref, const aclTensor *slotBlocksOptional, const aclTensor *fresh0Optional,
    const aclTensor *fresh1Optional, int64_t poolUnits,
    const aclIntArray *bytes, const aclIntArray *hostStride, const aclIntArray *kvStride,
    const aclIntArray *freshStride, const aclIntArray *chunks, const aclIntArray *chunkShift,
    int64_t copyCoresOptional, int64_t kvBlocksOptional, int64_t slotBaseOptional, const aclTensor *slot, const aclTensor *valid, const aclTensor *missPos,
    const aclTensor *missId, const aclTensor *missSlot, const aclTensor *missRow, const aclTensor *record,
    uint64_t *workspaceSize, aclOpExecutor **executor);
aclnnStatus aclnnAvsgStep(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);
}
