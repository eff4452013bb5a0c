// A compressor of vectors on a CUDA device, whose encodings lie with the host.
//
// Thread safety and ownership: see Compressor; the queue and the operations must outlive it.
// Allocates room on the device for a frame when one is longer than all before. After a fault of the
// device an encoding is such that every decoder refuses it.
#pragma once

#include <memory>

#include <sotto/compress/compressor.h>
#include <sotto/kernels/cuda/device_ops.h>
#include <sotto/kernels/cuda/queue.h>

namespace sotto::cuda {

/// The same encodings as `host` makes, byte for byte. Throws Error for a family that only hosts
/// have.
std::unique_ptr<Compressor> make_device_compressor(const Compressor& host, const DeviceOps& ops,
                                                   Queue& queue);

}  // namespace sotto::cuda
