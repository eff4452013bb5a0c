#include <sotto/optim/exchange/factor_means.h>

#include <algorithm>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/low_rank.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

std::vector<FactorMeans::Part> parts_of(const ParameterLayout& layout, std::size_t columns) {
  std::vector<FactorMeans::Part> parts;
  std::size_t left_at = 0;
  std::size_t right_at = 0;
  for (const FactorPiece& piece : factor_pieces(layout, columns)) {
    FactorMeans::Part part{piece, left_at, piece.size, right_at, 0};
    if (piece.matrix) {
      part.left_size = piece.matrix->longer() * columns;
      part.right_size = piece.matrix->shorter() * columns;
    }
    left_at += part.left_size;
    right_at += part.right_size;
    parts.push_back(part);
  }
  return parts;
}

void to_floats(std::span<const double> from, std::span<float> to) {
  std::ranges::transform(from, to.begin(), [](double value) { return static_cast<float>(value); });
}

}  // namespace

std::size_t factor_columns(const LocalNode& node) {
  const auto options = low_rank_options(node.compressor());
  check(options.has_value(), "no other compressor is admitted");
  if (options->steps != 1) {
    refuse("compressor", node.compressor().spec(),
           fmt::format("{} makes one step of the iteration a round; leave steps out", node.name()));
  }
  return static_cast<std::size_t>(options->rank);
}

FactorMeans::FactorMeans(LocalNode& node, std::size_t columns)
    : node_(node),
      columns_(columns),
      parts_(parts_of(node.layout(), columns)),
      left_(parts_.empty() ? 0 : parts_.back().left_at + parts_.back().left_size),
      right_(parts_.empty() ? 0 : parts_.back().right_at + parts_.back().right_size),
      mean_(node, std::max(left_.size(), right_.size()), RingCodec::full) {
  std::size_t longest = 0;
  for (const Part& part : parts_) {
    longest = std::max({longest, part.left_size, part.right_size});
  }
  wide_.reserve(longest);
}

void FactorMeans::begin(std::span<const float> m) {
  m_ = m;
  begin_left();
  go_on();
}

void FactorMeans::go_on() {
  if (right_due_ && !mean_.busy() && !right_.empty()) {
    begin_right();
  }
}

Status FactorMeans::complete(const Exchange& exchange) {
  Status status = mean_.complete(exchange);
  if (status.ok()) {
    go_on();
  }
  return status;
}

void FactorMeans::orthonormalize_floats(std::span<float> factor) {
  wide_.assign(factor.begin(), factor.end());
  orthonormalize(columns_, wide_);
  to_floats(wide_, factor);
}

void FactorMeans::begin_left() {
  RandomStream random({.seed = node_.seed(), .round = node_.round(), .purpose = Purpose::select});
  for (const Part& part : parts_) {
    const auto m = part.of(m_);
    if (!part.piece.matrix) {
      std::ranges::copy(m, left(part).begin());
      continue;
    }
    fill_zero_columns(columns_, right(part), random);
    orthonormalize_floats(right(part));  // S
    wide_.resize(part.left_size);
    times(*part.piece.matrix, m, columns_, right(part), wide_);
    to_floats(wide_, left(part));
  }
  right_due_ = true;
  mean_.begin(left_, 0, "sum of the left factors");
}

void FactorMeans::begin_right() {
  for (const Part& part : parts_) {
    if (part.piece.matrix) {
      orthonormalize_floats(left(part));  // P
      wide_.resize(part.right_size);
      transposed_times(*part.piece.matrix, part.of(m_), columns_, left(part), wide_);
      to_floats(wide_, right(part));
    }
  }
  right_due_ = false;
  mean_.begin(right_, mean_.phases(), "sum of the right factors");
}

void FactorMeans::save(ByteBuffer& out) const { write_floats(right_, out); }

Status FactorMeans::load(ByteReader& in) { return read_floats(in, "right factors", right_); }

}  // namespace sotto
