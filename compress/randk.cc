#include <sotto/compress/randk.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <sotto/base/check.h>

#include "internal/contracts.h"
#include "internal/keep.h"
#include "internal/payload.h"
#include "internal/permutation.h"

namespace sotto {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);

std::uint64_t selection_key(RandomKey key) {
  key.purpose = Purpose::select;
  const PhiloxCounter words = key.block(0);
  return words[0] | (std::uint64_t{words[1]} << 32);
}

class RandkCompressor final : public Compressor {
 public:
  explicit RandkCompressor(const RandkOptions& options) : options_(options) {}

  std::string spec() const override {
    return fmt::format("randk:{},scale={}", options_.keep_ratio, scaled() ? "unbiased" : "none");
  }
  std::uint16_t wire_id() const override { return kRandkWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    return kHeaderBytes + kept(elements) * sizeof(float);
  }
  Contract contract(std::size_t elements) const override;
  std::unique_ptr<Compressor> clone() const override {
    return std::make_unique<RandkCompressor>(*this);
  }
  std::size_t saturated() const override { return saturated_; }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override;
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  bool scaled() const { return options_.scale == RandkScale::unbiased; }
  std::size_t kept(std::size_t elements) const {
    return internal::kept_elements(options_.keep_ratio, elements);
  }

  RandkOptions options_;
  std::size_t saturated_ = 0;
};

Contract RandkCompressor::contract(std::size_t elements) const {
  if (elements == 0) {
    return internal::exact_contract();
  }
  const auto d = static_cast<double>(elements);
  const auto k = static_cast<double>(kept(elements));
  return scaled() ? internal::unbiased_contract(d / k - 1) : internal::contraction_contract(k / d);
}

std::size_t RandkCompressor::encode(std::span<const float> x, const RandomKey& key,
                                    std::span<std::byte> out) {
  check(x.size() <= std::numeric_limits<std::uint32_t>::max(),
        "randk: more than 2^32 − 1 elements");
  const std::size_t k = kept(x.size());
  const std::uint64_t selection = selection_key(key);
  ByteWriter writer(out);
  writer.write(static_cast<std::uint32_t>(k));
  writer.write(selection);
  saturated_ = 0;
  if (k == 0) {
    return writer.position();
  }
  constexpr double kLargest = std::numeric_limits<float>::max();
  const double factor = scaled() ? static_cast<double>(x.size()) / static_cast<double>(k) : 1.0;
  const internal::KeyedPermutation chosen(selection, x.size());
  for (std::size_t i = 0; i < k; ++i) {
    const double value = factor * static_cast<double>(x[chosen(i)]);
    saturated_ += static_cast<std::size_t>(std::abs(value) > kLargest);
    writer.write(static_cast<float>(std::clamp(value, -kLargest, kLargest)));
  }
  return writer.position();
}

Status RandkCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                   std::span<float> y) const {
  if (auto status = internal::check_length("randk", bytes.size(), max_bytes(y.size())); !status) {
    return status;
  }
  const std::size_t k = kept(y.size());
  ByteReader reader(bytes);
  const auto stated = reader.read<std::uint32_t>();
  const auto selection = reader.read<std::uint64_t>();
  if (stated != k) {
    return internal::malformed(
        fmt::format("randk: k = {} where {} of {} elements are due", stated, k, y.size()));
  }
  const auto values = reader.take(reader.remaining());
  for (std::size_t i = 0; i < k; ++i) {
    if (!std::isfinite(internal::load<float>(values, i))) {
      return internal::non_finite(fmt::format("randk: value {} of {} is not finite", i, k));
    }
  }
  if (k == 0) {
    return {};
  }
  const internal::KeyedPermutation chosen(selection, y.size());
  for (std::size_t i = 0; i < k; ++i) {
    float& target = y[chosen(i)];
    target = target + scale * internal::load<float>(values, i);
  }
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_randk(const RandkOptions& options) {
  internal::check_keep_ratio(options.keep_ratio);
  return std::make_unique<RandkCompressor>(options);
}

}  // namespace sotto
