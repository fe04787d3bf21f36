/* The types and values of the Ascend Computing Language runtime that AVSG uses, typed from the runtime's public
 * documentation, CANN 8.1 to 9.1. `sys.rs` is generated from this file and checked in; tests/alone/acl_sys.rs
 * regenerates and compares it. `functions.rs` lists the functions. */
#ifndef AVSG_ACL_H
#define AVSG_ACL_H

#include <stddef.h>
#include <stdint.h>

typedef void *aclrtContext;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtBinHandle;
typedef void *aclrtFuncHandle;
typedef void *aclrtArgsHandle;
typedef void *aclrtParamHandle;
typedef void *aclmdlRI;

static const int ACL_SUCCESS = 0;
static const int ACL_ERROR_REPEAT_INITIALIZE = 100002;
static const int ACL_ERROR_LINK_STUB = 100039;
static const int ACL_ERROR_RT_INVALID_DEVICEID = 107001;
static const int ACL_ERROR_RT_CONTEXT_NULL = 107002;
static const int ACL_ERROR_RT_STREAM_CONTEXT = 107003;
static const int ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT = 107030;
static const int ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000;
static const int ACL_ERROR_RT_MEMORY_ALLOCATION = 207001;
static const int ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046;

/* Values of arguments. */
static const int ACL_MEM_MALLOC_HUGE_FIRST = 0;
static const int ACL_MEMCPY_HOST_TO_DEVICE = 1;
static const int ACL_MEMCPY_DEVICE_TO_HOST = 2;
static const int ACL_MEMCPY_DEVICE_TO_DEVICE = 3;
static const int ACL_HBM_MEM = 1;
static const int ACL_EVENT_TIME_LINE = 8;
static const int ACL_HOST_REGISTER_MAPPED = 0;
static const int ACL_DEVICE_INFO_VECTOR_CORE_NUM = 1;
static const int ACL_RT_DEV_RES_VECTOR_CORE = 1;
static const int ACL_RT_BINARY_LOAD_OPT_MAGIC = 2;
static const uint32_t ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE = 0x41415246;
static const int ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE = 1;
static const int ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL = 1;
static const int ACL_MODEL_RI_CAPTURE_STATUS_NONE = 0;

typedef struct {
  uint32_t id;
  uint32_t value[4]; /* a union of small numbers, little-endian, in 16 bytes */
} aclrtLaunchKernelAttr;

typedef struct {
  aclrtLaunchKernelAttr *attrs;
  size_t numAttrs;
} aclrtLaunchKernelCfg;

typedef struct {
  int32_t type;
  uint32_t value[4]; /* a union of small numbers, little-endian, in 16 bytes */
} aclrtBinaryLoadOption;

typedef struct {
  aclrtBinaryLoadOption *options;
  size_t numOpt;
} aclrtBinaryLoadOptions;

#endif
