// The vector operations, each implementation beside a plain copy of the same vector: read
// bytes_per_second as a ratio to `copy` of the same run.
//   build/bench/kernels_bench [--benchmark_filter=quantize]
#include <cstddef>
#include <cstring>
#include <vector>

#include <benchmark/benchmark.h>
#include <Eigen/Core>

#include <sotto/kernels/matrix_product.h>
#include <sotto/kernels/ops.h>

namespace {

using sotto::Ops;

constexpr std::size_t kElements = std::size_t{1} << 22;
constexpr std::size_t kChunk = 1024;

std::vector<float> random_vector() {
  std::vector<float> x(kElements);
  sotto::RandomStream random({.seed = 1, .purpose = sotto::Purpose::measure});
  for (float& value : x) {
    value = static_cast<float>(random.normal());
  }
  return x;
}

const Ops& ops_of(const benchmark::State& state) {
  return state.range(0) == 0 ? sotto::reference_ops() : sotto::host_ops();
}

void report(benchmark::State& state, std::size_t bytes) {
  state.SetLabel(std::string(ops_of(state).name()));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

void copy(benchmark::State& state) {
  const auto x = random_vector();
  std::vector<float> y(kElements);
  for ([[maybe_unused]] auto step : state) {
    std::memcpy(y.data(), x.data(), x.size() * sizeof(float));
    benchmark::DoNotOptimize(y.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(8 * kElements));
}

void axpy(benchmark::State& state) {
  const auto x = random_vector();
  std::vector<float> y(kElements);
  for ([[maybe_unused]] auto step : state) {
    ops_of(state).axpy(0.5F, x, y);
    benchmark::DoNotOptimize(y.data());
  }
  report(state, 12 * kElements);
}

void sum_squares(benchmark::State& state) {
  const auto x = random_vector();
  for ([[maybe_unused]] auto step : state) {
    benchmark::DoNotOptimize(ops_of(state).sum_squares(x));
  }
  report(state, 4 * kElements);
}

void quantize_pack(benchmark::State& state) {
  const auto x = random_vector();
  const auto bits = static_cast<int>(state.range(1));
  const sotto::Grid grid{
      .origin = -4, .step = 8.0F / static_cast<float>((1U << bits) - 1U), .bits = bits};
  const std::size_t packed = sotto::packed_bytes(kChunk, bits);
  std::vector<std::byte> out(kElements / kChunk * packed);
  for ([[maybe_unused]] auto step : state) {
    for (std::size_t chunk = 0; chunk < kElements / kChunk; ++chunk) {
      benchmark::DoNotOptimize(ops_of(state).quantize_pack(
          std::span(x).subspan(chunk * kChunk, kChunk), grid, sotto::Rounding::stochastic,
          {.seed = 1}, chunk * kChunk, std::span(out).subspan(chunk * packed, packed)));
    }
  }
  report(state, 4 * kElements + out.size());
}

void sign_pack(benchmark::State& state) {
  const auto x = random_vector();
  std::vector<std::byte> out(sotto::packed_bytes(kElements, 1));
  for ([[maybe_unused]] auto step : state) {
    ops_of(state).sign_pack(x, out);
    benchmark::DoNotOptimize(out.data());
  }
  report(state, 4 * kElements + out.size());
}

void top_k(benchmark::State& state) {
  const auto x = random_vector();
  for ([[maybe_unused]] auto step : state) {
    benchmark::DoNotOptimize(ops_of(state).top_k(x, kElements / 100));
  }
  report(state, 4 * kElements);
}

/// Products of square matrices with so many rows, the steps that Newton and Schulz take to a matrix
/// with orthogonal rows.
void matrix_product(benchmark::State& state) {
  const auto n = static_cast<std::size_t>(state.range(0));
  const auto x = random_vector();
  std::vector<float> out(n * n);
  sotto::MatrixProduct product;
  for ([[maybe_unused]] auto step : state) {
    product.times({n, n, n}, std::span(x).first(n * n), std::span(x).last(n * n), out);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(2 * n * n * n));
}

/// Eigen's product of as large matrices, with the instructions that the compiler may use.
void eigen_product(benchmark::State& state) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const auto n = state.range(0);
  const auto x = random_vector();
  const Eigen::Map<const Matrix> a(x.data(), n, n);
  const Eigen::Map<const Matrix> b(x.data() + x.size() - n * n, n, n);
  Matrix out(n, n);
  for ([[maybe_unused]] auto step : state) {
    out.noalias() = a * b;
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * 2 * n * n * n);
}

BENCHMARK(matrix_product)->Arg(64)->Arg(256)->Arg(1024);
BENCHMARK(eigen_product)->Arg(64)->Arg(256)->Arg(1024);

// The first argument: 0 for the reference, 1 for the host's implementation.
BENCHMARK(copy);
BENCHMARK(axpy)->Arg(0)->Arg(1);
BENCHMARK(sum_squares)->Arg(0)->Arg(1);
BENCHMARK(quantize_pack)->ArgsProduct({{0, 1}, {1, 2, 4, 8}});
BENCHMARK(sign_pack)->Arg(0)->Arg(1);
BENCHMARK(top_k)->Arg(0)->Arg(1);

}  // namespace

BENCHMARK_MAIN();
