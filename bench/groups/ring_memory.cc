// What a node holds for a layer's attention round a ring, forward and back, against the number of
// nodes; beside what it would hold with all scores, as attention without blocks keeps them; and
// what travels, and how long that takes on a fast and on a slow network, in the simulator.
//
// One causal sequence, four heads, float32. Computation takes no time.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <sotto/groups/programs/ring_attention.h>

#include "bench/groups/star_run.h"
#include "bench/support/command_line.h"

namespace {

constexpr std::size_t kHeads = 4;
constexpr double kMegabyte = 1e6;

/// A layer of attention, forward and back, whose rows are void.
class Layer final : public sotto::Program {
 public:
  Layer(const sotto::ProgramNode& node, const sotto::RingAttentionOptions& options)
      : attention_(node, options) {
    for (std::vector<float>* rows : all()) {
      rows->resize(attention_.rows() * options.heads * options.width);
    }
    const sotto::AttentionInput in = {.q = q_, .k = k_, .v = v_};
    attention_.list_forward(in, out_, stages_);
    attention_.list_backward(in, out_, dout_, {.q = dq_, .k = dk_, .v = dv_}, stages_);
  }
  std::span<const sotto::ProgramStage> stages() const override { return stages_; }

  /// Bytes of queries, keys, values, outputs and the gradients at them.
  std::size_t row_bytes() const { return 8 * q_.size() * sizeof(float); }
  /// Bytes that the ring needs besides.
  std::size_t room_bytes() const { return attention_.room_bytes(); }

 private:
  std::vector<std::vector<float>*> all() {
    return {&q_, &k_, &v_, &out_, &dout_, &dq_, &dk_, &dv_};
  }

  sotto::RingAttention attention_;
  std::vector<float> q_, k_, v_, out_, dout_, dq_, dk_, dv_;
  std::vector<sotto::ProgramStage> stages_;
};

void measure(std::size_t positions, std::size_t width, int nodes) {
  const sotto::RingAttentionOptions options = {
      .positions = positions, .heads = kHeads, .width = width / kHeads, .exchanges_only = true};
  std::size_t rows = 0;
  std::size_t room = 0;
  const auto run = [&](const sotto::bench::Wire& wire) {
    return sotto::bench::run_on_star(
        nodes, "ring=" + std::to_string(nodes), wire,
        [&](const sotto::ProgramNode& node) -> std::unique_ptr<sotto::Program> {
          auto layer = std::make_unique<Layer>(node, options);
          rows = std::max(rows, layer->row_bytes());
          room = std::max(room, layer->room_bytes());
          return layer;
        });
  };
  const auto fast = run(sotto::bench::kFastWire);
  const auto slow = run(sotto::bench::kSlowWire);
  const double p = nodes;
  const double elements = static_cast<double>(positions * width);
  const double formula = nodes == 1 ? 0 : (4 * (p - 1) / p + 2) * elements;
  // A node's own queries see all positions.
  const double scores = 4.0 * static_cast<double>(positions * positions * kHeads) / p;
  std::printf(
      "| %zu, %zu | %d | %7.2f | %7.2f | %7.2f | %9.1f | %8.2f | %8.2f | %2d | %7.4f | %6.2f |\n",
      positions, width, nodes, static_cast<double>(rows) / kMegabyte,
      static_cast<double>(room) / kMegabyte, static_cast<double>(rows + room) / kMegabyte,
      scores / kMegabyte, formula * 4 / kMegabyte, fast.elements * 4 / kMegabyte, fast.phases,
      fast.seconds, slow.seconds);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What a node holds for attention round a ring, and what travels, in the simulator",
               "ring_memory");
  return sotto::bench::run_main(app, argc, argv, [] {
    std::printf(
        "| T, h | p | MB of rows | MB of the ring | MB held | MB of all scores "
        "| MB by formula | MB received | phases | s fast | s slow |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (const std::size_t positions : {4096U, 32768U}) {
      for (const int nodes : {1, 2, 4, 8, 16}) {
        measure(positions, 256, nodes);
      }
    }
    return sotto::console::kDone;
  });
}
