// `topk` of vectors on a device: the elements are chosen, taken out and added there, and only they
// and their places pass between it and the host, which codes the gaps.
//
// Allocates room for k elements, on the host and the device, when k is larger than all before.
#pragma once

#include <memory>

#include "device_compressor.h"

namespace sotto::cuda {

/// `host` is a `topk` of the host's.
std::unique_ptr<Compressor> make_device_topk(std::unique_ptr<Compressor> host, const DeviceOps& ops,
                                             Queue& queue);

}  // namespace sotto::cuda
