#include <sotto/compress/none.h>

#include <algorithm>

#include <fmt/format.h>

#include "internal/contracts.h"
#include "internal/feedback.h"
#include "internal/payload.h"

namespace sotto {
namespace {

class NoneCompressor final : public Compressor {
 public:
  explicit NoneCompressor(const Ops& ops) : ops_(ops) {}

  std::string spec() const override { return "none"; }
  std::uint16_t wire_id() const override { return kNoneWireId; }
  std::size_t max_bytes(std::size_t elements) const override { return elements * sizeof(float); }
  Contract contract(std::size_t /*elements*/) const override { return internal::exact_contract(); }
  std::unique_ptr<Compressor> clone() const override { return make_none(ops_); }

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    ByteWriter(out).write_bytes(std::as_bytes(x));
    return x.size_bytes();
  }

  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& /*key*/,
                                             std::span<std::byte> out) override {
    internal::Feedback feedback(prepare, v);
    const auto take = [&](std::size_t first, std::span<float> run, const Soon& /*soon*/) {
      std::ranges::copy(std::as_bytes(run), &out[first * sizeof(float)]);
      ops_.fill(0, run);
    };
    if (!feedback.reduce(0, v.size(), take)) {
      return std::nullopt;
    }
    return v.size_bytes();
  }

  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override {
    if (auto status = internal::check_length("none", bytes.size(), max_bytes(y.size())); !status) {
      return status;
    }
    const NonFinite bad = ops_.fp32_non_finite(bytes);
    if (bad.count > 0) {
      return internal::non_finite(fmt::format("none: {} of {} elements are not finite, first at {}",
                                              bad.count, y.size(), bad.first));
    }
    ops_.fp32_axpy(scale, bytes, y);
    return {};
  }

 private:
  const Ops& ops_;
};

}  // namespace

std::unique_ptr<Compressor> make_none(const Ops& ops) {
  return std::make_unique<NoneCompressor>(ops);
}

}  // namespace sotto
