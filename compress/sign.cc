#include <sotto/compress/sign.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/kernels/norm.h>

#include "internal/chunked.h"
#include "internal/chunks.h"
#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/feedback.h"
#include "internal/payload.h"
#include "internal/shares.h"

namespace sotto {
namespace {

using internal::Chunks;

constexpr std::size_t kSignHeaderBytes = sizeof(std::uint32_t);

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

class SignCompressor final : public internal::ChunkedCompressor {
 public:
  SignCompressor(const SignOptions& options, const Ops& ops)
      : ChunkedCompressor(ops), options_(options) {}

  std::string spec() const override {
    return fmt::format("sign,chunk={},scale={}", options_.chunk, by_mean() ? "mean" : "l2");
  }
  std::uint16_t wire_id() const override { return kSignWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    const Chunks chunks = cut(elements);
    return kSignHeaderBytes + chunks.count() * sizeof(float) + chunks.total_code_bytes();
  }
  Contract contract(std::size_t elements) const override;
  std::unique_ptr<Compressor> clone() const override { return make_sign(options_, ops_); }

  std::size_t encode(std::span<const float> x, const RandomKey& /*key*/,
                     std::span<std::byte> out) override {
    return *encode_chunks(x, {}, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& /*key*/,
                                             std::span<std::byte> out) override {
    return encode_chunks(v, {&prepare, v}, out);
  }

 private:
  Status verify(std::span<const std::byte> bytes, std::size_t elements) const override;
  void add(std::span<const std::byte> bytes, std::size_t elements, std::size_t first, float scale,
           std::span<float> y) const override;
  std::size_t chunk_length(std::size_t elements) const override { return cut(elements).longest(); }
  bool by_mean() const { return options_.scale == SignScale::mean; }
  Chunks cut(std::size_t elements) const { return {elements, options_.chunk, 1}; }
  /// The input of an encoding, and the place of its output.
  struct Job {
    std::span<const float> x;
    const internal::Origin& origin;
    std::span<std::byte> scales;
    std::span<std::byte> signs;
    std::span<const std::byte> out;
  };
  std::optional<std::size_t> encode_chunks(std::span<const float> x, const internal::Origin& origin,
                                           std::span<std::byte> out) const;
  /// Chunks begin … end − 1. False: called off.
  bool encode_share(const Job& job, std::size_t begin, std::size_t end) const;

  SignOptions options_;
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
                                                         const internal::Origin& origin,
                                                         std::span<std::byte> out) const {
  const Chunks chunks = cut(x.size());
  ByteWriter writer(out);
  writer.write(static_cast<std::uint32_t>(options_.chunk));
  const auto scales = writer.reserve(chunks.count() * sizeof(float));
  const Job job{x, origin, scales, writer.reserve(chunks.total_code_bytes()), out};
  const bool done =
      internal::Shares(workers(), chunks.count(), x.size())
          .all([&](std::size_t begin, std::size_t end) { return encode_share(job, begin, end); });
  return done ? std::optional(writer.position()) : std::nullopt;
}

bool SignCompressor::encode_share(const Job& job, std::size_t begin, std::size_t end) const {
  const Chunks chunks = cut(job.x.size());
  auto feedback = job.origin.feedback(chunks.end(begin), chunks.end(end));
  ByteWriter scales(job.scales.subspan(begin * sizeof(float)));
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t from = chunks.first(i);
    const auto here = internal::chunk_of(job.x, feedback, from, chunks.size(i));
    if (!here) {
      return false;
    }
    const auto chunk = *here;
    const auto bits = job.signs.subspan(chunks.code_offset(i), chunks.code_bytes(i));
    const float scale = by_mean() ? mean_magnitude(chunk, ops_) : root_mean_square(chunk, ops_);
    scales.write(scale);
    if (!feedback) {
      ops_.sign_pack(chunk, bits);
      continue;
    }
    const auto reduce = [&](std::size_t first, std::span<float> piece, const Soon& soon) {
      const std::size_t at = packed_bytes(first - from, 1);
      ops_.sign_residual(piece, scale, bits.subspan(at, packed_bytes(piece.size(), 1)), soon);
      add_piece(*job.origin.prepare, job.out, job.x.size(), first, piece.size());
    };
    if (!feedback->reduce(from, chunk.size(), reduce)) {
      return false;
    }
  }
  return true;
}

Status SignCompressor::verify(std::span<const std::byte> bytes, std::size_t elements) const {
  if (auto status = internal::check_length("sign", bytes.size(), max_bytes(elements));
      !status.ok()) {
    return status;
  }
  const Chunks chunks = cut(elements);
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
  return {};
}

void SignCompressor::add(std::span<const std::byte> bytes, std::size_t elements, std::size_t first,
                         float scale, std::span<float> y) const {
  const Chunks chunks = cut(elements);
  const auto scales = bytes.subspan(kSignHeaderBytes);
  const auto signs = scales.subspan(chunks.count() * sizeof(float));
  chunks.each_part(first, y.size(), [&](std::size_t i, std::size_t from, std::size_t size) {
    ops_.sign_axpy(scale * internal::load<float>(scales, i),
                   signs.subspan(chunks.code_offset(i, from), packed_bytes(size, 1)),
                   y.subspan(from - first, size));
  });
}

}  // namespace

std::unique_ptr<Compressor> make_sign(const SignOptions& options, const Ops& ops) {
  if (options.chunk > internal::kMostChunk) {
    refuse("sign chunk", std::to_string(options.chunk), "at most 2^32 − 1 elements");
  }
  return std::make_unique<SignCompressor>(options, ops);
}

namespace {

std::unique_ptr<Compressor> build_sign(internal::SpecReader& spec, const internal::Wanted& wanted) {
  SignOptions options;
  options.chunk = spec.chunk().value_or(options.chunk);
  options.scale =
      spec.choice("scale", {"mean", "l2"}).value_or(0) == 0 ? SignScale::mean : SignScale::l2;
  return make_sign(options, wanted.ops);
}

}  // namespace

constinit const internal::Family internal::kSignFamily = {
    {"sign", "sign[,chunk=N][,scale=mean|l2]", "one bit an element and one scale a chunk",
     "scale=mean: contraction; scale=l2: none, it can expand", "sign", kSignWireId},
    build_sign};

}  // namespace sotto
