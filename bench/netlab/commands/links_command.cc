// `netlab links`: the three links on which decentralized and compressed training was published to
// win (Tang et al. 2018, arXiv:1803.06443), by formula, by the simulator and by the real program.
#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>
#include <sotto/study/units.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/prediction/calibration.h"
#include "bench/netlab/prediction/comparison.h"
#include "bench/netlab/prediction/comparison_report.h"
#include "bench/netlab/prediction/predicted_run.h"
#include "bench/netlab/prediction/scenario_text.h"
#include "commands.h"

namespace sotto::netlab {
namespace {

constexpr const char* kLinksExamples =
    "Examples:\n"
    "  netlab links\n"
    "  netlab links --transport gloo --json links.json\n"
    "Eight nodes, each with a connection of its own to its two neighbours, and a model of 1.09 MB. "
    "Times are of a round.";

constexpr int kLinksNodes = 8;
constexpr double kModelBytes = 1.09e6;
constexpr const char* kModel = "mlp:343";  // 272,695 parameters
constexpr double kLinksRunSeconds = 6;
constexpr std::uint64_t kLinksFewestRounds = 3;
constexpr std::uint64_t kLinksMostRounds = 60;
/// For the loss: all links alike, no time.
constexpr std::uint64_t kLossRounds = 200;
/// Losses that differ by less are called equal.
constexpr double kSameLoss = 0.05;

struct Link {
  double mbit_per_s = 0;
  double latency_ms = 0;
  std::string name() const {
    return mbit_per_s < 1000 ? fmt::format("{} Mbit/s, {} ms", mbit_per_s, latency_ms)
                             : fmt::format("{} Gbit/s, {} ms", mbit_per_s / 1000, latency_ms);
  }
};
constexpr std::array<Link, 3> kLinks = {{{5, 0.13}, {1400, 5}, {5, 5}}};

enum Method : std::size_t { allreduce, dpsgd, dcd, kMethods };
constexpr std::array<const char*, kMethods> kWords = {"allreduce", "dpsgd ring",
                                                      "dcd quant:8 ring"};

/// The α–β model of a round: latencies, and bytes over the host's bandwidth.
double formula(const Link& link, Method method) {
  const double second_per_byte = 8 / (1e6 * link.mbit_per_s);
  const double alpha = link.latency_ms / 1000;
  switch (method) {
    case allreduce:
      return 2 * (kLinksNodes - 1) * (alpha + kModelBytes / kLinksNodes * second_per_byte);
    case dpsgd:
      return alpha + 2 * kModelBytes * second_per_byte;
    default:
      return alpha + 2 * kModelBytes / 4 * second_per_byte;
  }
}

struct Times {
  double formula = 0;
  double predicted = 0;
  double measured = 0;
};
/// Times by link, then by method.
using AllTimes = std::array<std::array<Times, kMethods>, kLinks.size()>;

MadeScenario made_for(const Link& link, Method method, std::uint64_t rounds) {
  return {.title = link.name(),
          .words = kWords[method],
          .nodes = kLinksNodes,
          .mbit_per_s = link.mbit_per_s,
          .latency_ms = link.latency_ms,
          .gradient = "1 ms",
          .model = kModel,
          .batch = 1,
          .rounds = rounds};
}

/// Which of the claim's sentences hold, by the times of a round.
struct Claim {
  std::string sentence;
  bool predicted = false;
  bool measured = false;
};

std::vector<Claim> claims_of(const AllTimes& times) {
  std::vector<Claim> claims;
  const auto add = [&](const std::string& sentence, const auto& holds) {
    claims.push_back(
        {sentence,
         holds([&](std::size_t link, Method method) { return times[link][method].predicted; }),
         holds([&](std::size_t link, Method method) { return times[link][method].measured; })});
  };
  add("with high latency decentralization wins at either precision",
      [](const auto& t) { return t(1, dpsgd) < t(1, allreduce) && t(1, dcd) < t(1, allreduce); });
  add("with low bandwidth low precision wins",
      [](const auto& t) { return t(0, dcd) < t(0, allreduce) && t(0, dcd) < t(0, dpsgd); });
  add("with both only decentralized and compressed wins", [](const auto& t) {
    return t(2, dcd) < t(2, allreduce) && t(2, dpsgd) > t(2, dcd) && t(2, dpsgd) > t(2, allreduce);
  });
  return claims;
}

/// Loss after the same number of rounds, by method; the models do not depend on the network.
Result<std::array<double, kMethods>> losses() {
  std::array<double, kMethods> found = {};
  for (const Method method : {allreduce, dpsgd, dcd}) {
    MadeScenario made = made_for(kLinks[1], method, kLossRounds);
    made.batch = 32;
    const auto run = predicted_run(scenario_from(made.text()), made.words);
    if (!run.ok()) {
      return run.status();
    }
    found[method] = run->final->mean.loss;
  }
  return found;
}

std::uint64_t rounds_for(const Link& link, Method method) {
  const auto rounds = static_cast<std::uint64_t>(kLinksRunSeconds / formula(link, method));
  return std::clamp(rounds, kLinksFewestRounds, kLinksMostRounds);
}

class LinksStudy {
 public:
  LinksStudy(std::string transport, const Calibration& calibration, const RealProgram& program)
      : transport_(std::move(transport)), calibration_(calibration), program_(program) {}

  /// False when a run could not be done.
  bool run() {
    for (std::size_t link = 0; link < kLinks.size(); ++link) {
      for (const Method method : {allreduce, dpsgd, dcd}) {
        if (*program_.stop || !run_one(link, method)) {
          return false;
        }
      }
    }
    return true;
  }

  void show(const console::Output& output) const {
    output.line(fmt::format("\nover {}: by formula / predicted / measured", transport_));
    std::vector<std::vector<std::string>> rows;
    for (std::size_t link = 0; link < kLinks.size(); ++link) {
      std::vector<std::string> row = {kLinks[link].name()};
      for (const Times& times : times_[link]) {
        row.push_back(fmt::format("{} / {} / {}", study::duration_text(times.formula),
                                  study::duration_text(times.predicted),
                                  study::duration_text(times.measured)));
      }
      rows.push_back(row);
    }
    output.table({"link", kWords[allreduce], kWords[dpsgd], kWords[dcd]}, rows);
    for (const Claim& claim : claims_of(times_)) {
      output.line(fmt::format("{}: {} predicted, {} measured", claim.sentence,
                              claim.predicted ? "as" : "NOT as", claim.measured ? "as" : "NOT as"));
    }
  }

  /// What was claimed is so, predicted and measured.
  bool holds() const {
    const auto claims = claims_of(times_);
    return std::all_of(claims.begin(), claims.end(),
                       [](const Claim& claim) { return claim.predicted && claim.measured; });
  }

  Json json() const {
    Json claims = Json::array();
    for (const Claim& claim : claims_of(times_)) {
      claims.push_back({{"claim", claim.sentence},
                        {"predicted", claim.predicted},
                        {"measured", claim.measured}});
    }
    return {{"transport", transport_}, {"runs", runs_}, {"claims", claims}};
  }

 private:
  bool run_one(std::size_t link, Method method) {
    const MadeScenario made = made_for(kLinks[link], method, rounds_for(kLinks[link], method));
    const Comparison found =
        compare(calibrated(scenario_from(made.text()), calibration_, transport_), made.words,
                transport_, program_);
    runs_.push_back(comparison_json(found));
    if (!found.ok()) {
      (void)failed(
          fmt::format("{}, {}, {}: {}", made.title, made.words, transport_, found.failure));
      return false;
    }
    const auto rounds = static_cast<double>(found.rounds);
    times_[link][method] = {formula(kLinks[link], method), found.predicted_s / rounds,
                            found.measured_s / rounds};
    return true;
  }

  std::string transport_;
  const Calibration& calibration_;
  const RealProgram& program_;
  AllTimes times_ = {};
  Json runs_ = Json::array();
};

/// Says whether the loss is all-reduce's.
bool show_losses(const std::array<double, kMethods>& loss, const console::Output& output) {
  bool same = true;
  for (const Method method : {dpsgd, dcd}) {
    same = same && loss[method] <= loss[allreduce] * (1 + kSameLoss);
  }
  output.line(fmt::format(
      "\nthe loss after {} rounds is that of full-precision all-reduce: {} ({:.4f}; D-PSGD {:.4f}, "
      "DCD with 8 bits {:.4f})",
      kLossRounds, same ? "it is, within 5 %" : "it is NOT", loss[allreduce], loss[dpsgd],
      loss[dcd]));
  return same;
}

int run(const CommandOptions& request) {
  const console::Output output(request.common);
  console::catch_stop_signals();
  const RealProgram program = request.real_program();
  const auto calibration = calibrate(request.transports(), program);
  const auto loss = losses();
  if (!calibration.ok() || !loss.ok()) {
    return failed((calibration.ok() ? loss.status() : calibration.status()).message());
  }
  Json all = Json::array();
  bool holds = true;
  for (const std::string& transport : request.transports()) {
    LinksStudy study(transport, *calibration, program);
    if (!study.run()) {
      return console::kFailed;
    }
    study.show(output);
    all.push_back(study.json());
    holds = holds && study.holds();
  }
  const bool same = show_losses(*loss, output);
  output.json({{"sotto", SOTTO_VERSION},
               {"calibration", calibration_json(*calibration)},
               {"transports", all},
               {"loss",
                {{"allreduce", (*loss)[allreduce]},
                 {"dpsgd", (*loss)[dpsgd]},
                 {"dcd", (*loss)[dcd]},
                 {"same", same}}}});
  return holds && same ? console::kDone : console::kFailed;
}

}  // namespace

console::Command add_links_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<CommandOptions>();
  request->program = program;
  CLI::App* command = netlab.add_subcommand(
      "links", "The three links of the published claim: by formula, predicted and measured");
  add_command_options(*command, *request);
  command->footer(kLinksExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::netlab
