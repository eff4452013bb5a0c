#include <sotto/compress/outlier.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/check.h>
#include <sotto/base/error.h>
#include <sotto/kernels/norm.h>

#include "internal/chunks.h"
#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/packed.h"
#include "internal/payload.h"
#include "internal/rice.h"
#include "internal/saturation.h"

namespace sotto {
namespace {

using internal::Chunks;

constexpr std::size_t kOutlierHeaderBytes = 2 * sizeof(std::uint8_t) + 2 * sizeof(std::uint32_t);

/// 1 / step must be finite.
constexpr float kSmallestStep = 0x1p-126F;

/// Starts of the fit of s, relative to the step that spans the range. A fit moves slowly, and few
/// bits want a far shorter step; from kFineBits on the range's step is near the best.
constexpr std::array kStarts = {1.0F, 0.8F, 0.64F};
constexpr int kFineBits = 6;
constexpr int kRefinements = 3;

/// Σ x y for vectors with products that are not negative, in float64 where float32 overflows or
/// vanishes.
double wide_dot(std::span<const float> x, std::span<const float> y, const Ops& ops) {
  constexpr double kSafe = 0x1p-90;
  const double sum = ops.dot(x, y);
  if (std::isfinite(sum) && sum >= kSafe) {
    return sum;
  }
  double wide = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    wide += static_cast<double>(x[i]) * static_cast<double>(y[i]);
  }
  return wide;
}

/// The step that gives the codes, and the scale that they stand for.
struct Fit {
  float step = kSmallestStep;
  float scale = 0;
};

class OutlierCompressor final : public Compressor {
 public:
  OutlierCompressor(const OutlierOptions& options, const Ops& ops) : options_(options), ops_(ops) {}

  std::string spec() const override {
    return fmt::format("outlier:{},chunk={},k={}", options_.bits, options_.chunk, options_.k);
  }
  std::uint16_t wire_id() const override { return kOutlierWireId; }
  std::size_t max_bytes(std::size_t elements) const override;
  Contract contract(std::size_t elements) const override;
  std::unique_ptr<Compressor> clone() const override {
    return std::make_unique<OutlierCompressor>(options_, ops_);
  }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override;
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;
  std::size_t saturated() const override { return saturated_; }

 private:
  Chunks cut(std::size_t elements) const { return {elements, options_.chunk, options_.bits}; }
  /// 2^(B−1), the code of zero.
  std::uint32_t zero_code() const { return (1U << options_.bits) / 2; }
  Grid grid(float step) const {
    return {.origin = -static_cast<float>(zero_code()) * step, .step = step, .bits = options_.bits};
  }
  /// The largest for which code × step is finite for every code.
  float largest_step() const {
    return std::numeric_limits<float>::max() / static_cast<float>(2 * zero_code());
  }
  std::size_t most_outliers(std::size_t elements) const;
  /// Puts the piece into inliers_, its outliers (the first by index) into the lists.
  void part(std::span<const float> piece, std::size_t first);
  /// The best of a few alternating fits to inliers_; uses `codes` as scratch.
  Fit fit(float largest, std::span<std::byte> codes);
  Status judge_outliers(const Chunks& chunks, std::span<const std::byte> codes,
                        std::span<const std::byte> values, internal::RiceReader indices) const;

  OutlierOptions options_;
  const Ops& ops_;
  std::size_t saturated_ = 0;
  std::vector<float> inliers_;
  std::vector<float> levels_;
  std::vector<std::uint32_t> indices_;
  std::vector<float> values_;
};

std::size_t OutlierCompressor::most_outliers(std::size_t elements) const {
  return static_cast<std::size_t>(static_cast<double>(elements) /
                                  std::max(1.0, options_.k * options_.k));
}

std::size_t OutlierCompressor::max_bytes(std::size_t elements) const {
  const Chunks chunks = cut(elements);
  const std::size_t most = most_outliers(elements);
  const int p = internal::rice_parameter(most, elements);
  return kOutlierHeaderBytes + chunks.count() * sizeof(float) + chunks.total_code_bytes() +
         most * sizeof(float) + (internal::rice_bits_bound(most, elements, p) + 7) / 8;
}

Contract OutlierCompressor::contract(std::size_t elements) const {
  const auto n = static_cast<double>(cut(elements).longest());
  const double most = zero_code() - 1;
  Contract contract = internal::contraction_contract(4 * most * most / (n + 4 * most * most));
  contract.floor_per_element = static_cast<double>(kSmallestStep) / 2;
  return contract;
}

void OutlierCompressor::part(std::span<const float> piece, std::size_t first) {
  inliers_.assign(piece.begin(), piece.end());
  levels_.resize(piece.size());
  const double sigma = std::sqrt(squared_norm(piece, ops_) / static_cast<double>(piece.size()));
  const double bound = options_.k * sigma;
  std::size_t left = most_outliers(piece.size());
  for (std::size_t i = 0; i < piece.size() && left > 0; ++i) {
    if (std::abs(static_cast<double>(piece[i])) > bound) {
      indices_.push_back(static_cast<std::uint32_t>(first + i));
      values_.push_back(piece[i]);
      inliers_[i] = 0;
      --left;
    }
  }
}

Fit OutlierCompressor::fit(float largest, std::span<std::byte> codes) {
  const Grid units = grid(1);
  const auto most = static_cast<float>(zero_code() - 1);
  const auto admissible = [&](float step) {
    return std::clamp(step, kSmallestStep, largest_step());
  };
  Fit best{.step = admissible(largest / most)};
  double best_removed = 0;
  for (const float start : kStarts) {
    float step = admissible(start * (largest / most));
    for (int i = 0; i <= kRefinements; ++i) {
      ops_.quantize_pack(inliers_, grid(step), Rounding::nearest, {}, 0, codes);
      ops_.fill(0, levels_);
      ops_.unpack_axpy(1, codes, units, levels_);
      const double along = wide_dot(levels_, inliers_, ops_);
      if (!(along > 0)) {
        break;
      }
      const double length = ops_.sum_squares(levels_);
      const float scale = std::min(static_cast<float>(along / length), largest_step());
      const double removed = along * (along / length);  // from Σ x², by s q
      if (removed > best_removed) {
        best = {step, scale};
        best_removed = removed;
      }
      step = admissible(scale);
    }
    if (options_.bits >= kFineBits) {
      break;
    }
  }
  return best;
}

std::size_t OutlierCompressor::encode(std::span<const float> x, const RandomKey& key,
                                      std::span<std::byte> out) {
  check(x.size() <= std::numeric_limits<std::uint32_t>::max(),
        "outlier: more than 2^32 − 1 elements");
  const Chunks chunks = cut(x.size());
  ByteWriter writer(out);
  writer.write(static_cast<std::uint8_t>(options_.bits));
  writer.write(static_cast<std::uint32_t>(options_.chunk));
  ByteWriter counts(writer.reserve(sizeof(std::uint32_t) + sizeof(std::uint8_t)));
  ByteWriter scales(writer.reserve(chunks.count() * sizeof(float)));
  const auto codes = writer.reserve(chunks.total_code_bytes());
  indices_.clear();
  values_.clear();
  saturated_ = 0;
  for (std::size_t i = 0; i < chunks.count(); ++i) {
    part(x.subspan(chunks.first(i), chunks.size(i)), chunks.first(i));
    const auto packed = codes.subspan(chunks.code_offset(i), chunks.code_bytes(i));
    const MinMax range = ops_.min_max(inliers_);
    const float widest = static_cast<float>(zero_code() - 1) * largest_step();
    saturated_ += internal::count_outside(inliers_, range, -widest, widest);
    const Fit best = fit(std::max(-range.min, range.max), packed);
    scales.write(best.scale);
    ops_.quantize_pack(inliers_, grid(best.step), Rounding::nearest, key, chunks.first(i), packed);
  }
  const int p = internal::rice_parameter(indices_.size(), x.size());
  counts.write(static_cast<std::uint32_t>(indices_.size()));
  counts.write(static_cast<std::uint8_t>(p));
  writer.write_bytes(std::as_bytes(std::span(values_)));
  internal::RiceWriter gaps(out.subspan(writer.position()), p);
  for (const std::uint32_t index : indices_) {
    gaps.write(index);
  }
  return writer.position() + gaps.finish();
}

Status OutlierCompressor::judge_outliers(const Chunks& chunks, std::span<const std::byte> codes,
                                         std::span<const std::byte> values,
                                         internal::RiceReader indices) const {
  const std::size_t count = values.size() / sizeof(float);
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = indices.read();
    if (!index) {
      return internal::malformed(
          fmt::format("outlier: index {} of {} is cut off or too large", i, count));
    }
    if (!std::isfinite(internal::load<float>(values, i))) {
      return internal::non_finite(fmt::format("outlier: value {} of {} is not finite", i, count));
    }
    const std::size_t chunk = *index / chunks.longest();
    const auto packed = codes.subspan(chunks.code_offset(chunk), chunks.code_bytes(chunk));
    if (internal::code_at(packed, chunks.size(chunk), options_.bits,
                          *index - chunks.first(chunk)) != zero_code()) {
      return internal::malformed(fmt::format("outlier: element {} has a code besides", *index));
    }
  }
  return indices.finished() ? Status()
                            : internal::malformed("outlier: something follows the last index");
}

Status OutlierCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                     std::span<float> y) const {
  const Chunks chunks = cut(y.size());
  ByteReader reader(bytes);
  const auto bits = reader.read<std::uint8_t>();
  const auto chunk = reader.read<std::uint32_t>();
  const auto count = reader.read<std::uint32_t>();
  const auto p = reader.read<std::uint8_t>();
  if (reader.failed() || bits != options_.bits || chunk != options_.chunk ||
      count > most_outliers(y.size()) || p > internal::kMostRiceParameter) {
    return internal::malformed(fmt::format(
        "outlier: {} bits in chunks of {} with {} outliers, p = {}, where {} in {} are due", bits,
        chunk, count, p, options_.bits, options_.chunk));
  }
  const auto scales = reader.take(chunks.count() * sizeof(float));
  const auto codes = reader.take(chunks.total_code_bytes());
  const auto values = reader.take(count * sizeof(float));
  if (reader.failed()) {
    return internal::malformed(
        fmt::format("outlier: payload of {} bytes is cut off", bytes.size()));
  }
  for (std::size_t i = 0; i < chunks.count(); ++i) {
    const auto step = internal::load<float>(scales, i);
    if (!(step >= 0 && step <= largest_step())) {
      return std::isfinite(step)
                 ? internal::malformed(fmt::format("outlier: chunk {} has scale {}", i, step))
                 : internal::non_finite(fmt::format("outlier: chunk {} has scale {}", i, step));
    }
    if (!internal::padding_is_zero(codes.subspan(chunks.code_offset(i), chunks.code_bytes(i)),
                                   chunks.size(i), options_.bits)) {
      return internal::malformed(fmt::format("outlier: padding of chunk {} is not zero", i));
    }
  }
  internal::RiceReader indices(reader.take(reader.remaining()), p, y.size());
  if (Status status = judge_outliers(chunks, codes, values, indices); !status.ok()) {
    return status;
  }
  for (std::size_t i = 0; i < chunks.count(); ++i) {
    ops_.unpack_axpy(scale, codes.subspan(chunks.code_offset(i), chunks.code_bytes(i)),
                     grid(internal::load<float>(scales, i)),
                     y.subspan(chunks.first(i), chunks.size(i)));
  }
  for (std::size_t i = 0; i < count; ++i) {
    float& target = y[*indices.read()];
    target = target + scale * internal::load<float>(values, i);
  }
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_outlier(const OutlierOptions& options, const Ops& ops) {
  if (options.bits < 2 || options.bits > 8) {
    refuse("outlier B", std::to_string(options.bits), "an integer from 2 to 8 would do");
  }
  if (options.chunk > internal::kMostChunk) {
    refuse("outlier chunk", std::to_string(options.chunk), "at most 2^32 − 1 elements");
  }
  if (!(std::isfinite(options.k) && options.k > 0)) {
    refuse("outlier k", fmt::format("{}", options.k), "a finite number above 0 would do");
  }
  return std::make_unique<OutlierCompressor>(options, ops);
}

namespace {

std::unique_ptr<Compressor> build_outlier(internal::SpecReader& spec,
                                          const internal::Wanted& wanted) {
  OutlierOptions options;
  options.bits = spec.take_integer("B", 2, 8);
  options.chunk = spec.chunk().value_or(default_outlier_chunk(options.bits));
  options.k = spec.number("k").value_or(options.k);
  return make_outlier(options, wanted.ops);
}

}  // namespace

constinit const internal::Family internal::kOutlierFamily = {
    {"outlier", "outlier:B[,chunk=N][,k=SIGMAS]",
     "B bits (2 … 8) with a fitted scale a chunk; what lies beyond k σ travels exactly",
     "contraction; steps from 2^-126 on", "outlier:4", kOutlierWireId},
    build_outlier};

}  // namespace sotto
