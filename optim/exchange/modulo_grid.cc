#include <sotto/optim/exchange/modulo_grid.h>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <sotto/base/bytes.h>

namespace sotto {
namespace {

/// m_e of the elements `first` …; `first` is even.
void draw_multipliers(const RandomKey& key, std::size_t first, std::span<std::uint64_t> m) {
  for (std::size_t i = 0; i < m.size(); i += 2) {
    const auto words = key.block(static_cast<std::uint32_t>((first + i) / 2));
    m[i] = (words[0] | std::uint64_t{words[1]} << 32U) | 1U;
    if (i + 1 < m.size()) {
      m[i + 1] = (words[2] | std::uint64_t{words[3]} << 32U) | 1U;
    }
  }
}

/// The rounding noise of the elements `first` …, in steps; `first` is a multiple of kNoiseGroup.
/// Equal to rounding_noise of each, at an eighth of the cost.
void draw_noise(const RandomKey& key, std::size_t first, std::span<double> u) {
  constexpr std::size_t kBlocks = 16;  // that a group's noise comes from
  for (std::size_t group = 0; group < u.size(); group += kNoiseGroup) {
    const std::size_t first_block = kBlocks * ((first + group) / kNoiseGroup);
    for (std::size_t b = 0; b < kBlocks; ++b) {
      const auto words = key.noise_block(static_cast<std::uint32_t>(first_block + b));
      for (std::size_t half = 0; half < 8; ++half) {
        const std::size_t i = group + kBlocks * half + b;
        if (i < u.size()) {
          u[i] = static_cast<std::uint16_t>(words[half % 4] >> (half < 4 ? 0U : 16U)) * 0x1p-16;
        }
      }
    }
  }
}

std::uint64_t stated_sum(std::span<const std::byte> payload) {
  ByteReader in(payload);
  in.read<std::uint8_t>();
  in.read<float>();
  return in.read<std::uint64_t>();
}

}  // namespace

ModuloGrid::ModuloGrid(const GridOptions& options, std::uint64_t seed, std::size_t senders,
                       const Ops& ops)
    : grid_{.origin = 0, .step = 1, .bits = options.bits},
      step_(options.step),
      inverse_(1 / static_cast<double>(options.step)),
      seed_(seed),
      ops_(ops),
      sums_(senders) {
  check(options.bits >= kLeastBits && options.bits <= 8, "integers are sent in 3 to 8 bits");
}

double ModuloGrid::reach() const {
  return (std::ldexp(1, grid_.bits - 1) - 1.5) * static_cast<double>(step_);
}

std::optional<std::size_t> ModuloGrid::beyond_range(std::span<const float> x) const {
  for (std::size_t e = 0; e < x.size(); ++e) {
    if (!(std::fabs(static_cast<double>(x[e]) * inverse_) <= kMostSteps)) {
      return e;
    }
  }
  return std::nullopt;
}

double ModuloGrid::position(float x) const {
  return std::clamp(static_cast<double>(x) * inverse_, -kMostSteps, kMostSteps);
}

std::int64_t ModuloGrid::nearest(float code, std::int64_t centre) const {
  const std::int64_t range = std::int64_t{1} << grid_.bits;
  const auto ahead = (static_cast<std::int64_t>(code) - centre) & (range - 1);
  return centre + (ahead < range / 2 ? ahead : ahead - range);
}

RandomKey ModuloGrid::multiplier_key(Round round) const {
  constexpr Rank kNoNode = -1;  // no node rounds with its numbers
  return {.seed = seed_, .rank = kNoNode, .round = round, .purpose = Purpose::quantize};
}

std::span<const std::byte> ModuloGrid::codes_of(std::span<const std::byte> payload,
                                                std::size_t first, std::size_t count) const {
  return payload.subspan(kHeaderBytes + packed_bytes(first, grid_.bits),
                         packed_bytes(count, grid_.bits));
}

void ModuloGrid::encode(std::span<const float> x, const RandomKey& rounding,
                        std::span<std::byte> out) const {
  const RandomKey key = multiplier_key(rounding.round);
  std::array<float, kBlock> codes;
  std::array<double, kBlock> noise;
  std::array<std::uint64_t, kBlock> multipliers;
  const std::int64_t mask = (std::int64_t{1} << grid_.bits) - 1;
  std::uint64_t sum = 0;
  for (std::size_t first = 0; first < x.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, x.size() - first);
    draw_multipliers(key, first, std::span(multipliers).first(count));
    draw_noise(rounding, first, std::span(noise).first(count));
    for (std::size_t i = 0; i < count; ++i) {
      const auto k = static_cast<std::int64_t>(std::floor(position(x[first + i]) + noise[i]));
      codes[i] = static_cast<float>(k & mask);
      sum += static_cast<std::uint64_t>(k) * multipliers[i];
    }
    ops_.quantize_pack(std::span(codes).first(count), grid_, Rounding::nearest, rounding, first,
                       out.subspan(kHeaderBytes + packed_bytes(first, grid_.bits),
                                   packed_bytes(count, grid_.bits)));
  }
  ByteWriter header(out);
  header.write(static_cast<std::uint8_t>(grid_.bits));
  header.write(step_);
  header.write(sum);
}

Status ModuloGrid::check_header(std::span<const std::byte> payload, std::size_t elements) const {
  if (payload.size() != payload_bytes(elements)) {
    return {Fault::malformed, fmt::format("its payload has {} bytes where {} are due",
                                          payload.size(), payload_bytes(elements))};
  }
  ByteReader in(payload);
  const auto bits = in.read<std::uint8_t>();
  const auto step = in.read<float>();
  if (bits != grid_.bits || step != step_) {
    return {Fault::malformed,
            fmt::format("it has {} bits in steps of {} where {} in steps of {} are due", bits, step,
                        grid_.bits, step_)};
  }
  return {};
}

void ModuloGrid::unpack(std::span<const std::byte> payload, std::size_t first,
                        std::span<float> codes) const {
  ops_.fill(0, codes);
  ops_.unpack_axpy(1, codes_of(payload, first, codes.size()), grid_, codes);
}

std::optional<std::size_t> ModuloGrid::mix(std::span<const float> x, std::span<const std::byte> own,
                                           std::span<const Heard> heard, Round round,
                                           std::span<float> y) {
  const RandomKey key = multiplier_key(round);
  std::fill(sums_.begin(), sums_.end(), 0);
  std::array<float, kBlock> codes;
  std::array<float, kBlock> change;
  std::array<std::int64_t, kBlock> mine;  // k_i
  std::array<std::uint64_t, kBlock> multipliers;
  for (std::size_t first = 0; first < x.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, x.size() - first);
    const auto block = std::span(codes).first(count);
    draw_multipliers(key, first, std::span(multipliers).first(count));
    unpack(own, first, block);
    const auto centre = [&](std::size_t i) {
      return static_cast<std::int64_t>(std::floor(position(x[first + i]) + 0.5));
    };
    for (std::size_t i = 0; i < count; ++i) {
      mine[i] = nearest(block[i], centre(i));
      change[i] = 0;
    }
    for (std::size_t j = 0; j < heard.size(); ++j) {
      unpack(heard[j].payload, first, block);
      const float scale = heard[j].weight * step_;
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t k = nearest(block[i], centre(i));
        sums_[j] += static_cast<std::uint64_t>(k) * multipliers[i];
        change[i] += scale * static_cast<float>(k - mine[i]);
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      y[first + i] = x[first + i] + change[i];
    }
  }
  for (std::size_t j = 0; j < heard.size(); ++j) {
    if (sums_[j] != stated_sum(heard[j].payload)) {
      return j;
    }
  }
  return std::nullopt;
}

}  // namespace sotto
