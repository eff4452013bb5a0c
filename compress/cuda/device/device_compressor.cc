#include "device_compressor.h"

#include <algorithm>
#include <utility>

#include <sotto/compress/cuda/codec.h>
#include <sotto/kernels/cuda/room.h>

namespace sotto::cuda {
namespace {

/// Of every format that there are codecs for, a scale or values that are no numbers.
constexpr std::byte kRefusedByAll{0xFF};

class DeviceCompressor final : public Compressor {
 public:
  DeviceCompressor(std::unique_ptr<Compressor> host, const DeviceOps& ops, Queue& queue)
      : host_(std::move(host)), codec_(host_->spec()), ops_(ops), queue_(queue) {}
  ~DeviceCompressor() override {
    if (!queue_.settle()) {
      room_.abandon();
    }
  }
  DeviceCompressor(const DeviceCompressor&) = delete;
  DeviceCompressor& operator=(const DeviceCompressor&) = delete;

  std::string spec() const override { return host_->spec(); }
  std::uint16_t wire_id() const override { return host_->wire_id(); }
  std::size_t max_bytes(std::size_t elements) const override { return host_->max_bytes(elements); }
  Contract contract(std::size_t elements) const override { return host_->contract(elements); }
  std::unique_ptr<Compressor> clone() const override {
    return make_device_compressor(*host_, ops_, queue_);
  }
  const Compressor& undecorated() const override { return *host_; }
  std::size_t saturated() const override { return saturated_; }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override {
    return made(x.size(), out, [&](auto frame, auto work, Outcome* outcome) {
      codec_.encode(x, key, frame, work, outcome, queue_.stream());
    });
  }

  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override {
    if (!prepare.make(0, v)) {
      return std::nullopt;
    }
    const std::size_t used = made(v.size(), out, [&](auto frame, auto work, Outcome* outcome) {
      if (prepare.residual) {
        codec_.encode_residual({}, v, key, frame, work, outcome, queue_.stream());
      } else {
        codec_.encode(v, key, frame, work, outcome, queue_.stream());
      }
    });
    return queue_.sound() ? std::optional(used) : std::nullopt;
  }

  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override {
    queue_.enter();
    const Places places = take(bytes.size(), 0);
    if (places.outcome == nullptr) {
      return queue_.status();
    }
    queue_.copy(bytes, places.frame.data());
    if (Status status = codec_.decode_add(places.frame, scale, y, places.outcome, queue_.stream());
        !status) {
      return status;
    }
    Outcome outcome;
    return fetch(places, outcome) ? outcome.status() : queue_.status();
  }

  Status decode_sum(std::span<const Term> terms, std::span<float> scratch, const Visitor& visit,
                    std::size_t& refused) const override {
    ops_.fill(0, scratch);
    for (refused = 0; refused < terms.size(); ++refused) {
      if (Status status = decode_add(terms[refused].bytes, terms[refused].scale, scratch);
          !status) {
        return status;
      }
    }
    visit(0, scratch);
    return {};
  }

 private:
  /// Where a frame and what was found of it lie on the device. Without memory, null.
  struct Places {
    std::span<std::byte> frame;
    std::span<std::byte> work;
    Outcome* outcome = nullptr;
  };

  Places take(std::size_t frame_bytes, std::size_t work_bytes) const {
    constexpr std::size_t kGrain = 256;
    const auto rounded = [](std::size_t bytes) { return (bytes + kGrain - 1) / kGrain * kGrain; };
    const std::size_t all = kGrain + rounded(frame_bytes) + work_bytes;
    const auto room = room_.of(all, queue_);
    if (room.size() < all) {
      return {};
    }
    return {room.subspan(kGrain, frame_bytes),
            room.subspan(kGrain + rounded(frame_bytes), work_bytes),
            reinterpret_cast<Outcome*>(room.data())};
  }

  bool fetch(const Places& places, Outcome& outcome) const {
    return queue_.fetch(std::as_bytes(std::span(places.outcome, 1)),
                        std::as_writable_bytes(std::span(&outcome, 1)));
  }

  /// Lets `launch` encode so many elements, and brings the encoding to `out`.
  template <typename Launch>
  std::size_t made(std::size_t elements, std::span<std::byte> out, const Launch& launch) {
    const std::size_t bytes = codec_.bytes(elements);
    queue_.enter();
    const Places places = take(bytes, codec_.workspace(elements));
    Outcome outcome;
    bool done = false;
    if (places.outcome != nullptr) {
      launch(places.frame, places.work, places.outcome);
      queue_.copy(places.frame, out.data());
      done = fetch(places, outcome);
    }
    if (!done) {
      std::ranges::fill(out.first(bytes), kRefusedByAll);
    }
    saturated_ = outcome.saturated;
    return bytes;
  }

  std::unique_ptr<Compressor> host_;
  Codec codec_;
  const DeviceOps& ops_;
  Queue& queue_;
  mutable Room room_;
  std::size_t saturated_ = 0;
};

}  // namespace

std::unique_ptr<Compressor> make_device_compressor(const Compressor& host, const DeviceOps& ops,
                                                   Queue& queue) {
  return std::make_unique<DeviceCompressor>(host.undecorated().clone(), ops, queue);
}

}  // namespace sotto::cuda
