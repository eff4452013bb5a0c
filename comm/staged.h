// A transport whose frames may lie in a GPU's memory, over one that knows only the host's: gloo,
// zmq, inproc. They go through pinned memory, by copies on the caller's stream.
//
// A frame must be there once the work is done that was on the stream when it was posted; it leaves
// when its copy is done, while somebody polls. A room holds its frame once the work is done that is
// on the stream when the frame is reported: work put there afterwards may use it, and nobody waits.
// Frames and rooms of the host pass untouched. Pinned memory is kept and used again.
//
// Thread safety: as Transport, and nobody else may put work on the stream during a call. Ownership:
// owns the inner transport; stream and device memory are the caller's and outlive the object.
#pragma once

#include <memory>

#include <sotto/comm/transport.h>

struct CUstream_st;

namespace sotto {

/// On the calling thread's device; a null stream is CUDA's default one. Throws Error where this
/// build has no CUDA, and where no device can be used.
std::unique_ptr<Transport> make_staged_transport(std::unique_ptr<Transport> inner,
                                                 CUstream_st* stream);

}  // namespace sotto
