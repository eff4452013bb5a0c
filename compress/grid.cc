#include <sotto/compress/grid.h>

#include <cmath>

#include <fmt/format.h>

#include <sotto/base/error.h>

#include "internal/chunks.h"
#include "internal/payload.h"
#include "internal/saturation.h"

namespace sotto {
namespace {

constexpr std::size_t kHeaderBytes = sizeof(std::uint8_t) + sizeof(float);

class GridCompressor final : public Compressor {
 public:
  GridCompressor(const Grid& grid, const Ops& ops) : grid_(grid), ops_(ops) {}

  std::string spec() const override { return fmt::format("grid:{}:{}", grid_.bits, grid_.step); }
  std::uint16_t wire_id() const override { return kGridWireId; }
  std::size_t max_bytes(std::size_t elements) const override {
    return kHeaderBytes + packed_bytes(elements, grid_.bits);
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
                     std::span<std::byte> out) override;
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;

 private:
  Grid grid_;
  const Ops& ops_;
  std::size_t saturated_ = 0;
};

std::size_t GridCompressor::encode(std::span<const float> x, const RandomKey& key,
                                   std::span<std::byte> out) {
  ByteWriter writer(out);
  writer.write(static_cast<std::uint8_t>(grid_.bits));
  writer.write(grid_.step);
  const auto codes = writer.reserve(packed_bytes(x.size(), grid_.bits));
  const float top = grid_.origin + static_cast<float>(grid_.max_code()) * grid_.step;
  saturated_ = 0;
  // In pieces that stay in the cache between looking at their range and quantizing them.
  const internal::Chunks pieces(x.size(), 4096, grid_.bits);
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const auto piece = x.subspan(pieces.first(i), pieces.size(i));
    saturated_ += internal::count_outside(piece, ops_.min_max(piece), grid_.origin, top);
    ops_.quantize_pack(piece, grid_, Rounding::stochastic, key, pieces.first(i),
                       codes.subspan(pieces.code_offset(i), pieces.code_bytes(i)));
  }
  return writer.position();
}

Status GridCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                  std::span<float> y) const {
  if (auto status = internal::check_length("grid", bytes.size(), max_bytes(y.size())); !status) {
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
  if (!internal::padding_is_zero(codes, y.size(), grid_.bits)) {
    return internal::malformed("grid: padding is not zero");
  }
  ops_.unpack_axpy(scale, codes, grid_, y);
  return {};
}

}  // namespace

std::optional<GridOptions> grid_options(const Compressor& compressor) {
  const auto* grid = dynamic_cast<const GridCompressor*>(&compressor);
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

}  // namespace sotto
