#include <sotto/kernels/cuda/stream.h>

#include <cuda_runtime_api.h>

#include <string>

namespace sotto::cuda {
namespace {

/// The oldest device that there is code for: 8.0.
constexpr int kOldestMajor = 8;

Status told(cudaError_t error, const std::string& what) {
  if (error == cudaSuccess) {
    return {};
  }
  return {Fault::io, what + ": " + cudaGetErrorString(error)};
}

}  // namespace

Status take_fault() { return told(cudaGetLastError(), "CUDA"); }

Status device_status() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  static_cast<void>(cudaGetLastError());
  if (error != cudaSuccess || count == 0) {
    return told(error == cudaSuccess ? cudaErrorNoDevice : error, "no CUDA device can be used");
  }
  int device = 0;
  int major = 0;
  if (Status status = told(cudaGetDevice(&device), "CUDA"); !status.ok()) {
    return status;
  }
  if (Status status =
          told(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "CUDA");
      !status.ok()) {
    return status;
  }
  if (major < kOldestMajor) {
    return {Fault::io, "the CUDA device has compute capability " + std::to_string(major) +
                           ".x, and 8.0 is the oldest that this build has code for"};
  }
  return {};
}

}  // namespace sotto::cuda
