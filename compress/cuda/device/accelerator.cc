#include <sotto/compress/cuda/accelerator.h>

#include <sotto/kernels/cuda/device_ops.h>
#include <sotto/kernels/cuda/queue.h>

#include "device_compressor.h"

namespace sotto::cuda {
namespace {

class CudaAccelerator final : public Accelerator {
 public:
  CudaAccelerator(Stream caller, double patience_s)
      : queue_(patience_s), ops_(queue_), caller_(caller) {}

  std::string_view name() const override { return "CUDA"; }
  const Ops& ops() const override { return ops_; }
  std::unique_ptr<Compressor> adopt(const Compressor& compressor) const override {
    return make_device_compressor(compressor, ops_, queue_);
  }
  std::shared_ptr<std::byte> frame_memory(std::size_t bytes) const override {
    return queue_.host_memory(bytes);
  }
  bool reaches(const float* at) const override { return queue_.reaches(at); }
  void follow_caller() override { queue_.follow(caller_); }
  void lead_caller() override { queue_.lead(caller_); }
  Status finish() override {
    queue_.wait();
    return queue_.status();
  }
  Status status() const override { return queue_.status(); }

 private:
  mutable Queue queue_;
  DeviceOps ops_;
  Stream caller_;
};

}  // namespace

std::shared_ptr<Accelerator> make_accelerator(Stream caller, double patience_s) {
  return std::make_shared<CudaAccelerator>(caller, patience_s);
}

}  // namespace sotto::cuda
