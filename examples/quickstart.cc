// A training loop of one's own, here linear regression, on four nodes whose models stay in step.
// On one machine the loop said `x[k] -= 0.02F * gradient[k]`; lines (1) and (2) replace that. The
// nodes are threads here; for processes leave `nodes`, `rank` and `store` alone and use mpirun.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/base/start_threads.h>
#include <sotto/trainers/optimizer.h>

/// The gradient of ½ (a·x − a·1)² at x, for a fresh random example a.
void gradient_of(sotto::RandomStream& random, const std::vector<float>& x,
                 std::vector<float>& gradient) {
  float residual = 0;
  for (std::size_t k = 0; k < x.size(); ++k) {
    gradient[k] = static_cast<float>(random.normal());
    residual += (x[k] - 1) * gradient[k];
  }
  for (float& value : gradient) {
    value *= residual;
  }
}

/// Trains one node; true when it has found the solution, x = (1, …, 1).
bool train(const sotto::OptimizerOptions& options) {
  std::vector<float> x(20, 0.0F);
  std::vector<float> gradient(x.size());
  sotto::RandomStream random({.seed = 1, .rank = options.rank});
  sotto::Optimizer optimizer(options, x);  // (1)
  for (int round = 0; round < 500; ++round) {
    gradient_of(random, x, gradient);
    if (const sotto::Status status = optimizer.step(gradient); !status.ok()) {  // (2)
      std::fprintf(stderr, "%s\n", status.message().c_str());
      return false;
    }
  }
  std::printf("node %d ends at x[0] = %f\n", options.rank, static_cast<double>(x[0]));
  return optimizer.finish().ok() && std::abs(x[0] - 1) < 0.01F;
}

int main() {
  sotto::OptimizerOptions options;
  options.compressor = "quant:8";
  options.step_rule.learning_rate = 0.02;
  options.transport = "inproc";
  options.nodes = 4;
  options.store = sotto::make_memory_store();
  std::vector<char> solved(4);
  sotto::run_side_by_side(solved.size(), "nodes", [&](std::size_t node) {
    sotto::OptimizerOptions own = options;
    own.rank = static_cast<sotto::Rank>(node);
    solved[node] = train(own);
  });
  return solved == std::vector<char>(4, true) ? 0 : 1;
}
