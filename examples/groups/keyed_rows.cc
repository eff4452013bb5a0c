// A network whose layers lie at two nodes: node 0 has the examples and the first layer, node 1 the
// targets and the last one. What goes between them are rows of activations, 4 bits an element once
// an example comes again, and gradients of 8 bits back.
//
// The nodes are threads here; for processes take another transport and store.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <vector>

#include <sotto/base/philox.h>
#include <sotto/base/start_threads.h>
#include <sotto/comm/stores.h>
#include <sotto/groups/keyed_link.h>
#include <sotto/groups/program.h>
#include <sotto/trainers/program_run.h>

namespace {

constexpr int kNodes = 2;
constexpr std::size_t kExamples = 64;
constexpr std::size_t kBatch = 16;  // examples of a round
constexpr std::size_t kWidth = 32;  // elements of a row between the nodes
constexpr float kRate = 0.1F;

/// Example `key`: a point between −1 and 1, whose sine is to be learnt.
float example(std::uint64_t key) {
  return 2 * static_cast<float>(key) / static_cast<float>(kExamples - 1) - 1;
}

class Half final : public sotto::Program {
 public:
  explicit Half(const sotto::ProgramNode& node)
      : w_(node.parameters()),
        link_(node.everyone(),
              {.from = 0, .to = 1, .width = kWidth, .rows = kBatch, .keys = kExamples}) {
    stages_ = {{"rows", [this](const auto& in) { return lower(in.round); }, &link_.carrying(0), 0},
               {"gradients", [this](const auto&) { return upper(); }, &link_.returning(0), 0},
               {"learn", [this](const auto&) { return learn(); }, nullptr, 0}};
  }
  std::span<const sotto::ProgramStage> stages() const override { return stages_; }
  const sotto::KeyedLink& link() const { return link_; }
  double loss() const { return loss_; }

 private:
  /// Node 0 sends tanh(x w + b), row by row. Both nodes know which examples are the round's.
  sotto::Status lower(sotto::Round round) {
    std::iota(keys_.begin(), keys_.end(), round * kBatch % kExamples);
    if (link_.receives()) {
      return link_.receive(0, keys_);
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const std::size_t unit = i % kWidth;
      rows_[i] = std::tanh(example(keys_[i / kWidth]) * w_[unit] + w_[kWidth + unit]);
    }
    return link_.send(0, keys_, rows_);
  }

  /// Node 1 makes a number of each row, compares it, and sends back what the rows should change.
  sotto::Status upper() {
    if (link_.sends()) {
      link_.receive_gradient(0);
      return {};
    }
    const std::span<const float> rows = link_.rows(0);
    std::vector<float> dw(kWidth);
    loss_ = 0;
    for (std::size_t row = 0; row < kBatch; ++row) {
      const float* const h = &rows[row * kWidth];
      const float y = std::inner_product(h, h + kWidth, w_.begin(), 0.0F);
      const float error = y - std::sin(3 * example(keys_[row]));
      loss_ += static_cast<double>(error * error) / kBatch;
      for (std::size_t unit = 0; unit < kWidth; ++unit) {
        rows_[row * kWidth + unit] = error * w_[unit] / kBatch;
        dw[unit] += error * h[unit] / kBatch;
      }
    }
    for (std::size_t unit = 0; unit < kWidth; ++unit) {
      w_[unit] -= kRate * dw[unit];
    }
    link_.send_gradient(0, rows_);
    return {};
  }

  /// Node 0 takes what came back for the gradient at the rows that it sent.
  sotto::Status learn() {
    if (link_.receives()) {
      return {};
    }
    const std::span<const float> gradient = link_.gradient(0);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const float d = kRate * gradient[i] * (1 - rows_[i] * rows_[i]);
      w_[i % kWidth] -= d * example(keys_[i / kWidth]);
      w_[kWidth + i % kWidth] -= d;
    }
    return {};
  }

  std::span<float> w_;
  sotto::KeyedLink link_;
  std::vector<sotto::ProgramStage> stages_;
  std::vector<std::uint64_t> keys_ = std::vector<std::uint64_t>(kBatch);
  std::vector<float> rows_ = std::vector<float>(kBatch * kWidth);
  double loss_ = 0;
};

/// Runs one node; node 1 says what was learnt.
bool train(sotto::Rank rank, const std::shared_ptr<sotto::Store>& store) {
  std::vector<float> weights(2 * kWidth);
  sotto::RandomStream random({.seed = 1, .rank = rank});
  for (float& weight : weights) {
    weight = static_cast<float>(random.normal()) * (rank == 0 ? 1.0F : 0.1F);
  }
  sotto::ProgramRun<Half> run(
      {.rank = rank, .nodes = kNodes, .grid = "stage=2", .parameters = weights, .seed = 1},
      {.store = store});
  sotto::Status status;
  for (int round = 0; round < 2000 && status.ok(); ++round) {
    status = run.step();
  }
  status = status.ok() ? run.finish() : status;
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return false;
  }
  const Half& half = run.program();
  if (rank == 0) {
    return true;
  }
  const sotto::KeyedLinkCounts counts = half.link().counts();
  std::printf(
      "loss %.4f; %llu rows came in full and %llu as changes, %llu bytes a batch of these\n",
      half.loss(), static_cast<unsigned long long>(counts.first),
      static_cast<unsigned long long>(counts.again),
      static_cast<unsigned long long>(half.link().volume_there(0, kBatch).bytes));
  return half.loss() < 0.02 && counts.first == kExamples;
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
