// Synchronises all cores n times.
extern "C" __global__ __aicore__ void avsg_probe_sync(GM_ADDR from, GM_ADDR to, GM_ADDR setting)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIV_1_0);
    const probes::Setting s = probes::ReadSetting(setting);
    for (int32_t i = 0; i < s.n; i++) {
        SyncAll<true>();
    }
}
