// This is AVSG's model of the part of AscendC that its generated kernels use on dav-c220 (Ascend
// 910B), written from the documented behaviour. The model is strict: it reports an error where the
// device would silently compute a wrong result, and what it does not model does not compile. A
// kernel file includes this header instead of the toolkit's header of the same name; any C++17
// compiler builds it as a shared library, which exports `avsg_shim_launch`.
#pragma once

#include "ascend/arithmetic.h"
#include "ascend/bits.h"
#include "ascend/cast.h"
#include "ascend/compare.h"
#include "ascend/dma.h"
#include "ascend/fill.h"
#include "ascend/gather.h"
#include "ascend/gather_mask.h"
#include "ascend/launch.h"
#include "ascend/select.h"
#include "ascend/sync.h"
