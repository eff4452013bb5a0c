#include <sotto/compress/grid.h>

#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "internal/chunked.h"
#include "internal/chunks.h"
#include "internal/family.h"
#include "internal/feedback.h"
#include "internal/payload.h"
#include "internal/saturation.h"
#include "internal/shares.h"

namespace sotto {
namespace {

constexpr std::size_t kGridHeaderBytes = sizeof(std::uint8_t) + sizeof(float);

class GridCompressor final : public internal::ChunkedCompressor {
 public:
  GridCompressor(const Grid& grid, const Ops& ops) : ChunkedCompressor(ops), grid_(grid) {}

  std::string spec() const override { return fmt::format("grid:{}:{}", grid_.bits, grid_.step); }
  std::uint16_t wire_id() const override { return kGridWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    return kGridHeaderBytes + packed_bytes(elements, grid_.bits);
  }
  Contract contract(std::size_t /*elements*/) const override {
    return {.unbiased = true, .absolute_per_element = static_cast<double>(grid_.step) / 2};
  }
  std::unique_ptr<Compressor> clone() const override {
    return std::make_unique<GridCompressor>(*this);
  }
  std::size_t saturated() const override { return saturated_; }
  GridOptions options() const { return {.bits = grid_.bits, .step = grid_.step}; }

  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override {
    return *encode_pieces(x, {}, key, out);
  }
  std::optional<std::size_t> encode_prepared(const Prepare& prepare, std::span<float> v,
                                             const RandomKey& key,
                                             std::span<std::byte> out) override {
    return encode_pieces(v, {&prepare, v}, key, out);
  }

 private:
  Status verify(std::span<const std::byte> bytes, std::size_t elements) const override;
  void add(std::span<const std::byte> bytes, std::size_t elements, std::size_t first, float scale,
           std::span<float> y) const override;
  std::size_t chunk_length(std::size_t elements) const override { return elements; }
  /// Pieces that stay in the cache between looking at their range and quantizing them.
  internal::Chunks cut(std::size_t elements) const { return {elements, 2048, grid_.bits}; }
  std::optional<std::size_t> encode_pieces(std::span<const float> x, const internal::Origin& origin,
                                           const RandomKey& key, std::span<std::byte> out);

  Grid grid_;
  std::size_t saturated_ = 0;
};

std::optional<std::size_t> GridCompressor::encode_pieces(std::span<const float> x,
                                                         const internal::Origin& origin,
                                                         const RandomKey& key,
                                                         std::span<std::byte> out) {
  ByteWriter writer(out);
  writer.write(static_cast<std::uint8_t>(grid_.bits));
  writer.write(grid_.step);
  const auto codes = writer.reserve(packed_bytes(x.size(), grid_.bits));
  const float top = grid_.origin + static_cast<float>(grid_.max_code()) * grid_.step;
  const internal::Chunks pieces = cut(x.size());
  const auto encode_share = [&](std::size_t begin, std::size_t end) -> std::optional<std::size_t> {
    auto feedback = origin.feedback(pieces.end(begin), pieces.end(end));
    std::size_t saturated = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t from = pieces.first(i);
      const auto here = internal::chunk_of(x, feedback, from, pieces.size(i));
      if (!here) {
        return std::nullopt;
      }
      const auto piece = *here;
      saturated += internal::count_outside(piece, ops_.min_max(piece), grid_.origin, top);
      const auto packed = codes.subspan(pieces.code_offset(i), pieces.code_bytes(i));
      if (!feedback) {
        ops_.quantize_pack(piece, grid_, Rounding::stochastic, key, from, packed);
        continue;
      }
      const auto reduce = [&](std::size_t first, std::span<float> part, const Soon& soon) {
        const auto to = packed.subspan(packed_bytes(first - from, grid_.bits),
                                       packed_bytes(part.size(), grid_.bits));
        ops_.quantize_residual(part, grid_, Rounding::stochastic, key, first, to, soon);
        add_piece(*origin.prepare, out, x.size(), first, part.size());
      };
      if (!feedback->reduce(from, piece.size(), reduce)) {
        return std::nullopt;
      }
    }
    return saturated;
  };
  const auto saturated = internal::Shares(workers(), pieces.count(), x.size()).sum(encode_share);
  saturated_ = saturated.value_or(0);
  return saturated ? std::optional(writer.position()) : std::nullopt;
}

Status GridCompressor::verify(std::span<const std::byte> bytes, std::size_t elements) const {
  if (auto status = internal::check_length("grid", bytes.size(), max_bytes(elements));
      !status.ok()) {
    return status;
  }
  ByteReader reader(bytes);
  const auto bits = reader.read<std::uint8_t>();
  const auto step = reader.read<float>();
  if (bits != grid_.bits || step != grid_.step) {
    return internal::malformed(fmt::format("grid: {} bits in steps of {} where {} in {} are due",
                                           bits, step, grid_.bits, grid_.step));
  }
  const auto codes = reader.take(reader.remaining());
  if (!internal::padding_is_zero(codes, elements, grid_.bits)) {
    return internal::malformed("grid: padding is not zero");
  }
  return {};
}

void GridCompressor::add(std::span<const std::byte> bytes, std::size_t /*elements*/,
                         std::size_t first, float scale, std::span<float> y) const {
  const auto codes = bytes.subspan(kGridHeaderBytes + packed_bytes(first, grid_.bits));
  ops_.unpack_axpy(scale, codes.first(packed_bytes(y.size(), grid_.bits)), grid_, y);
}

}  // namespace

std::optional<GridOptions> grid_options(const Compressor& compressor) {
  const auto* grid = dynamic_cast<const GridCompressor*>(&compressor.undecorated());
  return grid == nullptr ? std::nullopt : std::optional(grid->options());
}

std::unique_ptr<Compressor> make_grid(const GridOptions& options, const Ops& ops) {
  if (options.bits < 1 || options.bits > 8) {
    refuse("grid B", std::to_string(options.bits), "an integer from 1 to 8 would do");
  }
  // 1 / step and every value of the grid must be finite.
  const float half = std::ldexp(options.step, options.bits - 1);
  if (!(options.step >= 0x1p-126F) || !std::isfinite(2 * half)) {
    refuse("grid STEP", fmt::format("{}", options.step),
           fmt::format("a number from {} on, such that 2^{} of it are finite, would do", 0x1p-126F,
                       options.bits));
  }
  return std::make_unique<GridCompressor>(
      Grid{.origin = -half, .step = options.step, .bits = options.bits}, ops);
}

namespace {

std::unique_ptr<Compressor> build_grid(internal::SpecReader& spec, const internal::Wanted& wanted) {
  GridOptions options;
  options.bits = spec.take_integer("B", 1, 8);
  options.step = spec.take_float("STEP", "a positive number");
  return make_grid(options, wanted.ops);
}

}  // namespace

constinit const internal::Family internal::kGridFamily = {
    {"grid", "grid:B:STEP", "B bits (1 … 8) on a fixed grid about zero, saturating",
     "unbiased, absolute: STEP/2 per element within the range", "grid:8:0.01", kGridWireId},
    build_grid};

}  // namespace sotto
