#include <sotto/comm/staged.h>

#include <utility>

#include <sotto/base/error.h>

#include "gpu/staged_transport.h"

namespace sotto {

std::unique_ptr<Transport> make_staged_transport(std::unique_ptr<Transport> inner,
                                                 CUstream_st* stream) {
#ifdef SOTTO_HAVE_CUDA
  auto device = internal::make_cuda_device(std::nullopt);
  if (!device) {
    throw Error("frames on a GPU: " + device.status().message());
  }
  return std::make_unique<internal::StagedTransport>(std::move(inner), std::move(*device), stream);
#else
  (void)stream;
  refuse("transport", inner->name(),
         "frames on a GPU need a build with CUDA: -DSOTTO_WITH_CUDA=ON where nvcc is");
#endif
}

}  // namespace sotto
