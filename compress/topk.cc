#include <sotto/compress/topk.h>

#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>

#include "internal/contracts.h"
#include "internal/keep.h"
#include "internal/payload.h"
#include "internal/rice.h"

namespace sotto {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(std::uint32_t) + sizeof(std::uint8_t);

class TopkCompressor final : public Compressor {
 public:
  TopkCompressor(double keep_ratio, const Ops& ops) : keep_ratio_(keep_ratio), ops_(ops) {}

  std::string spec() const override { return fmt::format("topk:{}", keep_ratio_); }
  std::uint16_t wire_id() const override { return kTopkWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    const std::size_t k = kept(elements);
    const int p = internal::rice_parameter(k, elements);
    return kHeaderBytes + k * sizeof(float) + (internal::rice_bits_bound(k, elements, p) + 7) / 8;
  }
  Contract contract(std::size_t elements) const override {
    return internal::contraction_contract(
        elements == 0 ? 1.0 : static_cast<double>(kept(elements)) / static_cast<double>(elements));
  }
  std::unique_ptr<Compressor> clone() const override { return make_topk(keep_ratio_, ops_); }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override;
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  std::size_t kept(std::size_t elements) const {
    return internal::kept_elements(keep_ratio_, elements);
  }

  double keep_ratio_;
  const Ops& ops_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
};

std::size_t TopkCompressor::encode(std::span<const float> x, const RandomKey& /*key*/,
                                   std::span<std::byte> out) {
  check(x.size() <= std::numeric_limits<std::uint32_t>::max(), "topk: more than 2^32 − 1 elements");
  const std::size_t k = kept(x.size());
  const int p = internal::rice_parameter(k, x.size());
  indices_.resize(k);
  values_.resize(k);
  if (k > 0) {
    ops_.top_k_gather(x, ops_.top_k(x, k), indices_, values_);
  }
  ByteWriter writer(out);
  writer.write(static_cast<std::uint32_t>(k));
  writer.write(static_cast<std::uint8_t>(p));
  writer.write_bytes(std::as_bytes(std::span(values_)));
  internal::RiceWriter gaps(out.subspan(writer.position()), p);
  for (const std::uint32_t index : indices_) {
    gaps.write(index);
  }
  return writer.position() + gaps.finish();
}

Status TopkCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                  std::span<float> y) const {
  const std::size_t k = kept(y.size());
  ByteReader reader(bytes);
  const auto stated = reader.read<std::uint32_t>();
  const auto p = reader.read<std::uint8_t>();
  const auto values = reader.take(k * sizeof(float));
  if (reader.failed() || stated != k || p > internal::kMaxRiceParameter) {
    return internal::malformed(
        fmt::format("topk: {} bytes with k = {}, p = {} where k = {} of {} elements are due",
                    bytes.size(), stated, p, k, y.size()));
  }
  const auto coded = reader.take(reader.remaining());
  internal::RiceReader judge(coded, p, y.size());
  for (std::size_t i = 0; i < k; ++i) {
    if (!judge.read()) {
      return internal::malformed(
          fmt::format("topk: index {} of {} is not below {} or is cut off", i, k, y.size()));
    }
    if (!std::isfinite(internal::load<float>(values, i))) {
      return internal::non_finite(fmt::format("topk: value {} of {} is not finite", i, k));
    }
  }
  if (!judge.finished()) {
    return internal::malformed("topk: something follows the last index");
  }
  internal::RiceReader indices(coded, p, y.size());
  for (std::size_t i = 0; i < k; ++i) {
    float& target = y[*indices.read()];
    target = target + scale * internal::load<float>(values, i);
  }
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_topk(double keep_ratio, const Ops& ops) {
  internal::check_keep_ratio(keep_ratio);
  return std::make_unique<TopkCompressor>(keep_ratio, ops);
}

}  // namespace sotto
