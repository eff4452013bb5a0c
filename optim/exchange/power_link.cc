#include <sotto/optim/exchange/power_link.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include <sotto/base/xxh3.h>
#include <sotto/optim/state_io.h>

namespace sotto {
namespace {

RandomKey key_of(std::uint64_t seed, Rank a, Rank b, Round round) {
  return {.seed = seed,
          .rank = std::min(a, b),
          .round = round,
          .purpose = Purpose::select,
          .bucket = static_cast<std::uint32_t>(std::max(a, b))};
}

}  // namespace

PowerLink::PowerLink(Rank self, Rank peer, std::uint64_t seed, const LowRankOptions& options,
                     const std::vector<FactorPiece>& pieces)
    : self_(self),
      peer_(peer),
      seed_(seed),
      rank_(static_cast<std::size_t>(options.rank)),
      warm_(options.warm_start),
      random_(key_of(seed, self, peer, 0)),
      basis_(longest_product(pieces, rank_)),
      product_(basis_.size()),
      kept_(basis_.size()) {
  std::ranges::copy_if(pieces, std::back_inserter(matrices_),
                       [](const FactorPiece& piece) { return piece.matrix.has_value(); });
}

std::size_t PowerLink::longest_product(const std::vector<FactorPiece>& pieces, std::size_t rank) {
  std::size_t floats = 0;
  for (const FactorPiece& piece : pieces) {
    floats += piece.matrix ? piece.matrix->longer() * rank : 0;
  }
  return floats;
}

std::size_t PowerLink::scratch_size(const std::vector<FactorPiece>& pieces, std::size_t rank) {
  std::size_t elements = 0;
  for (const FactorPiece& piece : pieces) {
    elements = std::max(elements, piece.matrix ? piece.matrix->longer() * rank : 0);
  }
  return elements;
}

float PowerLink::largest_value(std::size_t rank) {
  return std::numeric_limits<float>::max() / (4 * static_cast<float>(rank));
}

std::size_t PowerLink::size_on(Side side) const {
  std::size_t floats = 0;
  for (const FactorPiece& piece : matrices_) {
    floats += size_on(side, *piece.matrix);
  }
  return floats;
}

template <typename Visit>
void PowerLink::for_each_matrix(Visit&& visit) {
  std::span<float> basis(basis_);
  std::span<float> product(product_);
  for (const FactorPiece& piece : matrices_) {
    const std::size_t basis_size = size_on(side_, *piece.matrix);
    const std::size_t product_size = size_on(other(side_), *piece.matrix);
    visit(piece, basis.first(basis_size), product.first(product_size));
    basis = basis.subspan(basis_size);
    product = product.subspan(product_size);
  }
}

void PowerLink::begin(Round round) {
  random_ = RandomStream(key_of(seed_, self_, peer_, round));
  side_ = kept_side_;
  std::ranges::copy(kept_, basis_.begin());
}

std::span<const float> PowerLink::product(std::span<const float> x, std::span<double> scratch) {
  const auto limit = static_cast<double>(largest_value(rank_));
  for_each_matrix([&](const FactorPiece& piece, std::span<float> basis, std::span<float> product) {
    if (!warm_) {
      std::ranges::fill(basis, 0.0F);
    }
    fill_zero_columns(rank_, basis, random_);
    const auto exact_basis = scratch.first(basis.size());
    std::ranges::copy(basis, exact_basis.begin());
    orthonormalize(rank_, exact_basis);
    std::ranges::transform(exact_basis, basis.begin(),
                           [](double b) { return static_cast<float>(b); });

    const auto m = x.subspan(piece.offset, piece.size);
    const auto exact_product = scratch.first(product.size());
    side_ == Side::right ? times(*piece.matrix, m, rank_, basis, exact_product)
                         : transposed_times(*piece.matrix, m, rank_, basis, exact_product);
    std::ranges::transform(exact_product, product.begin(), [&](double value) {
      saturated_ += static_cast<std::uint64_t>(std::abs(value) > limit);
      return static_cast<float>(std::clamp(value, -limit, limit));
    });
  });
  return std::span<const float>(product_).first(product_size());
}

std::uint64_t PowerLink::digest() const {
  return xxh3(std::as_bytes(std::span(basis_).first(size_on(side_))));
}

void PowerLink::take(std::span<const float> theirs, float weight, std::span<float> y) {
  const bool lower = self_ < peer_;
  for (std::size_t k = 0; k < theirs.size(); ++k) {
    product_[k] = lower ? product_[k] - theirs[k] : theirs[k] - product_[k];
  }
  const float scale = lower ? -weight : weight;
  for_each_matrix([&](const FactorPiece& piece, std::span<float> basis, std::span<float> product) {
    const auto [tall, wide] =
        side_ == Side::right ? std::pair(product, basis) : std::pair(basis, product);
    add_product(*piece.matrix, rank_, scale, tall, wide, y.subspan(piece.offset, piece.size));
  });
  std::swap(basis_, product_);
  side_ = other(side_);
}

void PowerLink::commit() {
  kept_side_ = side_;
  std::ranges::copy(basis_, kept_.begin());
}

void PowerLink::save(ByteBuffer& out) const {
  out.write(static_cast<std::uint8_t>(kept_side_));
  write_floats(std::span(kept_).first(size_on(kept_side_)), out);
}

Status PowerLink::load(ByteReader& in) {
  const auto side = in.read<std::uint8_t>();
  if (in.failed() || side > static_cast<std::uint8_t>(Side::left)) {
    return {Fault::malformed, "the side of a basis is 0 or 1"};
  }
  kept_side_ = static_cast<Side>(side);
  return read_floats(in, "basis", std::span(kept_).first(size_on(kept_side_)));
}

}  // namespace sotto
