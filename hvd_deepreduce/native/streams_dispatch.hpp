// How the passes of streams.hpp are compiled: once for every machine, and once for those with AVX2.
#pragma once

#include <cstddef>
#include <cstdint>

// DEEPREDUCE_PORTABLE leaves out the vector code, so that tests see what other machines run.
#if defined(__x86_64__) && !defined(DEEPREDUCE_PORTABLE)
#include <immintrin.h>
#define DEEPREDUCE_AVX2 __attribute__((target("avx2,bmi")))
#endif
#define DEEPREDUCE_INLINE inline __attribute__((always_inline))

namespace deepreduce::streams {

constexpr std::size_t kLine = 64;
/// Bytes fetched ahead of a single stream; without it a pass takes nearly twice as long.
constexpr std::size_t kAhead = 4096;

/// May point beyond the array: a fetch that can't be made is dropped.
template <std::size_t kBytes>
DEEPREDUCE_INLINE void fetch(const void* from, std::size_t ahead) {
    const auto address = reinterpret_cast<std::uintptr_t>(from) + ahead;
    for (std::size_t offset = 0; offset < kBytes; offset += kLine) {
        __builtin_prefetch(reinterpret_cast<const void*>(address + offset));
    }
}

#ifdef DEEPREDUCE_AVX2
inline bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi"); }
#endif

}  // namespace deepreduce::streams
