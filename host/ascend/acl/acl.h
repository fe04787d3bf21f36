/* The functions of the Ascend Computing Language runtime that AVSG calls, and the values that AVSG or the
 * simulator uses: names, signatures and numbers, typed from the runtime's public documentation. `sys.rs` is
 * generated from this file and checked in; tests/alone/acl_sys.rs regenerates and compares it. Every function is a
 * member of one struct, so that the same code runs over a library that is loaded at run time and over the
 * simulator. */
#ifndef AVSG_ACL_H
#define AVSG_ACL_H

#include <stddef.h>
#include <stdint.h>

typedef int aclError;
typedef void *aclrtContext;
typedef void *aclrtStream;
typedef void *aclrtEvent;
typedef void *aclrtBinHandle;
typedef void *aclrtFuncHandle;
typedef void *aclrtArgsHandle;
typedef void *aclrtParamHandle;
typedef void *aclmdlRI;

static const int ACL_SUCCESS = 0;
static const int ACL_ERROR_INVALID_PARAM = 100000;
static const int ACL_ERROR_REPEAT_INITIALIZE = 100002;
static const int ACL_ERROR_LINK_STUB = 100039;
static const int ACL_ERROR_RT_PARAM_INVALID = 107000;
static const int ACL_ERROR_RT_INVALID_DEVICEID = 107001;
static const int ACL_ERROR_RT_CONTEXT_NULL = 107002;
static const int ACL_ERROR_RT_STREAM_CONTEXT = 107003;
static const int ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID = 107006;
static const int ACL_ERROR_RT_STREAM_NOT_CAPTURED = 107024;
static const int ACL_ERROR_RT_STREAM_CAPTURED = 107025;
static const int ACL_ERROR_RT_STREAM_CAPTURE_MODE_NOT_SUPPORT = 107030;
static const int ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD = 107038;
static const int ACL_ERROR_RT_FEATURE_NOT_SUPPORT = 207000;
static const int ACL_ERROR_RT_MEMORY_ALLOCATION = 207001;
static const int ACL_ERROR_RT_VECTOR_CORE_TIMEOUT = 507034;
static const int ACL_ERROR_RT_VECTOR_CORE_EXCEPTION = 507035;
static const int ACL_ERROR_RT_STREAM_SYNC_TIMEOUT = 507046;
static const int ACL_ERROR_RT_EVENT_SYNC_TIMEOUT = 507047;
static const int ACL_ERROR_RT_DRV_INTERNAL_ERROR = 507899;
static const int ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED = 507910;
static const int ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED = 507911;

/* Values of arguments. */
static const int ACL_MEM_MALLOC_HUGE_FIRST = 0;
static const int ACL_MEMCPY_HOST_TO_HOST = 0;
static const int ACL_MEMCPY_HOST_TO_DEVICE = 1;
static const int ACL_MEMCPY_DEVICE_TO_HOST = 2;
static const int ACL_MEMCPY_DEVICE_TO_DEVICE = 3;
static const int ACL_HBM_MEM = 1;
static const int ACL_EVENT_TIME_LINE = 8;
static const int ACL_HOST_REGISTER_MAPPED = 0;
static const int ACL_DEVICE_INFO_AI_CORE_NUM = 0;
static const int ACL_DEVICE_INFO_VECTOR_CORE_NUM = 1;
static const int ACL_RT_DEV_RES_VECTOR_CORE = 1;
static const int ACL_RT_BINARY_LOAD_OPT_MAGIC = 2;
static const uint32_t ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE = 0x41415246;
static const int ACL_RT_LAUNCH_KERNEL_ATTR_SCHEM_MODE = 1;
static const int ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT = 7;
static const int ACL_RT_LAUNCH_KERNEL_ATTR_TIMEOUT_US = 8;
static const int ACL_MODEL_RI_CAPTURE_MODE_GLOBAL = 0;
static const int ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL = 1;
static const int ACL_MODEL_RI_CAPTURE_MODE_RELAXED = 2;
static const int ACL_MODEL_RI_CAPTURE_STATUS_NONE = 0;
static const int ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE = 1;

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

/* The functions, each as a member with its own name; absent ones are NULL. */
typedef struct {
  /* process */
  aclError (*aclInit)(const char *configPath);
  const char *(*aclGetRecentErrMsg)(void);
  const char *(*aclrtGetSocName)(void);
  /* device */
  aclError (*aclrtGetDeviceCount)(uint32_t *count);
  aclError (*aclrtSetDevice)(int32_t deviceId);
  aclError (*aclrtResetDevice)(int32_t deviceId);
  aclError (*aclGetDeviceCapability)(uint32_t deviceId, int32_t deviceInfo, int64_t *value);
  aclError (*aclrtGetMemInfo)(int32_t attr, size_t *free, size_t *total);
  aclError (*aclrtSynchronizeDevice)(void);
  aclError (*aclrtSynchronizeDeviceWithTimeout)(int32_t timeout);
  /* context */
  aclError (*aclrtSetCurrentContext)(aclrtContext context);
  aclError (*aclrtGetCurrentContext)(aclrtContext *context);
  /* stream */
  aclError (*aclrtCreateStream)(aclrtStream *stream);
  aclError (*aclrtDestroyStream)(aclrtStream stream);
  aclError (*aclrtDestroyStreamForce)(aclrtStream stream);
  aclError (*aclrtSynchronizeStreamWithTimeout)(aclrtStream stream, int32_t timeout);
  aclError (*aclrtGetStreamResLimit)(aclrtStream stream, int32_t type, uint32_t *value);
  /* event */
  aclError (*aclrtCreateEventExWithFlag)(aclrtEvent *event, uint32_t flag);
  aclError (*aclrtDestroyEvent)(aclrtEvent event);
  aclError (*aclrtRecordEvent)(aclrtEvent event, aclrtStream stream);
  aclError (*aclrtEventElapsedTime)(float *ms, aclrtEvent start, aclrtEvent end);
  /* memory */
  aclError (*aclrtMalloc)(void **devPtr, size_t size, int32_t policy);
  aclError (*aclrtFree)(void *devPtr);
  aclError (*aclrtMallocHost)(void **hostPtr, size_t size);
  aclError (*aclrtFreeHost)(void *hostPtr);
  aclError (*aclrtMemcpy)(void *dst, size_t destMax, const void *src, size_t count, int32_t kind);
  aclError (*aclrtMemcpyAsync)(void *dst, size_t destMax, const void *src, size_t count, int32_t kind,
                               aclrtStream stream);
  aclError (*aclrtMemset)(void *devPtr, size_t maxCount, int32_t value, size_t count);
  /* host registration */
  aclError (*aclrtHostRegister)(void *ptr, uint64_t size, int32_t type, void **devPtr);
  aclError (*aclrtHostUnregister)(void *ptr);
  /* binary */
  aclError (*aclrtBinaryLoadFromFile)(const char *path, aclrtBinaryLoadOptions *options,
                                      aclrtBinHandle *binHandle);
  aclError (*aclrtBinaryLoadFromData)(const void *data, size_t length,
                                      const aclrtBinaryLoadOptions *options,
                                      aclrtBinHandle *binHandle);
  aclError (*aclrtBinaryGetFunction)(const aclrtBinHandle binHandle, const char *kernelName,
                                     aclrtFuncHandle *funcHandle);
  aclError (*aclrtBinaryUnLoad)(aclrtBinHandle binHandle);
  /* arguments and launch */
  aclError (*aclrtKernelArgsInit)(aclrtFuncHandle funcHandle, aclrtArgsHandle *argsHandle);
  aclError (*aclrtKernelArgsAppend)(aclrtArgsHandle argsHandle, void *param, size_t paramSize,
                                    aclrtParamHandle *paramHandle);
  aclError (*aclrtKernelArgsAppendPlaceHolder)(aclrtArgsHandle argsHandle,
                                               aclrtParamHandle *paramHandle);
  aclError (*aclrtKernelArgsGetPlaceHolderBuffer)(aclrtArgsHandle argsHandle,
                                                  aclrtParamHandle paramHandle, size_t dataSize,
                                                  void **bufferAddr);
  aclError (*aclrtKernelArgsParaUpdate)(aclrtArgsHandle argsHandle, aclrtParamHandle paramHandle,
                                        void *param, size_t paramSize);
  aclError (*aclrtKernelArgsFinalize)(aclrtArgsHandle argsHandle);
  aclError (*aclrtLaunchKernelWithConfig)(aclrtFuncHandle funcHandle, uint32_t blockDim,
                                          aclrtStream stream, aclrtLaunchKernelCfg *cfg,
                                          aclrtArgsHandle argsHandle, void *reserve);
  /* capture */
  aclError (*aclmdlRICaptureBegin)(aclrtStream stream, int32_t mode);
  aclError (*aclmdlRICaptureEnd)(aclrtStream stream, aclmdlRI *modelRI);
  aclError (*aclmdlRICaptureGetInfo)(aclrtStream stream, int32_t *status, aclmdlRI *modelRI);
  aclError (*aclmdlRIExecuteAsync)(aclmdlRI modelRI, aclrtStream stream);
  aclError (*aclmdlRIDestroy)(aclmdlRI modelRI);
} Functions;

#endif
