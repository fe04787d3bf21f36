// The Ascend runtime, or its simulator, loaded by path.
#ifndef ASCEND_RUNTIME_HPP
#define ASCEND_RUNTIME_HPP

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

constexpr std::int32_t kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3;

// The functions of the Ascend runtime that a program calls, found in its library.
class Runtime {
   public:
    using Stream = void *;
    using Graph = void *;

    explicit Runtime(const char *path) : library_(dlopen(path, RTLD_NOW)) {
        if (library_ == nullptr) throw std::runtime_error(dlerror());
        call<const char *>("aclInit", nullptr);
        call<std::int32_t>("aclrtSetDevice", 0);
    }

    // Calls a function of the runtime, which returns 0 if it succeeds.
    template <class... Parameters>
    void call(const char *name, Parameters... arguments) const {
        void *symbol = dlsym(library_, name);
        if (symbol == nullptr) throw std::runtime_error(std::string("the runtime lacks ") + name);
        const int code = reinterpret_cast<int (*)(Parameters...)>(symbol)(arguments...);
        if (code != 0) throw std::runtime_error(std::string(name) + " failed with code " + std::to_string(code));
    }

    Stream create_stream() const {
        Stream stream = nullptr;
        call<Stream *>("aclrtCreateStream", &stream);
        return stream;
    }
    void synchronize(Stream stream) const { call<Stream>("aclrtSynchronizeStream", stream); }
    void copy(void *to, const void *from, std::size_t bytes, std::int32_t kind) const {
        call<void *, std::size_t, const void *, std::size_t, std::int32_t>("aclrtMemcpy", to, bytes, from, bytes, kind);
    }

   private:
    void *library_;
};

#endif  // ASCEND_RUNTIME_HPP
