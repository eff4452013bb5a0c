// A CUDA device as the place of a node's model: sotto::Optimizer on parameters in device memory.
//
//   options.accelerator = sotto::cuda::make_accelerator(stream);
//   sotto::Optimizer optimizer(options, parameters);   // a span of device memory
//   optimizer.step(gradient);                          // likewise
//
// Thread safety and ownership: see Accelerator. No CUDA header is needed.
#pragma once

#include <memory>

#include <sotto/compress/accelerator.h>
#include <sotto/kernels/cuda/queue.h>
#include <sotto/kernels/cuda/stream.h>

namespace sotto::cuda {

/// An accelerator on the calling thread's device, with a stream of its own. `caller` is the stream
/// on which the caller computes gradients, of the same device; null: CUDA's (legacy) default
/// stream. For one optimizer. Each wait of a step for the device may take `patience_s` seconds, the
/// caller's work before it among that. One that takes longer puts the accelerator in fault for
/// good; parameters and gradients must then stay until the process ends, as the accelerator's own
/// memory does, since the device may still touch them. Throws Error where no device can be used.
std::shared_ptr<Accelerator> make_accelerator(Stream caller = nullptr,
                                              double patience_s = Queue::kPatienceS);

}  // namespace sotto::cuda
