// The first lines of every file of kernels here, and copies of `n` elements.

#include "kernel_operator.h"

using namespace AscendC;

template <class T>
static void DataCopy(const LocalTensor<T> &to, const GlobalTensor<T> &from, uint32_t n, AVSG_SHIM_SITE) {
    const DataCopyExtParams run{1, uint32_t(n * sizeof(T)), 0, 0, 0};
    DataCopyPad(to, from, run, DataCopyPadExtParams<T>{false, 0, 0, 0}, at);
}

template <class T>
static void DataCopy(const GlobalTensor<T> &to, const LocalTensor<T> &from, uint32_t n, AVSG_SHIM_SITE) {
    DataCopyPad(to, from, DataCopyExtParams{1, uint32_t(n * sizeof(T)), 0, 0, 0}, at);
}
