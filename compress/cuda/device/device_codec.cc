#include "device_codec.h"

#include <algorithm>
#include <utility>

#include <sotto/compress/cuda/codec.h>

namespace sotto::cuda {
namespace {

class DeviceCodec final : public DeviceCompressor {
 public:
  DeviceCodec(std::unique_ptr<Compressor> host, Codec codec, const DeviceOps& ops, Queue& queue)
      : DeviceCompressor(std::move(host), ops, queue), codec_(std::move(codec)) {}

  std::size_t saturated() const override { return saturated_; }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override {
    return made(x.size(), out, [&](auto frame, auto work, Outcome* outcome) {
      codec_.encode(x, key, frame, work, outcome, queue().stream());
    });
  }

  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override {
    queue().enter();
    const Places places = take(bytes.size(), 0);
    if (places.outcome == nullptr) {
      return queue().status();
    }
    queue().copy(bytes, places.frame.data());
    if (Status status = codec_.decode_add(places.frame, scale, y, places.outcome, queue().stream());
        !status.ok()) {
      queue().wait();  // for the copy: the bytes are the caller's
      return status;
    }
    Outcome outcome;
    return fetch(places, outcome) ? outcome.status() : queue().status();
  }

 private:
  std::size_t encode_to_residual(std::span<float> v, const RandomKey& key,
                                 std::span<std::byte> out) override {
    return made(v.size(), out, [&](auto frame, auto work, Outcome* outcome) {
      codec_.encode_residual({}, v, key, frame, work, outcome, queue().stream());
    });
  }

  /// The places on the device of a frame and of its outcome. Without memory, null.
  struct Places {
    std::span<std::byte> frame;
    std::span<std::byte> work;
    Outcome* outcome = nullptr;
  };

  Places take(std::size_t frame_bytes, std::size_t work_bytes) const {
    constexpr std::size_t kFrame = to_grain(sizeof(Outcome));
    const std::size_t work = kFrame + to_grain(frame_bytes);
    const auto all = room(work + work_bytes);
    if (all.size() < work + work_bytes) {
      return {};
    }
    return {all.subspan(kFrame, frame_bytes), all.subspan(work, work_bytes),
            reinterpret_cast<Outcome*>(all.data())};
  }

  bool fetch(const Places& places, Outcome& outcome) const {
    return queue().fetch(std::as_bytes(std::span(places.outcome, 1)),
                         std::as_writable_bytes(std::span(&outcome, 1)));
  }

  /// Lets `launch` encode `elements` elements, and brings the encoding to `out`.
  template <typename Launch>
  std::size_t made(std::size_t elements, std::span<std::byte> out, const Launch& launch) {
    const std::size_t bytes = codec_.bytes(elements);
    queue().enter();
    const Places places = take(bytes, codec_.workspace(elements));
    Outcome outcome;
    bool done = false;
    if (places.outcome != nullptr) {
      launch(places.frame, places.work, places.outcome);
      queue().copy(places.frame, out.data());
      done = fetch(places, outcome);
    }
    if (!done) {
      std::ranges::fill(out.first(bytes), kRefusedByAll);
    }
    saturated_ = outcome.saturated;
    return bytes;
  }

  Codec codec_;
  std::size_t saturated_ = 0;
};

}  // namespace

std::unique_ptr<Compressor> make_device_codec(std::unique_ptr<Compressor> host,
                                              const DeviceOps& ops, Queue& queue) {
  Codec codec(host->spec());
  return std::make_unique<DeviceCodec>(std::move(host), std::move(codec), ops, queue);
}

}  // namespace sotto::cuda
