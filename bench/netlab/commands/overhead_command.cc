// `netlab overhead`: what a round of DCD-PSGD at 8 bits costs beside what no program can save. With
// gradients longer than the wire that is the gradient; with a wire longer than gradients it is the
// wire: bytes / bandwidth + latency.
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/prediction/comparison.h"
#include "bench/netlab/prediction/scenario_text.h"
#include "bench/support/statistics.h"
#include "commands.h"

namespace sotto::netlab {
namespace {

constexpr const char* kOverheadExamples =
    "Examples:\n"
    "  netlab overhead --repeats 5 --json overhead.json\n"
    "  netlab overhead --transport zmq --nodes 4\n"
    "A model of a million parameters over 100 Mbit/s and 10 ms one way. By default two nodes: a "
    "core for each, as real nodes have.";

constexpr const char* kOverheadRun = "dcd quant:8 ring";
constexpr const char* kOverheadModel = "mlp:1258";  // 1,000,120 parameters
constexpr double kOverheadMbit = 100;
constexpr double kOverheadLatencyMs = 10;
constexpr std::uint64_t kOverheadRounds = 20;

struct OverheadRequest {
  CommandOptions options;
  int nodes = 2;
  int repeats = 3;
};

/// One of the two questions.
struct Question {
  const char* name;
  const char* gradient;
  bool wire;  ///< the limit is the wire's, else the gradient's
};
constexpr Question kQuestions[] = {{"gradient of 300 ms", "300 ms", false},
                                   {"gradient of 20 ms", "20 ms", true}};

struct Answer {
  std::string transport;
  const Question* question = nullptr;
  std::vector<double> round_s;
  std::vector<double> limit_s;

  std::vector<double> ratios() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < round_s.size(); ++i) {
      all.push_back(round_s[i] / limit_s[i]);
    }
    return all;
  }
};

Result<Comparison> measure_run(const OverheadRequest& request, const std::string& words,
                               const Answer& answer, const RealProgram& program) {
  const MadeScenario made = {.title = answer.question->name,
                             .words = words,
                             .nodes = request.nodes,
                             .mbit_per_s = kOverheadMbit,
                             .latency_ms = kOverheadLatencyMs,
                             .gradient = answer.question->gradient,
                             .model = kOverheadModel,
                             .batch = 1,
                             .rounds = kOverheadRounds};
  Comparison found = compare(scenario_from(made.text()), words, answer.transport, program);
  if (!found.ok()) {
    return Status(Fault::unexpected, fmt::format("{} over {}: {}", answer.question->name,
                                                 answer.transport, found.failure));
  }
  return found;
}

/// The frames of the busiest link, one way: on a ring each node sends to two neighbours at most.
double wire_s(const Comparison& found) {
  const double bytes = found.frame_bytes / found.nodes / static_cast<double>(found.rounds);
  return bytes * 8 / (kOverheadMbit * 1e6) + kOverheadLatencyMs / 1e3;
}

Status ask(const OverheadRequest& request, Answer& answer, const RealProgram& program) {
  const auto exchanging = measure_run(request, kOverheadRun, answer, program);
  if (!exchanging.ok()) {
    return exchanging.status();
  }
  double limit = wire_s(*exchanging);
  if (!answer.question->wire) {
    // The reference runs this program with these gradients, and its first exchange would come after
    // its end.
    const std::string words =
        fmt::format("{} communication-interval={}", kOverheadRun, kOverheadRounds + 1);
    const auto alone = measure_run(request, words, answer, program);
    if (!alone.ok()) {
      return alone.status();
    }
    limit = alone->measured_s / static_cast<double>(kOverheadRounds);
  }
  answer.round_s.push_back(exchanging->measured_s / static_cast<double>(kOverheadRounds));
  answer.limit_s.push_back(limit);
  return {};
}

std::string milliseconds(const std::vector<double>& seconds) {
  return fmt::format("{:.1f} ms", 1e3 * bench::quantile(seconds, 0.5));
}

void show(const std::vector<Answer>& answers, const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  for (const Answer& answer : answers) {
    const auto ratios = answer.ratios();
    rows.push_back(
        {answer.question->name, answer.transport, milliseconds(answer.round_s),
         fmt::format("{} {}", milliseconds(answer.limit_s),
                     answer.question->wire ? "on the wire" : "alone"),
         fmt::format("{:.3f} ×", bench::quantile(ratios, 0.5)),
         fmt::format("{:.3f} … {:.3f}", bench::quantile(ratios, 0), bench::quantile(ratios, 1))});
  }
  output.table({"run", "transport", "a round", "limit", "over the limit", "range"}, rows);
}

Json json_of(const std::vector<Answer>& answers) {
  Json all = Json::array();
  for (const Answer& answer : answers) {
    const auto ratios = answer.ratios();
    all.push_back({{"gradient", answer.question->gradient},
                   {"limit", answer.question->wire ? "wire" : "gradient"},
                   {"transport", answer.transport},
                   {"round_s", answer.round_s},
                   {"limit_s", answer.limit_s},
                   {"ratio", bench::spread_json(bench::spread_of(ratios))}});
  }
  return all;
}

int run_overhead(const OverheadRequest& request) {
  const console::Output output(request.options.common);
  if (request.nodes < 2 || request.nodes > 64) {
    refuse("--nodes", fmt::to_string(request.nodes), "it must be 2 to 64");
  }
  if (request.repeats < 1) {
    refuse("--repeats", fmt::to_string(request.repeats), "at least one is needed");
  }
  console::catch_stop_signals();
  const RealProgram program = request.options.real_program();
  std::vector<Answer> answers;
  for (const std::string& transport : request.options.transports()) {
    for (const Question& question : kQuestions) {
      answers.push_back(
          {.transport = transport, .question = &question, .round_s = {}, .limit_s = {}});
    }
  }
  for (int repeat = 0; repeat < request.repeats; ++repeat) {
    for (Answer& answer : answers) {
      if (Status status = ask(request, answer, program); !status.ok()) {
        return failed(status.message());
      }
    }
  }
  show(answers, output);
  output.json({{"sotto", SOTTO_VERSION},
               {"run", kOverheadRun},
               {"nodes", request.nodes},
               {"bandwidth_bit_per_s", kOverheadMbit * 1e6},
               {"latency_s", kOverheadLatencyMs / 1e3},
               {"answers", json_of(answers)}});
  return console::kDone;
}

}  // namespace

console::Command add_overhead_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<OverheadRequest>();
  request->options.program = program;
  CLI::App* command =
      netlab.add_subcommand("overhead", "A round beside its gradient alone, or its wire alone");
  add_command_options(*command, request->options);
  console::OptionGroup group(*command, "What is measured");
  group.count("--nodes", request->nodes, "N", "Nodes on a ring, 2 to 64");
  group.count("--repeats", request->repeats, "N", "Runs of each; medians and ranges are shown");
  command->footer(kOverheadExamples);
  return {command, [request] { return run_overhead(*request); }};
}

}  // namespace sotto::netlab
