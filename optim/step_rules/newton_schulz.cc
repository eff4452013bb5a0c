#include <sotto/optim/step_rules/newton_schulz.h>

#include <algorithm>

#include <sotto/kernels/norm.h>

namespace sotto {
namespace {

constexpr int kSteps = 5;
constexpr float kOfX = 3.4445F;
constexpr float kOfCube = -4.7750F;
constexpr float kOfFifthPower = 2.0315F;
constexpr double kSmall = 1e-7;  // keeps zeros zero

template <typename T>
void grow(std::vector<T>& values, std::size_t size) {
  values.resize(std::max(values.size(), size));
}

}  // namespace

void NewtonSchulz::reserve(std::size_t rows, std::size_t columns) {
  const std::size_t side = std::min(rows, columns);
  grow(x_, rows * columns);
  grow(moved_, rows * columns);
  grow(gram_, side * side);
  grow(square_, side * side);
}

void NewtonSchulz::orthogonalize(std::size_t rows, std::size_t columns, std::span<const float> u,
                                 std::span<float> out) {
  const bool tall = rows > columns;
  const std::size_t m = std::min(rows, columns);
  const std::size_t n = std::max(rows, columns);
  const auto x = std::span(x_).first(rows * columns);
  const auto moved = std::span(moved_).first(rows * columns);
  const auto gram = std::span(gram_).first(m * m);
  const auto square = std::span(square_).first(m * m);
  if (tall) {
    transpose(rows, columns, u, x);
  } else {
    ops_.copy(u, x);
  }
  ops_.scale(static_cast<float>(1 / (norm(x, ops_) + kSmall)), x);
  for (int step = 0; step < kSteps; ++step) {
    product_.gram(m, n, x, gram);
    product_.square(m, gram, square);
    ops_.combine({{kOfCube, gram}, {kOfFifthPower, square}}, gram);
    product_.times({m, m, n}, gram, x, moved);
    ops_.combine({{kOfX, x}, {1, moved}}, x);
  }
  if (tall) {
    transpose(m, n, x, out);
  } else {
    ops_.copy(x, out);
  }
}

}  // namespace sotto
