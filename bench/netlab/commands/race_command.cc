// `netlab race`: how long a round takes, of sotto and of others, on one network in one run.
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/console/option_group.h>
#include <sotto/console/signals.h>
#include <sotto/study/json/figures.h>
#include <sotto/study/units.h>

#include "bench/netlab/command_options.h"
#include "bench/netlab/contest/contest.h"
#include "commands.h"
#include "race_plot.h"

namespace sotto::netlab {
namespace {

constexpr const char* kRaceExamples =
    "Examples:\n"
    "  netlab race --json race.json --plot race.svg\n"
    "  netlab race --elements 1000000 --elements 10000000 --rounds 4 --repeats 5\n"
    "  netlab race --only 'choco sign' --only 'gloo ring' --repeats 5\n"
    "  netlab race --loopback --hosts 2 --only sotto --only gloo\n"
    "A ratio is how many times as fast a contender is as the fastest full-precision all-reduce of "
    "the same repeat: of Gloo's own collectives, or of all programs but sotto. What cannot run or "
    "fails is a row that says why; where all do, the exit status is 1.";

const std::vector<Baseline> kGloo = {Baseline::gloo};
const std::vector<Baseline> kAllPeers = {Baseline::gloo, Baseline::others};

struct RaceRequest {
  ContestRequest contest;
  std::vector<std::uint64_t> elements = {1'000'000};
  int rounds = 10;
  std::string plot;
};

/// All repeats with one model.
struct Race {
  int hidden = 0;
  std::vector<ContenderResult> results;
};

Race run_size(const RaceRequest& request, const Contest& contest, std::uint64_t elements) {
  Race race = {.hidden = hidden_for(elements), .results = contest.blank_results()};
  const auto ask = [&](const Contender& contender) {
    return JobRequest{.hidden = race.hidden,
                      .rounds = rounds_of(contender, request.rounds),
                      .seed = request.contest.options.common.seed,
                      .training = std::nullopt};
  };
  const auto take = [&](ContenderResult& one, const JobEnd& end) -> Result<std::optional<double>> {
    const auto timed = timed_run_from(end.output);
    if (!timed.ok()) {
      return timed.status();
    }
    one.bytes = timed->bytes;
    if (contest.testbed().emulated()) {
      one.wire = static_cast<double>(end.carried) / contest.testbed().hosts() /
                 rounds_of(one.contender, request.rounds);
    }
    return std::optional(timed->round_s);
  };
  for (std::uint64_t repeat = 1; repeat <= request.contest.repeats; ++repeat) {
    contest.repetition(race.results, ask, take,
                       fmt::format("{} elements, repeat {}/{}", elements_of(race.hidden), repeat,
                                   request.contest.repeats));
  }
  return race;
}

std::string amount_or_none(const std::optional<double>& bytes) {
  return bytes ? study::amount(*bytes) : "–";
}

void show(const Race& race, const console::Output& output) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(race.results.size());
  for (const ContenderResult& one : race.results) {
    const bench::MedianSpread spread = one.spread();
    rows.push_back({std::string(one.contender.name),
                    std::isfinite(spread.median) ? study::duration_text(spread.median) : "–",
                    spread_text(spread), amount_or_none(one.bytes), amount_or_none(one.wire),
                    ratio_text(speedups(one, race.results, kGloo)),
                    ratio_text(speedups(one, race.results, kAllPeers)), one.failure()});
  }
  output.line(fmt::format("\n{} elements", elements_of(race.hidden)));
  output.table({"contender", "a round", "range", "frames/node", "wire/node", "Gloo's best",
                "all peers' best", ""},
               rows);
  for (const auto& [who, baselines] :
       {std::pair{"Gloo's best", kGloo}, std::pair{"all peers' best", kAllPeers}}) {
    const ContenderResult* best = best_of(race.results, baselines);
    output.line(fmt::format("{} full-precision all-reduce: {}", who,
                            best != nullptr ? best->contender.name : "none ran"));
  }
}

Json json_of(const Race& race) {
  Json contenders = Json::array();
  for (const ContenderResult& one : race.results) {
    const auto ratio = [&](const std::vector<Baseline>& baselines) {
      return bench::spread_json(bench::spread_of(speedups(one, race.results, baselines)));
    };
    contenders.push_back({{"name", one.contender.name},
                          {"round_s", bench::spread_json(one.spread())},
                          {"bytes_per_node", study::or_null(one.bytes)},
                          {"wire_bytes_per_node", study::or_null(one.wire)},
                          {"ratio_to_gloo", ratio(kGloo)},
                          {"ratio_to_all", ratio(kAllPeers)},
                          {"failure", one.failure().empty() ? Json() : Json(one.failure())}});
  }
  const auto name_of = [&](const std::vector<Baseline>& baselines) {
    const ContenderResult* best = best_of(race.results, baselines);
    return best != nullptr ? Json(best->contender.name) : Json();
  };
  return {{"elements", elements_of(race.hidden)},
          {"best_of_gloo", name_of(kGloo)},
          {"best_of_all", name_of(kAllPeers)},
          {"contenders", contenders}};
}

/// Bars of the ratio to Gloo's best, a group a contender and one a size.
std::string plot_of(const std::vector<Race>& races, const std::string& where) {
  BarPlot plot = {.title = "times as fast as Gloo's best full-precision all-reduce: " + where};
  for (const Race& race : races) {
    plot.series.push_back(fmt::format("{} elements", elements_of(race.hidden)));
  }
  for (std::size_t i = 0; i < races.front().results.size(); ++i) {
    BarGroup group = {.name = std::string(races.front().results[i].contender.name), .bars = {}};
    for (const Race& race : races) {
      group.bars.push_back(bench::spread_of(speedups(race.results[i], race.results, kGloo)));
    }
    plot.groups.push_back(std::move(group));
  }
  return draw_bars(plot);
}

int run(const RaceRequest& request) {
  const console::Output output(request.contest.options.common);
  check_writable("--plot", request.plot);
  console::catch_stop_signals();
  if (request.rounds < 1) {
    refuse("--rounds", fmt::to_string(request.rounds), "at least one is needed");
  }
  const Contest contest(request.contest, choose(step_contenders(), request.contest.only));
  const Json links = contest.links();
  output.line(contest.testbed().text());
  std::vector<Race> races;
  std::string fault;
  Json sizes = Json::array();
  races.reserve(request.elements.size());
  for (const std::uint64_t elements : request.elements) {
    races.push_back(run_size(request, contest, elements));
    if (console::stop_requested()) {
      return console::kFailed;
    }
    show(races.back(), output);
    fault = fault.empty() ? failure_of_all(races.back().results) : fault;
    sizes.push_back(json_of(races.back()));
  }
  if (!request.plot.empty()) {
    write_result_file("--plot", request.plot, plot_of(races, contest.testbed().text()));
  }
  output.json({{"sotto", SOTTO_VERSION},
               {"network", contest.testbed().json()},
               {"links", links},
               {"rounds", request.rounds},
               {"repeats", request.contest.repeats},
               {"sizes", sizes}});
  return fault.empty() ? console::kDone : failed(fault);
}

}  // namespace

console::Command add_race_command(CLI::App& netlab, const std::string& program) {
  auto request = std::make_shared<RaceRequest>();
  request->contest.options.program = program;
  CLI::App* command = netlab.add_subcommand(
      "race", "The time of a round, beside Gloo's collectives, Open MPI and PyTorch");
  console::OptionGroup group(*command, "What is raced");
  command
      ->add_option("--elements", request->elements,
                   "Length of the model, or the next one that a perceptron has; may be repeated")
      ->type_name("D")
      ->group("What is raced")
      ->check(console::whole_number(200'000'000))
      ->expected(1)
      ->take_all()
      ->capture_default_str();
  group.count("--rounds", request->rounds, "N",
              "Rounds of a full-precision all-reduce; faster contenders take more, up to 20 times "
              "as many");
  group.option("--plot", request->plot, "FILE.svg", "Draw the ratios as bars");
  add_contest_options(*command, request->contest, "'gloo ring', 'sotto', 'fp16', …");
  command->remove_option(command->get_option("--program"));  // sotto_peer races
  command->footer(kRaceExamples);
  return {command, [request] { return run(*request); }};
}

}  // namespace sotto::netlab
