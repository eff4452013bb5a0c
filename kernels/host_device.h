// Marks functions that a host compiler and nvcc both compile, so that what runs on a GPU can be
// tested without one. Everything there that decides a byte is written with these.
#pragma once

#ifdef __CUDACC__
#define SOTTO_HOST_DEVICE __host__ __device__ __forceinline__
#define SOTTO_UNROLL _Pragma("unroll")
#define SOTTO_UNROLL_16 _Pragma("unroll 16")
#else
#define SOTTO_HOST_DEVICE inline
#define SOTTO_UNROLL
#define SOTTO_UNROLL_16
#endif
