#include <sotto/compress/randk.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/compress/coded_randk.h>

#include "internal/chunks.h"
#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/feedback.h"
#include "internal/keep.h"
#include "internal/payload.h"
#include "internal/random_choice.h"
#include "internal/shares.h"

namespace sotto {
namespace {

constexpr std::size_t kRandkHeaderBytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);

/// Rounds `value`, of a magnitude up to float32's largest. Where float32 is too coarse for its
/// rounding to be relative, below 2^-126, it is rounded up or down by the element's noise, so that
/// the mean is right there too.
float rounded(double value, const RandomKey& key, std::size_t element) {
  constexpr double kResolution = std::numeric_limits<float>::denorm_min();
  if (std::abs(value) >= static_cast<double>(std::numeric_limits<float>::min())) {
    return static_cast<float>(value);
  }
  const double noise = rounding_noise(key, element) * 0x1p-16;
  return static_cast<float>(std::floor(value / kResolution + noise) * kResolution);
}

class RandkCompressor final : public Compressor {
 public:
  explicit RandkCompressor(const RandkOptions& options) : options_(options) {}

  std::string spec() const override {
    return fmt::format("randk:{},scale={}", options_.keep_ratio, scaled() ? "unbiased" : "none");
  }
  std::uint16_t wire_id() const override { return kRandkWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    return kRandkHeaderBytes + kept(elements) * sizeof(float);
  }
  Contract contract(std::size_t elements) const override;
  std::unique_ptr<Compressor> clone() const override {
    return std::make_unique<RandkCompressor>(*this);
  }
  std::size_t saturated() const override { return saturated_; }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override {
    return *encode_chosen(x, {}, key, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override {
    return encode_chosen(v, {&prepare, v}, key, out);
  }
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  bool scaled() const { return options_.scale == RandkScale::unbiased; }
  std::size_t kept(std::size_t elements) const {
    return internal::kept_elements(options_.keep_ratio, elements);
  }

  /// The input of an encoding, and the place of its output.
  struct Job {
    std::span<const float> x;
    const internal::Origin& origin;
    const RandomKey& key;
    double factor;
    std::span<std::byte> values;
  };
  std::optional<std::size_t> encode_chosen(std::span<const float> x, const internal::Origin& origin,
                                           const RandomKey& key, std::span<std::byte> out);
  /// Blocks begin … end − 1. Returns how many elements saturated; nothing when called off.
  std::optional<std::size_t> encode_share(const Job& job, std::size_t begin, std::size_t end) const;

  RandkOptions options_;
  std::size_t saturated_ = 0;
  mutable internal::RandomChoice choice_;
};

Contract RandkCompressor::contract(std::size_t elements) const {
  if (elements == 0) {
    return internal::exact_contract();
  }
  const auto d = static_cast<double>(elements);
  const auto k = static_cast<double>(kept(elements));
  if (!scaled() || k == d) {
    return internal::contraction_contract(k / d);
  }
  Contract contract = internal::unbiased_contract(d / k - 1);
  contract.floor_per_element = 0x1p-150;
  return contract;
}

std::optional<std::size_t> RandkCompressor::encode_chosen(std::span<const float> x,
                                                          const internal::Origin& origin,
                                                          const RandomKey& key,
                                                          std::span<std::byte> out) {
  check(x.size() <= std::numeric_limits<std::uint32_t>::max(),
        "randk: more than 2^32 − 1 elements");
  const std::size_t k = kept(x.size());
  const std::uint64_t selection = internal::selection_key(key);
  ByteWriter writer(out);
  writer.write(static_cast<std::uint32_t>(k));
  writer.write(selection);
  const double factor =
      scaled() && k > 0 ? static_cast<double>(x.size()) / static_cast<double>(k) : 1.0;
  const Job job{x, origin, key, factor, writer.reserve(k * sizeof(float))};
  choice_.choose(selection, x.size(), k);
  const auto saturated =
      internal::Shares(workers(), choice_.blocks(), x.size())
          .sum([&](std::size_t begin, std::size_t end) { return encode_share(job, begin, end); });
  saturated_ = saturated.value_or(0);
  return saturated ? std::optional(writer.position()) : std::nullopt;
}

std::optional<std::size_t> RandkCompressor::encode_share(const Job& job, std::size_t begin,
                                                         std::size_t end) const {
  constexpr double kLargest = std::numeric_limits<float>::max();
  const internal::Chunks blocks(job.x.size(), internal::RandomChoice::kBlock, 1);
  auto feedback = job.origin.feedback(blocks.end(begin), blocks.end(end));
  std::size_t saturated = 0;
  for (std::size_t block = begin; block < end; ++block) {
    const std::size_t first = blocks.first(block);
    const auto here = internal::chunk_of(job.x, feedback, first, blocks.size(block));
    if (!here) {
      return std::nullopt;
    }
    for (const auto& [place, order] : choice_.in(block)) {
      const double exact = job.factor * static_cast<double>((*here)[place - first]);
      saturated += static_cast<std::size_t>(std::abs(exact) > kLargest);
      const float value = rounded(std::clamp(exact, -kLargest, kLargest), job.key, place);
      std::memcpy(&job.values[order * sizeof(float)], &value, sizeof(float));
      if (feedback && job.origin.prepare->residual) {
        job.origin.v[place] = job.origin.v[place] - value;
      }
      if (feedback && !job.origin.prepare->add_to.empty()) {
        float& target = job.origin.prepare->add_to[place];
        target = target + value;
      }
    }
  }
  return saturated;
}

Status RandkCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                   std::span<float> y) const {
  if (auto status = internal::check_length("randk", bytes.size(), max_bytes(y.size()));
      !status.ok()) {
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
  choice_.choose(selection, y.size(), k);
  internal::Shares(workers(), choice_.blocks(), y.size())
      .each([&](std::size_t /*share*/, std::size_t begin, std::size_t end) {
        choice_.each(y.data(), begin, end, [&](const internal::RandomChoice::Entry& entry) {
          y[entry.place] = y[entry.place] + scale * internal::load<float>(values, entry.order);
        });
      });
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_randk(const RandkOptions& options) {
  internal::check_keep_ratio(options.keep_ratio);
  return std::make_unique<RandkCompressor>(options);
}

namespace {

std::unique_ptr<Compressor> build_randk(internal::SpecReader& spec,
                                        const internal::Wanted& wanted) {
  RandkOptions options;
  options.keep_ratio = spec.take_double("KEEP", "a number in (0, 1]");
  if (auto coded = internal::build_coded_randk(spec, options.keep_ratio, wanted)) {
    return coded;
  }
  const std::size_t form = spec.choice("scale", {"unbiased", "none"})
                               .value_or(wanted.need == ContractKind::contraction ? 1 : 0);
  options.scale = form == 0 ? RandkScale::unbiased : RandkScale::none;
  return make_randk(options);
}

}  // namespace

constinit const internal::Family internal::kRandkFamily = {
    {"randk", "randk:KEEP[,scale=unbiased|none][,values=B][/topk:KEEP,values=B[,chunk=N]]",
     "KEEP × d random elements, exact or in B bits a value, or the largest of them; their choice "
     "costs no bytes",
     "scale=unbiased: unbiased, α² = 1/KEEP − 1; scale=none: contraction, δ = KEEP; values=B: "
     "contraction",
     "randk:0.1", kRandkWireId, kCodedRandkWireId},
    build_randk};

}  // namespace sotto
