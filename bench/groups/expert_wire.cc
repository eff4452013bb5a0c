// What a layer of experts costs on a slow network, beside what it costs to average these experts
// over all nodes: bytes and virtual time of a step, in the simulator.
//
// Four nodes at a switch, 20 Mbit/s out and in, 25 ms from node to node; E = 8 experts of 8 h²
// parameters, h = 64, k = 1. Computation takes no time. Both ways give the same gradients, but for
// the tokens beyond the capacity and for what few bits lose.
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <sotto/base/philox.h>
#include <sotto/groups/program.h>
#include <sotto/groups/programs/expert_exchange.h>
#include <sotto/groups/vector_collective.h>
#include <sotto/sim/simulator.h>

#include "bench/support/command_line.h"

namespace {

constexpr int kNodes = 4;
constexpr std::size_t kExperts = 8;
constexpr std::size_t kWidth = 64;
constexpr sotto::Round kRounds = 3;

/// Tokens go to experts that give them back, and gradients follow.
class Exchange final : public sotto::Program {
 public:
  Exchange(const sotto::ProgramNode& node, std::size_t tokens, const std::string& compressor)
      : rank_(node.rank()),
        exchange_(node.member("expert"), {.experts = kExperts,
                                          .width = kWidth,
                                          .tokens = tokens,
                                          .compressor = compressor,
                                          .gradient_compressor = compressor}),
        rows_(tokens * kWidth),
        scores_(tokens * kExperts),
        score_gradient_(scores_.size()) {
    stages_ = {
        {"tokens", [this](const auto& in) { return send(in.round); }, &exchange_.dispatching(), 0},
        {"experts", [this](const auto&) { return answer(); }, &exchange_.combining(), 0},
        {"loss", [this](const auto&) { return turn(); }, &exchange_.dispatching_gradient(), 0},
        {"learn", [this](const auto&) { return answer_gradient(); },
         &exchange_.combining_gradient(), 0},
        {"end", [this](const auto&) { return exchange_.finish_gradient(rows_, score_gradient_); },
         nullptr, 0}};
  }
  std::span<const sotto::ProgramStage> stages() const override { return stages_; }

 private:
  sotto::Status send(sotto::Round round) {
    sotto::RandomStream random({.seed = 1, .rank = rank_, .round = round});
    for (float& value : rows_) {
      value = static_cast<float>(random.normal());
    }
    for (float& value : scores_) {
      value = static_cast<float>(random.normal());
    }
    return exchange_.dispatch(rows_, scores_);
  }
  sotto::Status answer() {
    exchange_.arrive();
    for (std::size_t e = 0; e < exchange_.own_experts(); ++e) {
      sotto::host_ops().copy(exchange_.rows(e), exchange_.results(e));
    }
    exchange_.combine();
    return {};
  }
  sotto::Status turn() {
    if (sotto::Status status = exchange_.finish(rows_); !status.ok()) {
      return status;
    }
    exchange_.dispatch_gradient(rows_);
    return {};
  }
  sotto::Status answer_gradient() {
    if (sotto::Status status = exchange_.arrive_gradient(); !status.ok()) {
      return status;
    }
    for (std::size_t e = 0; e < exchange_.own_experts(); ++e) {
      sotto::host_ops().copy(exchange_.result_gradient(e), exchange_.row_gradient(e));
    }
    exchange_.combine_gradient();
    return {};
  }

  sotto::Rank rank_;
  sotto::ExpertExchange exchange_;
  std::vector<float> rows_;
  std::vector<float> scores_;
  std::vector<float> score_gradient_;
  std::vector<sotto::ProgramStage> stages_;
};

/// Every node has all experts, whose gradients are summed.
class Average final : public sotto::Program {
 public:
  Average(const sotto::ProgramNode& node, const std::string& compressor)
      : gradient_(8 * kWidth * kWidth * kExperts, 1.0F),
        sum_(sotto::make_all_reduce(node.everyone(), {.elements = gradient_.size(),
                                                      .encoding = {.compressor = compressor}})) {
    stages_ = {{"sum",
                [this](const auto&) {
                  sum_->begin(gradient_);
                  return sotto::Status();
                },
                sum_.get(), 0}};
  }
  std::span<const sotto::ProgramStage> stages() const override { return stages_; }

 private:
  std::vector<float> gradient_;
  std::unique_ptr<sotto::VectorCollective> sum_;
  std::vector<sotto::ProgramStage> stages_;
};

/// Prints a row: bytes that a node sends in a round on average, and seconds of a round.
bool measure(const char* what, const sotto::BuildProgram& build) {
  std::vector<float> x(1);
  std::vector<std::unique_ptr<sotto::Algorithm>> nodes;
  nodes.reserve(kNodes);
  for (sotto::Rank rank = 0; rank < kNodes; ++rank) {
    nodes.push_back(std::make_unique<sotto::ProgramAlgorithm>(
        sotto::ProgramSetup{
            .rank = rank, .nodes = kNodes, .grid = "expert=4", .parameters = x, .seed = 1},
        build));
  }
  double bytes = 0;
  sotto::SimulatorHooks hooks;
  hooks.trace = [&bytes](const sotto::TraceEntry& entry) {
    bytes += entry.kind == sotto::TraceEntry::Kind::sent ? static_cast<double>(entry.bytes) : 0;
  };
  const sotto::Platform star = sotto::make_star(kNodes, 20e6 / 8, sotto::from_seconds(0.025));
  sotto::Simulator simulator(
      star, {.rounds = kRounds}, std::move(nodes),
      [](sotto::Rank, sotto::Round, std::span<const float>, std::span<float> g) { g[0] = 0; },
      std::move(hooks));
  const sotto::SimulationReport report = simulator.run();
  for (const sotto::NodeReport& node : report.nodes) {
    if (!node.status.ok()) {
      std::fprintf(stderr, "%s\n", node.status.message().c_str());
      return false;
    }
  }
  std::printf("| %-24s | %8.3f | %7.2f |\n", what, bytes / 1e6 / (kNodes * kRounds),
              sotto::to_seconds(report.nodes[0].end) / kRounds);
  return true;
}

/// Whether all could be measured.
bool measure_all() {
  std::printf("| %-24s | %8s | %7s |\n| --- | ---: | ---: |\n", "way", "MB", "seconds");
  bool ok = true;
  for (const char* compressor : {"none", "quant:8"}) {
    ok = measure((std::string("average, ") + compressor).c_str(),
                 [compressor](const sotto::ProgramNode& node) {
                   return std::make_unique<Average>(node, compressor);
                 }) &&
         ok;
  }
  for (const std::size_t tokens : {64U, 512U, 2048U, 8192U}) {
    for (const char* compressor : {"none", "quant:8"}) {
      ok = measure((std::to_string(tokens) + " tokens, " + compressor).c_str(),
                   [tokens, compressor](const sotto::ProgramNode& node) {
                     return std::make_unique<Exchange>(node, tokens, compressor);
                   }) &&
           ok;
    }
  }
  return ok;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a layer of experts costs on a slow network, in the simulator", "expert_wire");
  return sotto::bench::run_main(app, argc, argv, [] {
    return measure_all() ? sotto::console::kDone : sotto::console::kFailed;
  });
}
