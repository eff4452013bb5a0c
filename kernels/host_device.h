// Marks functions that a host compiler and nvcc both compile, so that what runs on a GPU can be
// tested without one. Everything there that decides a byte is written with these.
#pragma once

#ifdef __CUDACC__
#define SOTTO_HOST_DEVICE __host__ __device__ __forceinline__
#define SOTTO_UNROLL _Pragma("unroll")
#define SOTTO_UNROLL_16 _Pragma("unroll 16")
#else
#define SOTTO_HOST_DEVICE inline  ///< in front of a function for host and device
#define SOTTO_UNROLL              ///< in front of a loop that nvcc unrolls
#define SOTTO_UNROLL_16           ///< the same, 16 times at most
#endif
