#include "device_topk.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <sotto/base/check.h>
#include <sotto/kernels/cuda/ops.h>

#include "../../internal/keep.h"
#include "../../internal/payload.h"
#include "../../internal/spec.h"
#include "../../internal/topk_format.h"

namespace sotto::cuda {
namespace {

double keep_ratio_of(const Compressor& topk) {
  const std::string text = topk.spec();
  return internal::SpecReader(text).take_double("KEEP", "a number");
}

class DeviceTopk final : public DeviceCompressor {
 public:
  DeviceTopk(std::unique_ptr<Compressor> host, double keep_ratio, const DeviceOps& ops,
             Queue& queue)
      : DeviceCompressor(std::move(host), ops, queue), keep_ratio_(keep_ratio) {}
  ~DeviceTopk() override {
    if (!queue().settle()) {
      (void)lists_.release();  // the device may still touch them
    }
  }
  DeviceTopk(const DeviceTopk&) = delete;
  DeviceTopk& operator=(const DeviceTopk&) = delete;

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    return made(x, out, [](const Places&) {});
  }

  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override {
    const std::size_t k = internal::kept_elements(keep_ratio_, y.size());
    const auto payload = internal::read_topk(bytes, k, y.size());
    if (!payload) {
      return payload.status();
    }
    if (!resize(k)) {
      return queue().status();
    }
    internal::RiceReader indices = payload->indices();
    std::ranges::generate(lists_->indices, [&] { return *indices.read(); });
    const auto values = std::as_writable_bytes(std::span(lists_->values));
    std::ranges::copy(payload->values, values.begin());
    queue().enter();
    const Places places = take(k, 0);
    if (places.top == nullptr) {
      return queue().status();
    }
    lists_->lent = true;
    queue().copy(std::as_bytes(std::span(lists_->indices)),
                 std::as_writable_bytes(places.indices).data());
    queue().copy(values, std::as_writable_bytes(places.values).data());
    if (!queue().sound()) {
      return queue().status();  // what lies there may be no indices
    }
    scatter_axpy(scale, places.indices, places.values, y, queue().stream());
    return queue().status();
  }

 private:
  std::size_t encode_to_residual(std::span<float> v, const RandomKey& /*key*/,
                                 std::span<std::byte> out) override {
    return made(v, out, [&](const Places& chosen) {
      scatter_axpy(-1, chosen.indices, chosen.values, v, queue().stream());
    });
  }

  /// The lists that the last encoding, or decoding, left with the host.
  struct Lists {
    std::vector<std::uint32_t> indices;
    std::vector<float> values;
    bool lent = false;  ///< the memory is lent to copies that nobody has waited for
  };

  /// Makes the lists k long, when nothing reads them any more; false where the device is in fault.
  bool resize(std::size_t k) const {
    if (std::exchange(lists_->lent, false)) {
      queue().wait();
    }
    if (!queue().sound()) {
      return false;
    }
    lists_->indices.resize(k);
    lists_->values.resize(k);
    return true;
  }

  /// Places on the device. Without memory, null.
  struct Places {
    TopK* top = nullptr;
    std::span<std::uint32_t> indices;
    std::span<float> values;
    std::span<std::byte> work;
  };

  Places take(std::size_t k, std::size_t work_bytes) const {
    constexpr std::size_t kIndices = to_grain(sizeof(TopK));
    const std::size_t values = kIndices + to_grain(k * sizeof(std::uint32_t));
    const std::size_t work = values + to_grain(k * sizeof(float));
    const auto all = room(work + work_bytes);
    if (all.size() < work + work_bytes) {
      return {};
    }
    return {reinterpret_cast<TopK*>(all.data()),
            {reinterpret_cast<std::uint32_t*>(all.subspan(kIndices).data()), k},
            {reinterpret_cast<float*>(all.subspan(values).data()), k},
            all.subspan(work, work_bytes)};
  }

  /// Writes the encoding of x to `out`; `then` may put work on the stream behind the choice.
  template <typename Then>
  std::size_t made(std::span<const float> x, std::span<std::byte> out, const Then& then) {
    check(x.size() <= std::numeric_limits<std::uint32_t>::max(),
          "topk: more than 2^32 − 1 elements");
    const std::size_t k = internal::kept_elements(keep_ratio_, x.size());
    if (resize(k) && k > 0) {
      queue().enter();
      const Places chosen = take(k, top_k_workspace(x.size()));
      if (chosen.top != nullptr) {
        top_k(x, k, chosen.work, chosen.top, queue().stream());
        top_k_gather(x, chosen.top, chosen.work, chosen.indices, chosen.values, queue().stream());
        then(chosen);
        queue().copy(std::as_bytes(chosen.indices),
                     std::as_writable_bytes(std::span(lists_->indices)).data());
        queue().copy(std::as_bytes(chosen.values),
                     std::as_writable_bytes(std::span(lists_->values)).data());
        queue().wait();
      }
    }
    if (!queue().sound()) {
      const auto refused = out.first(max_bytes(x.size()));
      std::ranges::fill(refused, kRefusedByAll);
      return refused.size();
    }
    return internal::write_topk(lists_->indices, lists_->values, x.size(), out);
  }

  double keep_ratio_;
  std::unique_ptr<Lists> lists_ = std::make_unique<Lists>();
};

}  // namespace

std::unique_ptr<Compressor> make_device_topk(std::unique_ptr<Compressor> host, const DeviceOps& ops,
                                             Queue& queue) {
  const double keep_ratio = keep_ratio_of(*host);
  return std::make_unique<DeviceTopk>(std::move(host), keep_ratio, ops, queue);
}

}  // namespace sotto::cuda
