#include <sotto/compress/quant.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "internal/chunked.h"
#include "internal/chunks.h"
#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/feedback.h"
#include "internal/fitted_grid.h"
#include "internal/payload.h"
#include "internal/saturation.h"
#include "internal/shares.h"

namespace sotto {
namespace {

using internal::Chunks;

constexpr std::size_t kQuantHeaderBytes = sizeof(std::uint8_t) + sizeof(std::uint32_t);
constexpr std::size_t kScaleBytes = 2 * sizeof(float);

/// Whether every value that the grid can name is finite.
Status check_grid(const Grid& grid, std::size_t chunk) {
  switch (internal::judge_grid(grid)) {
    case Fault::non_finite:
      return internal::non_finite(fmt::format("quant: chunk {} reaches from {} in steps of {}",
                                              chunk, grid.origin, grid.step));
    case Fault::malformed:
      return internal::malformed(fmt::format("quant: chunk {} has step {}", chunk, grid.step));
    default:
      return {};
  }
}

class QuantCompressor final : public internal::ChunkedCompressor {
 public:
  QuantCompressor(const QuantOptions& options, const Ops& ops)
      : ChunkedCompressor(ops), options_(options) {}

  std::string spec() const override {
    return fmt::format("quant:{},chunk={},rounding={}", options_.bits, options_.chunk,
                       stochastic() ? "stochastic" : "nearest");
  }
  std::uint16_t wire_id() const override { return kQuantWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    const Chunks chunks = cut(elements);
    return kQuantHeaderBytes + chunks.count() * kScaleBytes + chunks.total_code_bytes();
  }
  Contract contract(std::size_t elements) const override;
  std::unique_ptr<Compressor> clone() const override {
    return std::make_unique<QuantCompressor>(*this);
  }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override {
    return *encode_chunks(x, {}, key, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override {
    return encode_chunks(v, {&prepare, v}, key, out);
  }
  std::size_t saturated() const override { return saturated_; }

 private:
  Status verify(std::span<const std::byte> bytes, std::size_t elements) const override;
  void add(std::span<const std::byte> bytes, std::size_t elements, std::size_t first, float scale,
           std::span<float> y) const override;
  std::size_t chunk_length(std::size_t elements) const override { return cut(elements).longest(); }
  bool stochastic() const { return options_.rounding == Rounding::stochastic; }
  Chunks cut(std::size_t elements) const { return {elements, options_.chunk, options_.bits}; }
  /// The input of an encoding, and the place of its output.
  struct Job {
    std::span<const float> x;
    const internal::Origin& origin;
    const RandomKey& key;
    std::span<std::byte> scales;
    std::span<std::byte> codes;
    std::span<const std::byte> out;
  };
  std::optional<std::size_t> encode_chunks(std::span<const float> x, const internal::Origin& origin,
                                           const RandomKey& key, std::span<std::byte> out);
  /// Chunks begin … end − 1. Returns how many elements saturated; nothing when called off.
  std::optional<std::size_t> encode_share(const Job& job, std::size_t begin, std::size_t end) const;
  Grid grid_at(std::span<const std::byte> scales, std::size_t chunk) const {
    return {.origin = internal::load<float>(scales, 2 * chunk),
            .step = internal::load<float>(scales, 2 * chunk + 1),
            .bits = options_.bits};
  }

  QuantOptions options_;
  std::size_t saturated_ = 0;
};

Contract QuantCompressor::contract(std::size_t elements) const {
  const auto n = static_cast<double>(cut(elements).longest());
  const double steps = Grid{.bits = options_.bits}.max_code();
  Contract contract =
      stochastic() ? internal::unbiased_contract(n / (2 * steps * steps))
                   : internal::contraction_contract((steps * steps - 1) / (steps * steps + n - 1));
  contract.floor_per_element = static_cast<double>(internal::kSmallestFitted) / 2;
  return contract;
}

std::optional<std::size_t> QuantCompressor::encode_chunks(std::span<const float> x,
                                                          const internal::Origin& origin,
                                                          const RandomKey& key,
                                                          std::span<std::byte> out) {
  const Chunks chunks = cut(x.size());
  ByteWriter writer(out);
  writer.write(static_cast<std::uint8_t>(options_.bits));
  writer.write(static_cast<std::uint32_t>(options_.chunk));
  const auto scales = writer.reserve(chunks.count() * kScaleBytes);
  const Job job{x, origin, key, scales, writer.reserve(chunks.total_code_bytes()), out};
  const auto saturated =
      internal::Shares(workers(), chunks.count(), x.size())
          .sum([&](std::size_t begin, std::size_t end) { return encode_share(job, begin, end); });
  saturated_ = saturated.value_or(0);
  return saturated ? std::optional(writer.position()) : std::nullopt;
}

std::optional<std::size_t> QuantCompressor::encode_share(const Job& job, std::size_t begin,
                                                         std::size_t end) const {
  const Chunks chunks = cut(job.x.size());
  auto feedback = job.origin.feedback(chunks.end(begin), chunks.end(end));
  ByteWriter scales(job.scales.subspan(begin * kScaleBytes));
  std::size_t saturated = 0;
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t from = chunks.first(i);
    const auto here = internal::chunk_of(job.x, feedback, from, chunks.size(i));
    if (!here) {
      return std::nullopt;
    }
    const auto chunk = *here;
    const MinMax range = internal::range_to_fit(ops_.min_max(chunk), options_.rounding);
    const MinMax span = internal::spannable(range);
    const Grid grid = internal::fit_grid(span, options_.bits, options_.rounding);
    scales.write(grid.origin);
    scales.write(grid.step);
    saturated += internal::count_outside(chunk, range, span.min, span.max);
    const auto packed = job.codes.subspan(chunks.code_offset(i), chunks.code_bytes(i));
    if (!feedback) {
      ops_.quantize_pack(chunk, grid, options_.rounding, job.key, from, packed);
      continue;
    }
    const auto reduce = [&](std::size_t first, std::span<float> piece, const Soon& soon) {
      const std::size_t at = packed_bytes(first - from, options_.bits);
      ops_.quantize_residual(piece, grid, options_.rounding, job.key, first,
                             packed.subspan(at, packed_bytes(piece.size(), options_.bits)), soon);
      add_piece(*job.origin.prepare, job.out, job.x.size(), first, piece.size());
    };
    if (!feedback->reduce(from, chunk.size(), reduce)) {
      return std::nullopt;
    }
  }
  return saturated;
}

Status QuantCompressor::verify(std::span<const std::byte> bytes, std::size_t elements) const {
  if (auto status = internal::check_length("quant", bytes.size(), max_bytes(elements));
      !status.ok()) {
    return status;
  }
  const Chunks chunks = cut(elements);
  ByteReader reader(bytes);
  const auto bits = reader.read<std::uint8_t>();
  const auto chunk = reader.read<std::uint32_t>();
  if (bits != options_.bits || chunk != options_.chunk) {
    return internal::malformed(fmt::format("quant: {} bits in chunks of {} where {} in {} are due",
                                           bits, chunk, options_.bits, options_.chunk));
  }
  const auto scales = reader.take(chunks.count() * kScaleBytes);
  const auto codes = reader.take(chunks.total_code_bytes());
  for (std::size_t i = 0; i < chunks.count(); ++i) {
    if (auto status = check_grid(grid_at(scales, i), i); !status.ok()) {
      return status;
    }
    const auto piece = codes.subspan(chunks.code_offset(i), chunks.code_bytes(i));
    if (!internal::padding_is_zero(piece, chunks.size(i), options_.bits)) {
      return internal::malformed(fmt::format("quant: padding of chunk {} is not zero", i));
    }
  }
  return {};
}

void QuantCompressor::add(std::span<const std::byte> bytes, std::size_t elements, std::size_t first,
                          float scale, std::span<float> y) const {
  const Chunks chunks = cut(elements);
  const auto scales = bytes.subspan(kQuantHeaderBytes);
  const auto codes = scales.subspan(chunks.count() * kScaleBytes);
  chunks.each_part(first, y.size(), [&](std::size_t i, std::size_t from, std::size_t size) {
    ops_.unpack_axpy(scale,
                     codes.subspan(chunks.code_offset(i, from), packed_bytes(size, options_.bits)),
                     grid_at(scales, i), y.subspan(from - first, size));
  });
}

}  // namespace

std::unique_ptr<Compressor> make_quant(const QuantOptions& options, const Ops& ops) {
  if (options.bits < 1 || options.bits > 8) {
    refuse("quant B", std::to_string(options.bits), "an integer from 1 to 8 would do");
  }
  if (options.chunk > internal::kMostChunk) {
    refuse("quant chunk", std::to_string(options.chunk), "at most 2^32 − 1 elements");
  }
  return std::make_unique<QuantCompressor>(options, ops);
}

namespace {

std::unique_ptr<Compressor> build_quant(internal::SpecReader& spec,
                                        const internal::Wanted& wanted) {
  QuantOptions options;
  options.bits = spec.take_integer("B", 1, 8);
  options.chunk = spec.chunk().value_or(default_quant_chunk(options.bits));
  const std::size_t form = spec.choice("rounding", {"stochastic", "nearest"})
                               .value_or(wanted.need == ContractKind::contraction ? 1 : 0);
  options.rounding = form == 0 ? Rounding::stochastic : Rounding::nearest;
  return make_quant(options, wanted.ops);
}

}  // namespace

constinit const internal::Family internal::kQuantFamily = {
    {"quant", "quant:B[,chunk=N][,rounding=stochastic|nearest]",
     "B bits (1 … 8) on a uniform grid fitted to each chunk",
     "stochastic: unbiased, relative; nearest: contraction for B ≥ 2; steps from 2^-126 on",
     "quant:8", kQuantWireId},
    build_quant};

}  // namespace sotto
