// `sotto plan`: which algorithm, how many bits and which graph are there first on a network.
//
// plan_search.h finds the runs, plan_verdict.h concludes; here they are shown. The same scenario
// gives the same answer, but for measured codec speeds.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/base/result_file.h>
#include <sotto/console/flag_spelling.h>
#include <sotto/console/option_group.h>
#include <sotto/console/output.h>
#include <sotto/console/signals.h>
#include <sotto/study/interruption.h>
#include <sotto/study/json/finished_run.h>
#include <sotto/study/json/search.h>
#include <sotto/study/json/strategies.h>
#include <sotto/study/plan/plan_search.h>
#include <sotto/study/plan/plan_verdict.h>
#include <sotto/study/scenario/scenario.h>
#include <sotto/study/scenario/validated_range.h>
#include <sotto/study/strategies/strategy_prices.h>
#include <sotto/study/study_settings.h>
#include <sotto/study/units.h>

#include "commands.h"
#include "runs/quality.h"
#include "runs/run_table.h"
#include "simulate/simulation_page.h"
#include "simulate/simulation_progress.h"

namespace sotto::cli {
namespace {

constexpr const char* kPlanExamples =
    "Examples:\n"
    "  sotto plan examples/scenarios/ocean.toml\n"
    "  sotto plan examples/scenarios/ocean.toml --compressor quant:8 --compressor sign --codec "
    "none\n"
    "  sotto plan measured.toml --html plan.html     after `sotto bench exchange --scenario "
    "measured.toml`";

struct PlanOptions {
  console::CommonOptions common;
  study::PlanSettings what;
  std::string html;
};

/// What is to be known of the runs in the table.
void add_notes(RunTable& table, const study::PlanSearch& search,
               const std::vector<study::PlannedRun>& runs) {
  if (search.interrupted()) {
    table.add_note("interrupted: only runs that had ended by then are ranked, with the first seed");
  }
  for (const std::string& line : study::outside_validated_range(search.scenario())) {
    table.add_note(line);
  }
  if (search.ranking().goal == study::Goal::epoch) {
    table.add_note(
        search.ranking().money
            ? "ranked by the money for a pass over the data, whatever the loss: the scenario has "
              "no [target]"
            : "ranked by the time for a pass over the data, whatever the loss: the scenario has no "
              "[target]");
  }
  if (const auto& attack = search.scenario().attack) {
    table.add_note(fmt::format("{}: only robust runs are considered, which send all bits",
                               attack_text(*attack)));
  }
  if (search.ranking().goal == study::Goal::target && search.by_worst()) {
    table.add_note("ranked by when the worst node's own model reaches the target");
  }
  for (const study::PlannedGraph& graph : search.graphs()) {
    if (graph.label != graph.spec &&
        std::any_of(runs.begin(), runs.end(), [&](const study::PlannedRun& run) {
          return run.candidate.graph == graph.spec;
        })) {
      table.add_note(fmt::format("{}: {}", graph.label, graph.spec));
    }
  }
  const study::Scenario& scenario = search.scenario();
  if (!(scenario.events.empty() && scenario.partitions.empty() && scenario.changes.empty() &&
        scenario.trunk_changes.empty() && scenario.availability.empty())) {
    table.add_note("predictions are for the network of time 0, simulations for its events too");
  }
  if (scenario.has_traces()) {
    table.add_note("predictions are for the means of traces, simulations for the traces");
  }
}

std::vector<study::RepeatedRun> as_repeated(const std::vector<study::PlannedRun>& runs) {
  std::vector<study::RepeatedRun> repeated;
  repeated.reserve(runs.size());
  for (const study::PlannedRun& run : runs) {
    repeated.push_back({.words = run.label,
                        .rounds = run.simulated.result.rounds,
                        .results = {finished_run(run.simulated.result)}});
  }
  return repeated;
}

std::vector<RunPicture> pictures_of(const std::vector<study::PlannedRun>& runs) {
  std::vector<RunPicture> pictures;
  pictures.reserve(runs.size());
  for (const study::PlannedRun& run : runs) {
    pictures.push_back({run.label, &run.simulated});
  }
  return pictures;
}

/// "71.4 MB", "71.4 MB, 60 MB in groups"
std::string sent_text(const study::SimulationResult& result) {
  const auto within = result.bytes_within_groups_per_node();
  const std::string all = study::amount(result.bytes_per_node());
  return within ? fmt::format("{}, {} in groups", all, study::amount(*within)) : all;
}

RunTable table_of(const study::PlanSearch& search, const std::vector<study::PlannedRun>& runs) {
  const study::Quality& quality = quality_among(as_repeated(runs));
  RunTable table = {{"run", "predicted s/round", "simulated s/round", "error", "to target",
                     quality.heading, "worst node", "sent/node"},
                    {},
                    {}};
  for (const study::PlannedRun& run : runs) {
    const auto& last = run.simulated.result.final;
    const auto share = [&](std::optional<double> value) {
      return value ? quality_text(quality, *value) : "–";
    };
    const auto simulated = run.simulated_seconds_per_round();
    const auto error = run.error();
    table.rows.push_back({run.label,
                          fmt::format("{:.4g}", run.candidate.predicted_seconds_per_round),
                          simulated ? fmt::format("{:.4g}", *simulated) : "ended early",
                          error ? fmt::format("{:+.1f} %", 100 * *error) : "–",
                          figure_text(run, {study::Goal::target}),
                          share(last ? std::optional(quality_of(last->mean)) : std::nullopt),
                          share(last && last->own ? std::optional(last->own->worst) : std::nullopt),
                          sent_text(run.simulated.result)});
  }
  if (search.scenario().costs) {
    const bool target = search.ranking().goal == study::Goal::target;
    const study::Ranking money = {.goal = search.ranking().goal,
                                  .money = true,
                                  .currency = search.scenario().costs->currency};
    table.titles.emplace_back(target ? "cost to target" : "cost a round");
    for (std::size_t i = 0; i < runs.size(); ++i) {
      table.rows[i].push_back(figure_text(runs[i], money));
    }
  }
  add_notes(table, search, runs);
  return table;
}

/// The strategies' prices, and below them what speaks against each.
RunTable strategy_table(const std::vector<study::StrategyPrice>& prices) {
  RunTable table = {
      {"strategy", "rows and sums", "how", "s/step", "sent/node", "held/node", "worth it"}, {}, {}};
  for (const study::StrategyPrice& one : prices) {
    const auto figure = [&](std::string text) { return one.priced ? std::move(text) : "–"; };
    table.rows.push_back(
        {std::string(one.strategy->name), one.compressor, one.way.empty() ? "–" : one.way,
         figure(fmt::format("{:.4g}", one.seconds)), figure(study::amount(one.bytes)),
         figure(study::amount(one.memory_bytes)), one.refused.empty() ? "yes" : "no"});
    if (!one.refused.empty()) {
      const std::string name = one.priced ? fmt::format("{} {}", one.strategy->name, one.compressor)
                                          : std::string(one.strategy->name);
      table.add_note(fmt::format("{}: {}", name, one.refused));
    }
  }
  return table;
}

/// What runs the quickest strategy that is worth it.
std::string strategy_advice(const std::vector<study::StrategyPrice>& prices) {
  const study::StrategyPrice& best = prices.front();
  if (!best.refused.empty()) {
    return "No strategy fits: give the nodes more memory, or take a smaller model or batch.";
  }
  return fmt::format(
      "The quickest step is that of {} ({}): {}; {}", best.strategy->name, best.compressor,
      best.strategy->what,
      best.command.empty() ? std::string(best.strategy->runs_with) + " runs it" : best.command);
}

/// Shows the strategies and adds them to the result, if they are asked for.
void add_strategies(const PlanOptions& options, const study::Scenario& scenario,
                    const console::Output& output, Json& result) {
  if (!options.what.strategies) {
    return;
  }
  const auto prices = study::price_strategies(scenario, console::stop_request());
  if (prices.empty()) {
    return;  // a signal came before the first
  }
  output.line("");
  show_table(strategy_table(prices), output);
  output.line(strategy_advice(prices));
  result["strategies"] = study::strategies_json(prices);
}

int conclude(const PlanOptions& options, const study::PlanSearch& search,
             const std::vector<study::PlannedRun>& runs, const console::Output& output) {
  const study::Verdict verdict = judge(runs, search.ranking(), search.by_worst());
  RunTable table = table_of(search, runs);
  show_table(table, output);
  output.line("");
  for (const std::string& line : verdict.lines) {
    output.line(line);
  }
  Json result = search_json(search, runs, verdict);
  if (verdict.winner) {
    output.line(fmt::format("  {}", result.at("command").get<std::string>()));
  }
  add_strategies(options, search.scenario(), output, result);
  if (!options.html.empty()) {
    for (const std::string& line : verdict.lines) {
      table.add_note(line);
    }
    write_result_file(
        "html", options.html,
        simulation_page("Plan: " + search.scenario().title, as_repeated(runs), {table},
                        marks_of(search.scenario()), pictures_of(runs),
                        {search.scenario().target.loss, search.scenario().target.quality()}));
    output.line(fmt::format("\nreport: {}", options.html));
  }
  output.json(result);
  return search.interrupted() ? console::kFailed : console::kDone;
}

int run(const PlanOptions& options, const CLI::App& command) {
  check_writable("html", options.html);
  const console::Output output(options.common);
  study::Scenario scenario =
      study::read_scenario(options.what.scenario, given_seed(command, options.common));
  study::SearchOptions how = search_options(options.what, scenario);
  console::catch_stop_signals();
  how.timelines = !options.html.empty();
  how.tell = [&](const SettingText& line) {
    output.line(line.text(console::FlagSpelling(command)));
  };
  how.observer = show_simulations(output.talks(), SimulationWarnings::hidden);
  how.stop = console::stop_request();
  study::PlanSearch search(std::move(how), std::move(scenario));
  const auto runs = search.find();
  if (!runs.ok()) {
    console::say(console::stop_requested() ? study::kInterrupted : runs.status().message());
    return console::kFailed;
  }
  return conclude(options, search, *runs, output);
}

}  // namespace

console::Command add_plan_command(CLI::App& program) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = program.add_subcommand(
      "plan", "Says which algorithm, bits and graph are there first on a network");
  console::OptionGroup group(*command, "What is planned");
  group
      .option("SCENARIO", options->what.scenario, "FILE.toml",
              "The scenario: declared, or written by `sotto bench exchange`")
      .required();
  for (const study::ListSetting& list : lists_of(options->what)) {
    group.list("--" + std::string(list.name), *list.values, std::string(list.type),
               std::string(list.help));
  }
  for (const Setting& setting : settings_of(options->what).settings) {
    group.add(setting);
  }
  group.option("--html,--report", options->html, "FILE.html",
               "Write a self-contained page: curves, graphs, timelines");
  add_common_options(*command, options->common);
  console::default_to_scenario_seed(*command);
  command->footer(kPlanExamples);
  return {command, [command, options] { return run(*options, *command); }};
}

}  // namespace sotto::cli
