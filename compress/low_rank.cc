#include <sotto/compress/low_rank.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/bytes.h>
#include <sotto/base/error.h>
#include <sotto/compress/factors.h>
#include <sotto/kernels/norm.h>

#include "internal/contracts.h"
#include "internal/family.h"
#include "internal/payload.h"

namespace sotto {
namespace {

constexpr std::size_t kLowRankHeaderBytes = sizeof(std::uint16_t);
/// Entries of an orthonormal P are at most 1, up to rounding.
constexpr float kLargestP = 2;

double squared_sum(std::span<const float> m) {
  double sum = 0;
  for (const float value : m) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return sum;
}

/// Whether kept < share × Σ m², the squares added up in order. That takes as long as a product with
/// a factor, each addition waiting for the last; sums side by side are as good unless it is close.
bool is_below(double kept, double share, std::span<const float> m) {
  // Sums of n squares in any order agree within 2 n 2^-53, and n < 2^32.
  constexpr double kDoubt = 0x1p-19;
  std::array<double, 8> sums{};
  std::size_t i = 0;
  for (; i + sums.size() <= m.size(); i += sums.size()) {
    for (std::size_t lane = 0; lane < sums.size(); ++lane) {
      const auto value = static_cast<double>(m[i + lane]);
      sums[lane] += value * value;
    }
  }
  const double bound = share * std::accumulate(sums.begin(), sums.end(), squared_sum(m.subspan(i)));
  return std::abs(kept - bound) > kDoubt * bound ? kept < bound : kept < share * squared_sum(m);
}

/// The starts of one stream of vectors, one matrix behind the other.
struct Stream {
  std::uint32_t bucket = 0;
  std::uint64_t elements = 0;
  std::vector<float> starts;
  bool known = false;  ///< the stream has encoded something before
};

class LowRankCompressor final : public Compressor {
 public:
  LowRankCompressor(const LowRankOptions& options, const ParameterLayout& layout)
      : options_(options),
        rank_(static_cast<std::size_t>(options.rank)),
        warm_(options.warm_start),
        layout_(layout) {}

  std::string spec() const override {
    return fmt::format("lowrank:{},start={}{}", rank_, warm_ ? "warm" : "random",
                       options_.steps == 1 ? "" : fmt::format(",steps={}", options_.steps));
  }
  std::uint16_t wire_id() const override { return kLowRankWireId; }
  std::size_t max_bytes(std::size_t elements) const override;
  Contract contract(std::size_t elements) const override;
  bool divisible() const override { return false; }
  std::unique_ptr<Compressor> clone() const override {
    return std::make_unique<LowRankCompressor>(*this);
  }
  std::size_t encode(std::span<const float> x, const RandomKey& key,
                     std::span<std::byte> out) override;
  Status decode_add(std::span<const std::byte> bytes, float scale,
                    std::span<float> y) const override;
  std::size_t saturated() const override { return saturated_; }
  void save(ByteBuffer& out) const override;
  Status load(ByteReader& in) override;
  const LowRankOptions& options() const { return options_; }

 private:
  template <typename Visit>
  void for_each_piece(std::size_t elements, Visit&& visit) const;
  std::size_t start_floats(std::size_t elements) const;
  Stream& stream_of(const RandomKey& key, std::size_t elements);
  /// P into p and Q into q from `start`; returns ‖Q‖², which is what C keeps of ‖M‖².
  double factor(const MatrixShape& shape, std::span<const float> m, std::span<const float> start);
  /// Q, as far as it fits into the payload; returns how many entries did not.
  std::size_t round_q();
  void encode_matrix(const MatrixShape& shape, std::span<const float> m, std::span<float> start,
                     bool known, RandomStream& random, ByteWriter& writer);
  float largest_q() const {
    return std::numeric_limits<float>::max() / (4 * static_cast<float>(rank_));
  }

  LowRankOptions options_;
  std::size_t rank_;
  bool warm_;
  ParameterLayout layout_;
  std::vector<Stream> streams_;
  std::size_t saturated_ = 0;
  std::vector<double> wide_;
  std::vector<float> p_;
  std::vector<float> q_;
  mutable std::vector<float> values_;  ///< values of the payload that is decoded
};

template <typename Visit>
void LowRankCompressor::for_each_piece(std::size_t elements, Visit&& visit) const {
  if (layout_.empty() || dimension_of(layout_) != elements) {
    visit(folded_piece(elements, rank_));
    return;
  }
  for (const ParameterBlock& tensor : layout_) {
    visit(factor_piece(tensor, rank_));
  }
}

std::size_t LowRankCompressor::max_bytes(std::size_t elements) const {
  std::size_t floats = 0;
  for_each_piece(elements, [&](const FactorPiece& piece) {
    floats += piece.matrix ? (piece.matrix->rows + piece.matrix->columns) * rank_ : piece.size;
  });
  return kLowRankHeaderBytes + floats * sizeof(float);
}

Contract LowRankCompressor::contract(std::size_t elements) const {
  double delta = 1;
  for_each_piece(elements, [&](const FactorPiece& piece) {
    if (piece.matrix) {
      delta = std::min(delta,
                       static_cast<double>(rank_) / static_cast<double>(piece.matrix->shorter()));
    }
  });
  Contract contract = internal::contraction_contract(delta);
  contract.floor_per_element = delta < 1 ? 0x1p-148 : 0;
  return contract;
}

std::size_t LowRankCompressor::start_floats(std::size_t elements) const {
  std::size_t floats = 0;
  for_each_piece(elements, [&](const FactorPiece& piece) {
    floats += piece.matrix ? piece.matrix->shorter() * rank_ : 0;
  });
  return floats;
}

Stream& LowRankCompressor::stream_of(const RandomKey& key, std::size_t elements) {
  const std::uint32_t bucket = warm_ ? key.bucket : 0;
  for (Stream& stream : streams_) {
    if (stream.bucket == bucket && stream.elements == elements) {
      return stream;
    }
  }
  streams_.push_back({bucket, elements, std::vector<float>(start_floats(elements)), false});
  return streams_.back();
}

double LowRankCompressor::factor(const MatrixShape& shape, std::span<const float> m,
                                 std::span<const float> start) {
  const auto round = [](double value) { return static_cast<float>(value); };
  for (int step = 0; step < options_.steps; ++step) {
    if (step > 0) {
      round_q();
      start = q_;
    }
    wide_.resize(shape.longer() * rank_);
    times(shape, m, rank_, start, wide_);
    orthonormalize(rank_, wide_);
    p_.resize(wide_.size());
    std::ranges::transform(wide_, p_.begin(), round);
    wide_.resize(shape.shorter() * rank_);
    transposed_times(shape, m, rank_, p_, wide_);
  }
  double kept = 0;
  for (const double value : wide_) {
    kept += value * value;
  }
  return kept;
}

std::size_t LowRankCompressor::round_q() {
  q_.resize(wide_.size());
  std::size_t cut = 0;
  const auto limit = static_cast<double>(largest_q());
  for (std::size_t i = 0; i < wide_.size(); ++i) {
    cut += static_cast<std::size_t>(std::abs(wide_[i]) > limit);
    q_[i] = static_cast<float>(std::clamp(wide_[i], -limit, limit));
  }
  return cut;
}

void LowRankCompressor::encode_matrix(const MatrixShape& shape, std::span<const float> m,
                                      std::span<float> start, bool known, RandomStream& random,
                                      ByteWriter& writer) {
  if (!known) {
    std::ranges::fill(start, 0.0F);
  }
  fill_zero_columns(rank_, start, random);
  const double kept = factor(shape, m, start);
  if (known) {
    if (is_below(kept, static_cast<double>(rank_) / static_cast<double>(shape.shorter()), m)) {
      std::ranges::fill(start, 0.0F);
      fill_zero_columns(rank_, start, random);
      factor(shape, m, start);
    }
  }
  saturated_ += round_q();
  writer.write_bytes(std::as_bytes(std::span(p_)));
  writer.write_bytes(std::as_bytes(std::span(q_)));
  std::ranges::copy(q_, start.begin());
}

std::size_t LowRankCompressor::encode(std::span<const float> x, const RandomKey& key,
                                      std::span<std::byte> out) {
  ByteWriter writer(out);
  writer.write(static_cast<std::uint16_t>(rank_));
  RandomKey draws = key;
  draws.purpose = Purpose::select;
  RandomStream random(draws);
  Stream& stream = stream_of(key, x.size());
  const bool known = warm_ && stream.known;
  saturated_ = 0;
  std::size_t at = 0;
  for_each_piece(x.size(), [&](const FactorPiece& piece) {
    const auto part = x.subspan(piece.offset, piece.size);
    if (!piece.matrix) {
      writer.write_bytes(std::as_bytes(part));
      return;
    }
    const std::size_t floats = piece.matrix->shorter() * rank_;
    encode_matrix(*piece.matrix, part, std::span(stream.starts).subspan(at, floats), known, random,
                  writer);
    at += floats;
  });
  stream.known = true;
  return writer.position();
}

Status LowRankCompressor::decode_add(std::span<const std::byte> bytes, float scale,
                                     std::span<float> y) const {
  if (auto status = internal::check_length("lowrank", bytes.size(), max_bytes(y.size()));
      !status.ok()) {
    return status;
  }
  ByteReader reader(bytes);
  if (const auto rank = reader.read<std::uint16_t>(); rank != rank_) {
    return internal::malformed(fmt::format("lowrank: rank {} where {} is due", rank, rank_));
  }
  values_.resize((bytes.size() - kLowRankHeaderBytes) / sizeof(float));
  reader.read_into(std::span(values_));
  Status judged;
  std::size_t at = 0;
  const auto judge = [&](std::size_t count, float largest) {
    for (const std::size_t end = at + count; at < end; ++at) {
      if (judged.ok() && !(std::abs(values_[at]) <= largest)) {
        judged =
            std::isfinite(values_[at])
                ? internal::malformed(fmt::format("lowrank: {} as value {}", values_[at], at))
                : internal::non_finite(fmt::format("lowrank: {} as value {}", values_[at], at));
      }
    }
  };
  for_each_piece(y.size(), [&](const FactorPiece& piece) {
    if (piece.matrix) {
      judge(piece.matrix->longer() * rank_, kLargestP);
      judge(piece.matrix->shorter() * rank_, largest_q());
    } else {
      judge(piece.size, std::numeric_limits<float>::max());
    }
  });
  if (!judged.ok()) {
    return judged;
  }
  std::span<const float> left(values_);
  const auto take = [&](std::size_t count) {
    const auto taken = left.first(count);
    left = left.subspan(count);
    return taken;
  };
  for_each_piece(y.size(), [&](const FactorPiece& piece) {
    const auto part = y.subspan(piece.offset, piece.size);
    if (piece.matrix) {
      const auto p = take(piece.matrix->longer() * rank_);
      const auto q = take(piece.matrix->shorter() * rank_);
      add_product(*piece.matrix, rank_, scale, p, q, part);
      return;
    }
    const auto exact = take(piece.size);
    for (std::size_t i = 0; i < part.size(); ++i) {
      part[i] = part[i] + scale * exact[i];
    }
  });
  return {};
}

void LowRankCompressor::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint32_t>(warm_ ? streams_.size() : 0));
  if (!warm_) {
    return;
  }
  for (const Stream& stream : streams_) {
    out.write(stream.bucket);
    out.write(stream.elements);
    out.write_span(std::span<const float>(stream.starts));
  }
}

Status LowRankCompressor::load(ByteReader& in) {
  const auto count = in.read<std::uint32_t>();
  streams_.clear();
  for (std::uint32_t i = 0; i < count && !in.failed(); ++i) {
    Stream stream;
    stream.bucket = in.read<std::uint32_t>();
    stream.elements = in.read<std::uint64_t>();
    if (stream.elements > kMostDimension ||
        start_floats(stream.elements) > in.remaining() / sizeof(float)) {
      return internal::malformed("lowrank: the saved starts end too early");
    }
    stream.starts.resize(start_floats(stream.elements));
    in.read_into(std::span(stream.starts));
    stream.known = true;
    if (!std::ranges::all_of(stream.starts, [](float value) { return std::isfinite(value); })) {
      return internal::non_finite("lowrank: a saved start is not finite");
    }
    streams_.push_back(std::move(stream));
  }
  return in.failed() ? internal::malformed("lowrank: the saved starts end too early") : Status();
}

}  // namespace

std::unique_ptr<Compressor> make_low_rank(const LowRankOptions& options,
                                          const ParameterLayout& layout) {
  if (options.rank < 1 || options.rank > kMostLowRank) {
    refuse("lowrank K", std::to_string(options.rank),
           fmt::format("an integer from 1 to {} would do", kMostLowRank));
  }
  if (options.steps < 1 || options.steps > kMostLowRankSteps) {
    refuse("lowrank steps", std::to_string(options.steps),
           fmt::format("an integer from 1 to {} would do", kMostLowRankSteps));
  }
  return std::make_unique<LowRankCompressor>(options, layout);
}

std::optional<LowRankOptions> low_rank_options(const Compressor& compressor) {
  const auto* low_rank = dynamic_cast<const LowRankCompressor*>(&compressor.undecorated());
  return low_rank == nullptr ? std::nullopt : std::optional(low_rank->options());
}

namespace {

std::unique_ptr<Compressor> build_low_rank(internal::SpecReader& spec,
                                           const internal::Wanted& wanted) {
  LowRankOptions options;
  options.rank = spec.take_integer("K", 1, kMostLowRank);
  options.warm_start = spec.choice("start", {"warm", "random"}).value_or(0) == 0;
  options.steps = spec.integer("steps", 1, kMostLowRankSteps).value_or(options.steps);
  return make_low_rank(options, wanted.layout);
}

}  // namespace

constinit const internal::Family internal::kLowRankFamily = {
    {"lowrank", "lowrank:K[,start=warm|random][,steps=N]",
     "every matrix as two factors of rank K, by a power iteration over rounds",
     "contraction, δ = K / the shorter side", "lowrank:2", kLowRankWireId},
    build_low_rank};

}  // namespace sotto
