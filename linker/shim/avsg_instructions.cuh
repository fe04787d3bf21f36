// In place of the file of the same name among the emitted ones: the shim for CUDA.
#pragma once

#include "cuda/launch.h"
