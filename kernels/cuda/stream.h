// The device as plain C++ sees it: streams, and faults of launches. No CUDA header is needed.
//
// Thread safety: as CUDA's runtime: any thread. Nothing here owns anything or waits.
#pragma once

#include <sotto/base/status.h>

struct CUstream_st;

namespace sotto::cuda {

/// cudaStream_t: work on one stream is done in order. Null is the default stream.
using Stream = CUstream_st*;

/// What kept this thread's launches since the last call from being done (no device, a wrong
/// address …), Fault::io; success when nothing did. Faults of work under way show up later.
Status take_fault();

/// Success, or why nothing can run here: no driver, no device, or one that is too old.
Status device_status();

}  // namespace sotto::cuda
