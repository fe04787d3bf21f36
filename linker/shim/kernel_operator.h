// AVSG's model of the AscendC surface that its generated kernels use on dav-c220 (Ascend 910B), written
// from documented behaviour. Strict: whatever the device would do silently wrong is an error here, and
// whatever is not modelled does not compile. A kernel file includes this instead of the toolkit's
// header of the same name, is built by any C++17 compiler as a shared library, and exports
// `avsg_shim_launch`.
#pragma once

#include "shim/arithmetic.h"
#include "shim/bits.h"
#include "shim/cast.h"
#include "shim/compare.h"
#include "shim/copy.h"
#include "shim/dma.h"
#include "shim/fill.h"
#include "shim/gather.h"
#include "shim/gather_mask.h"
#include "shim/launch.h"
#include "shim/reduce.h"
#include "shim/select.h"
#include "shim/sync.h"
