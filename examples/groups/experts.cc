// A layer whose experts lie at four nodes: tokens travel to the experts that a gate chooses. Each
// node keeps two experts, which nobody else ever sees; the gate is the same everywhere, and is
// trained by all-reduce. No linear map does what is learnt here, x ↦ |x_0| (x_0, x_1): one expert
// must take the tokens with x_0 > 0, and another one the rest.
//
// The nodes are threads here; for processes take another transport and store.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/stores.h>
#include <sotto/groups/program_gradient.h>
#include <sotto/groups/programs/expert_exchange.h>
#include <sotto/trainers/program_run.h>

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kExperts = 8;
constexpr std::size_t kWidth = 2;
constexpr std::size_t kTokens = 32;  // a node and round
constexpr float kRate = 0.5F;

/// A layer of linear experts y = x W, of which each node has its own.
class Layer final : public sotto::GradientProgram {
 public:
  explicit Layer(const sotto::ProgramNode& node)
      : gate_(node.parameters()),
        exchange_(node.member("expert"), {.experts = kExperts,
                                          .width = kWidth,
                                          .tokens = kTokens,
                                          .gate = "top:2",
                                          .capacity = 2}),
        experts_(exchange_.own_experts() * kWidth * kWidth),
        rank_(node.rank()) {
    sotto::RandomStream random({.seed = 2, .rank = rank_});
    for (float& weight : experts_) {
      weight = static_cast<float>(random.normal());
    }
    stages_ = {
        {"tokens", [this](const auto& in) { return send(in.round); }, &exchange_.dispatching(), 0},
        {"experts", [this](const auto&) { return forward(); }, &exchange_.combining(), 0},
        {"loss", [this](const auto&) { return compare(); }, &exchange_.dispatching_gradient(), 0},
        {"learn", [this](const auto&) { return backward(); }, &exchange_.combining_gradient(), 0},
        {"gate", [this](const auto&) { return gate_gradient(); }, nullptr, 0}};
  }

  std::span<const sotto::ProgramStage> stages() const override { return stages_; }
  std::span<const float> gradient() const override { return dgate_; }
  double loss() const { return loss_; }

 private:
  sotto::Status send(sotto::Round round) {
    sotto::RandomStream random({.seed = 1, .rank = rank_, .round = round});
    for (float& value : x_) {
      value = static_cast<float>(2 * random.uniform() - 1);
    }
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t e = 0; e < kExperts; ++e) {
        scores_[t * kExperts + e] =
            x_[t * kWidth] * gate_[e] + x_[t * kWidth + 1] * gate_[kExperts + e];
      }
    }
    return exchange_.dispatch(x_, scores_);
  }

  sotto::Status forward() {
    exchange_.arrive();
    for (std::size_t e = 0; e < exchange_.own_experts(); ++e) {
      const float* const w = &experts_[e * kWidth * kWidth];
      const auto x = exchange_.rows(e);
      const auto y = exchange_.results(e);
      for (std::size_t i = 0; i < x.size(); i += kWidth) {
        y[i] = x[i] * w[0] + x[i + 1] * w[2];
        y[i + 1] = x[i] * w[1] + x[i + 1] * w[3];
      }
    }
    exchange_.combine();
    return {};
  }

  sotto::Status compare() {
    if (sotto::Status status = exchange_.finish(y_); !status.ok()) {
      return status;
    }
    loss_ = 0;
    for (std::size_t i = 0; i < y_.size(); ++i) {
      const float first = x_[i / kWidth * kWidth];
      const float error = y_[i] - (first > 0 ? x_[i] : -x_[i]);
      loss_ += static_cast<double>(error * error) / kTokens;
      // The loss is a mean over the tokens of all nodes.
      dy_[i] = 2 * error / static_cast<float>(kTokens * kNodes);
    }
    exchange_.dispatch_gradient(dy_);
    return {};
  }

  sotto::Status backward() {
    if (sotto::Status status = exchange_.arrive_gradient(); !status.ok()) {
      return status;
    }
    for (std::size_t e = 0; e < exchange_.own_experts(); ++e) {
      float* const w = &experts_[e * kWidth * kWidth];
      const auto x = exchange_.rows(e);
      const auto dy = exchange_.result_gradient(e);
      const auto dx = exchange_.row_gradient(e);
      std::vector<float> dw(kWidth * kWidth);
      for (std::size_t i = 0; i < x.size(); i += kWidth) {
        dx[i] = dy[i] * w[0] + dy[i + 1] * w[1];
        dx[i + 1] = dy[i] * w[2] + dy[i + 1] * w[3];
        dw[0] += x[i] * dy[i];
        dw[1] += x[i] * dy[i + 1];
        dw[2] += x[i + 1] * dy[i];
        dw[3] += x[i + 1] * dy[i + 1];
      }
      for (std::size_t k = 0; k < dw.size(); ++k) {
        w[k] -= kRate * dw[k];  // whole at its owner: nothing is averaged
      }
    }
    exchange_.combine_gradient();
    return {};
  }

  /// What the gate's all-reduce takes: this node's part, times the nodes of which it is a mean.
  sotto::Status gate_gradient() {
    if (sotto::Status status = exchange_.finish_gradient(dx_, dscores_); !status.ok()) {
      return status;
    }
    dgate_.assign(kWidth * kExperts, 0.0F);
    for (std::size_t t = 0; t < kTokens; ++t) {
      for (std::size_t e = 0; e < kExperts; ++e) {
        for (std::size_t i = 0; i < kWidth; ++i) {
          dgate_[i * kExperts + e] += kNodes * x_[t * kWidth + i] * dscores_[t * kExperts + e];
        }
      }
    }
    return {};
  }

  std::span<float> gate_;
  sotto::ExpertExchange exchange_;
  std::vector<float> experts_;
  sotto::Rank rank_;
  std::vector<sotto::ProgramStage> stages_;
  std::vector<float> x_ = std::vector<float>(kTokens * kWidth);
  std::vector<float> scores_ = std::vector<float>(kTokens * kExperts);
  std::vector<float> y_ = std::vector<float>(x_.size());
  std::vector<float> dy_ = std::vector<float>(x_.size());
  std::vector<float> dx_ = std::vector<float>(x_.size());
  std::vector<float> dscores_ = std::vector<float>(scores_.size());
  std::vector<float> dgate_;
  double loss_ = 0;
};

/// Trains one node. The mean loss of its last rounds is less than a fifth of that of its first.
bool train(sotto::Rank rank, const std::shared_ptr<sotto::Store>& store) {
  std::vector<float> gate(kWidth * kExperts);
  sotto::RandomStream random({.seed = 3});
  for (float& weight : gate) {
    weight = static_cast<float>(random.normal());
  }
  sotto::ProgramRun<Layer> run(
      {.rank = rank, .nodes = kNodes, .grid = "expert=4", .parameters = gate, .seed = 4},
      {.store = store}, {.axis = "expert", .step_rule = {.learning_rate = kRate}});
  constexpr int kRounds = 600;
  double first = 0;
  double last = 0;
  sotto::Status status;
  for (int round = 0; round < kRounds && status.ok(); ++round) {
    status = run.step();
    first += round < 20 ? run.program().loss() / 20 : 0;
    last += round >= kRounds - 20 ? run.program().loss() / 20 : 0;
  }
  status = status.ok() ? run.finish() : status;
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return false;
  }
  std::printf("node %d: loss %.3f, then %.3f; at most %llu bytes of rows a round\n", rank, first,
              last, static_cast<unsigned long long>(run.volume().all_sent().bytes));
  return last < first / 5;
}

}  // namespace

int main() {
  const std::shared_ptr<sotto::Store> store = sotto::make_memory_store();
  std::vector<char> learnt(kNodes);
  sotto::run_side_by_side(kNodes, "nodes", [&](std::size_t node) {
    learnt[node] = train(static_cast<sotto::Rank>(node), store);
  });
  return learnt == std::vector<char>(kNodes, true) ? 0 : 1;
}
