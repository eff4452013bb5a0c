#include <sotto/compress/sign.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/norm.h>

#include "internal/chunks.h"
#include "internal/contracts.h"
#include "internal/feedback.h"
#include "internal/payload.h"

namespace sotto {
namespace {

using internal::Chunks;

constexpr std::size_t kHeaderBytes = sizeof(std::uint32_t);

/// Σ|x| where float32 sums overflow.
double wide_sum_abs(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) {
    sum += std::abs(static_cast<double>(value));
  }
  return sum;
}

float mean_magnitude(std::span<const float> x, const Ops& ops) {
  double sum = ops.sum_abs(x);
  if (!std::isfinite(sum)) {
    sum = wide_sum_abs(x);
  }
  return static_cast<float>(sum / static_cast<double>(x.size()));
}

float root_mean_square(std::span<const float> x, const Ops& ops) {
  return static_cast<float>(std::sqrt(squared_norm(x, ops) / static_cast<double>(x.size())));
}

class SignCompressor final : public Compressor {
 public:
  SignCompressor(const SignOptions& options, const Ops& ops) : options_(options), ops_(ops) {}

  std::string spec() const override {
    return fmt::format("sign,chunk={},scale={}", options_.chunk, by_mean() ? "mean" : "l2");
  }
  std::uint16_t wire_id() const override { return kSignWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    const Chunks chunks = cut(elements);
    return kHeaderBytes + chunks.count() * sizeof(float) + chunks.total_code_bytes();
  }
  Contract contract(std::size_t elements) const override;
  std::unique_ptr<Compressor> clone() const override { return make_sign(options_, ops_); }

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    return *encode_chunks(x, nullptr, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& /*key*/,
                                             std::span<std::byte> out) override {
    internal::Feedback feedback(prepare, v);
    return encode_chunks(v, &feedback, out);
  }
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  bool by_mean() const { return options_.scale == SignScale::mean; }
  Chunks cut(std::size_t elements) const { return {elements, options_.chunk, 1}; }
  /// `feedback`, where it is given, is of x.
  std::optional<std::size_t> encode_chunks(std::span<const float> x, internal::Feedback* feedback,
                                           std::span<std::byte> out);

  SignOptions options_;
  const Ops& ops_;
};

Contract SignCompressor::contract(std::size_t elements) const {
  const std::size_t longest = cut(elements).longest();
  Contract contract;
  if (by_mean()) {
    contract =
        internal::contraction_contract(1 / static_cast<double>(std::max<std::size_t>(longest, 1)));
  } else {
    contract.alpha = std::sqrt(2.0);
  }
  contract.floor_per_element = 0x1p-149;
  return contract;
}

std::optional<std::size_t> SignCompressor::encode_chunks(std::span<const float> x,
                                                         internal::Feedback* feedback,
                                                         std::span<std::byte> out) {
  const Chunks chunks = cut(x.size());
  ByteWriter writer(out);
  writer.write(static_cast<std::uint32_t>(options_.chunk));
  ByteWriter scales(writer.reserve(chunks.count() * sizeof(float)));
  const auto signs = writer.reserve(chunks.total_code_bytes());
  for (std::size_t i = 0; i < chunks.count(); ++i) {
    if (feedback != nullptr && !feedback->make_until(chunks.first(i) + chunks.size(i))) {
      return std::nullopt;
    }
    const auto piece = x.subspan(chunks.first(i), chunks.size(i));
    const auto bits = signs.subspan(chunks.code_offset(i), chunks.code_bytes(i));
    const float scale = by_mean() ? mean_magnitude(piece, ops_) : root_mean_square(piece, ops_);
    scales.write(scale);
    if (feedback == nullptr) {
      ops_.sign_pack(piece, bits);
      continue;
    }
    const auto reduce = [&](std::size_t first, std::span<float> part, const Soon& soon) {
      const std::size_t at = packed_bytes(first - chunks.first(i), 1);
      ops_.sign_residual(part, scale, bits.subspan(at, packed_bytes(part.size(), 1)), soon);
    };
    if (!feedback->reduce(chunks.first(i), chunks.size(i), reduce)) {
      return std::nullopt;
    }
  }
  return writer.position();
}

Status SignCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                  std::span<float> y) const {
  if (auto status = internal::check_length("sign", bytes.size(), max_bytes(y.size())); !status) {
    return status;
  }
  const Chunks chunks = cut(y.size());
  ByteReader reader(bytes);
  const auto chunk = reader.read<std::uint32_t>();
  if (chunk != options_.chunk) {
    return internal::malformed(
        fmt::format("sign: chunks of {} where {} are due", chunk, options_.chunk));
  }
  const auto scales = reader.take(chunks.count() * sizeof(float));
  const auto signs = reader.take(chunks.total_code_bytes());
  for (std::size_t i = 0; i < chunks.count(); ++i) {
    const auto magnitude = internal::load<float>(scales, i);
    if (!std::isfinite(magnitude)) {
      return internal::non_finite(fmt::format("sign: chunk {} has scale {}", i, magnitude));
    }
    if (magnitude < 0) {
      return internal::malformed(fmt::format("sign: chunk {} has scale {}", i, magnitude));
    }
    const auto piece = signs.subspan(chunks.code_offset(i), chunks.code_bytes(i));
    if (!internal::padding_is_zero(piece, chunks.size(i), 1)) {
      return internal::malformed(fmt::format("sign: padding of chunk {} is not zero", i));
    }
  }
  for (std::size_t i = 0; i < chunks.count(); ++i) {
    ops_.sign_axpy(scale * internal::load<float>(scales, i),
                   signs.subspan(chunks.code_offset(i), chunks.code_bytes(i)),
                   y.subspan(chunks.first(i), chunks.size(i)));
  }
  return {};
}

}  // namespace

std::unique_ptr<Compressor> make_sign(const SignOptions& options, const Ops& ops) {
  if (options.chunk > internal::kMaxChunk) {
    refuse("sign chunk", std::to_string(options.chunk), "at most 2^32 − 1 elements");
  }
  return std::make_unique<SignCompressor>(options, ops);
}

}  // namespace sotto
