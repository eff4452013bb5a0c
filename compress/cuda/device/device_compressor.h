// A compressor of vectors on a CUDA device, with encodings that lie with the host.
//
// Thread safety and ownership: see Compressor; the queue and the operations must outlive it.
// Allocates room on the device for a frame when one is longer than all before. After a fault of the
// device an encoding is such that every decoder refuses it.
#pragma once

#include <memory>
#include <string>

#include <sotto/compress/compressor.h>
#include <sotto/kernels/cuda/device_ops.h>
#include <sotto/kernels/cuda/queue.h>
#include <sotto/kernels/cuda/workspace.h>

namespace sotto::cuda {

/// A compressor on a device with encodings that equal those of `host` byte for byte. Throws Error
/// for a family that only hosts have.
std::unique_ptr<Compressor> make_device_compressor(const Compressor& host, const DeviceOps& ops,
                                                   Queue& queue);

/// The common part of device compressors: all but the bytes is the host's.
class DeviceCompressor : public Compressor {
 public:
  /// A first byte that every format of devices refuses: as a length, a scale or values it is
  /// none.
  static constexpr std::byte kRefusedByAll{0xFF};

  DeviceCompressor(std::unique_ptr<Compressor> host, const DeviceOps& ops, Queue& queue)
      : host_(std::move(host)), ops_(ops), queue_(queue) {}
  ~DeviceCompressor() override;
  DeviceCompressor(const DeviceCompressor&) = delete;
  DeviceCompressor& operator=(const DeviceCompressor&) = delete;

  std::string spec() const override { return host_->spec(); }
  std::uint16_t wire_id() const override { return host_->wire_id(); }
  std::size_t max_bytes(std::size_t elements) const override { return host_->max_bytes(elements); }
  Contract contract(std::size_t elements) const override { return host_->contract(elements); }
  std::unique_ptr<Compressor> clone() const override;
  const Compressor& undecorated() const override { return *host_; }

  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override;
  Status decode_sum(std::span<const Term> terms, std::span<float> scratch, const Visitor& visit,
                    std::size_t& refused) const override;

 protected:
  /// Encodes as encode does, and leaves the residual in v.
  virtual std::size_t encode_to_residual(std::span<float> v, const RandomKey& key,
                                         std::span<std::byte> out) = 0;

  Queue& queue() const { return queue_; }
  /// Device memory to work in.
  std::span<std::byte> room(std::size_t bytes) const { return workspace_.of(bytes, queue_); }

 private:
  std::unique_ptr<Compressor> host_;
  const DeviceOps& ops_;
  Queue& queue_;
  mutable Workspace workspace_;
};

/// Rounds `bytes` up to the next multiple at which device memory is best read.
constexpr std::size_t to_grain(std::size_t bytes) {
  constexpr std::size_t kGrain = 256;
  return (bytes + kGrain - 1) / kGrain * kGrain;
}

}  // namespace sotto::cuda
