// A CUDA device that is none, behind the functions of sotto::cuda: what DeviceOps, the device's
// compressors and the accelerator are made of runs on it, on machines without a GPU.
//
// Its memory is such that the host cannot touch it (comm/fake_device.h), and holds NaNs when it is
// new. Work on a stream is not done before somebody waits for it, so that whoever reads too early
// sees what was there before. Operations are those of reference_ops(), on another mapping of the
// memory; that the kernels leave the same bytes is shown elsewhere (kernels/cuda_shared_test.cc).
//
// Thread safety: any thread; one at a time works.
#pragma once

#include <cstddef>

namespace sotto::test::fake_cuda {

/// From the next wait on, the device is lost.
void lose_device();
/// After so many more waits, of any queue, the device is lost.
void lose_device_after(int waits);
/// All work takes for ever from now on: every wait of a queue runs out at once, and nothing may be
/// given back.
void stall(bool stalled);
/// Takes back what was left to the device for good, once nobody holds any of its memory; returns
/// how many pieces that were.
std::size_t reclaim();
/// It can be used again, by queues that are made now.
void recover();
/// The device that the calling thread has chosen; those of queues are device 0.
int& current_device();
/// No more memory than what there is now.
void refuse_memory(bool refuse);

}  // namespace sotto::test::fake_cuda
