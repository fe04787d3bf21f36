// This is AVSG's model of the part of AscendC that its generated kernels use on dav-c220 (Ascend
// 910B), written from the documented behaviour. The model is strict: it reports an error where the
// device would silently compute a wrong result, and what it does not model does not compile. A
// kernel file includes this header instead of the toolkit's header of the same name; any C++17
// compiler builds it as a shared library, which exports `avsg_shim_launch`.
#pragma once

#include "shim/arithmetic.h"
#include "shim/bits.h"
#include "shim/cast.h"
#include "shim/compare.h"
#include "shim/dma.h"
#include "shim/fill.h"
#include "shim/gather.h"
#include "shim/gather_mask.h"
#include "shim/launch.h"
#include "shim/select.h"
#include "shim/sync.h"
