// A fake of CANN's platform query, which describes an ascend910b3 with 40 vector cores.
#pragma once

#include <cstdint>

namespace platform_ascendc {
class PlatformAscendC {
public:
    explicit PlatformAscendC(const void *) {}
    uint32_t GetCoreNumAiv() const { return 40; }
    uint32_t GetLibApiWorkSpaceSize() const { return 16 << 20; }
};
} // namespace platform_ascendc
