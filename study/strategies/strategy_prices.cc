#include <sotto/study/strategies/strategy_prices.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/plan/train_command.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/strategies/internal/played_step.h>
#include <sotto/study/units.h>

namespace sotto::study {
namespace {

/// n² edges are played, and n programs are built.
constexpr int kMostNodes = 64;
/// A step that is slower by no more than this is no reason against a strategy.
constexpr double kAlike = 1.02;

/// A priced way, and what its links carry.
struct Priced {
  StrategyPrice price;
  std::vector<CarriedLink> links;
};

/// The blocks of a program, of which one and two are played.
PlayedStep played_blocks(const Scenario& scenario, const ProgramPart& part) {
  const PlayedStep one = play(scenario, part, 1);
  if (part.blocks == 1) {
    return one;
  }
  const PlayedStep further = play(scenario, part, 2).followed_by(one, -1);
  return one.followed_by(further, static_cast<double>(part.blocks - 1));
}

PlayedStep played(const Scenario& scenario, const StrategyWay& way) {
  if (!way.program) {
    return play(scenario, way.mixed, Computing::gradients);
  }
  const PlayedStep blocks = played_blocks(scenario, *way.program);
  return way.mixed.elements == 0
             ? blocks
             : blocks.followed_by(play(scenario, way.mixed, Computing::none), 1);
}

Priced price_way(const Scenario& scenario, const TrainPlan& plan, const Strategy& strategy,
                 const StrategyWay& way) {
  const PlayedStep step = played(scenario, way);
  Priced made = {.price = {}, .links = step.links};
  made.price.strategy = &strategy;
  made.price.way = way.text;
  made.price.priced = true;
  made.price.seconds = step.seconds;
  made.price.bytes = std::accumulate(step.sent.begin(), step.sent.end(), 0.0) / scenario.nodes;
  made.price.most_bytes = std::ranges::max(step.sent);
  made.price.memory_bytes = sizeof(float) * way.memory_floats;
  made.price.phases = step.phases;
  if (made.price.memory_bytes > scenario.memory_bytes) {
    made.price.refused =
        fmt::format("a node would hold {} of parameters, state and rows, and has {}",
                    amount(made.price.memory_bytes), amount(scenario.memory_bytes));
  }
  if (way.run) {
    made.price.command = train_command(*way.run, scenario, plan.run.rounds);
  }
  return made;
}

/// Fitting ways first, then quick ones.
bool better(const Priced& a, const Priced& b) {
  return std::pair(!a.price.refused.empty(), a.price.seconds) <
         std::pair(!b.price.refused.empty(), b.price.seconds);
}

/// The best way to follow a strategy.
Priced price_strategy(const Scenario& scenario, const TrainPlan& plan, const ModelShape& model,
                      const Strategy& strategy, const std::string& compressor) {
  std::optional<Priced> best;
  Priced unpriced = {.price = {}, .links = {}};
  unpriced.price.strategy = &strategy;
  try {
    for (const StrategyWay& way : strategy.ways(model, scenario.nodes, compressor)) {
      try {
        Priced one = price_way(scenario, plan, strategy, way);
        if (!best || better(one, *best)) {
          best = std::move(one);
        }
      } catch (const Error& error) {  // one way is too large to be played; others may be smaller
        unpriced.price.refused = error.what();
      }
    }
  } catch (const Error& error) {
    unpriced.price.refused = error.what();
  }
  if (!best) {
    best = std::move(unpriced);
  }
  best->price.compressor = compressor;
  return std::move(*best);
}

/// Why a step is not worth it beside one of data parallelism; "": it is.
std::string slowness(const Priced& one, const StrategyPrice& data, double gradient_s) {
  if (one.price.seconds <= kAlike * data.seconds) {
    return "";
  }
  const double there = data.seconds - std::min(gradient_s, data.seconds);
  const auto busiest = std::ranges::max_element(one.links, {}, &CarriedLink::seconds);
  if (busiest != one.links.end() && busiest->seconds() > there) {
    return fmt::format(
        "link {} would carry {} a step, and its budget is {}, what it carries while "
        "data parallelism exchanges",
        busiest->name, amount(busiest->bytes), amount(there * busiest->bytes_per_s));
  }
  return one.price.phases > 0
             ? fmt::format(
                   "its {} exchanges wait for each other: a step takes {}, and one of data "
                   "parallelism {}",
                   one.price.phases, duration_text(one.price.seconds), duration_text(data.seconds))
             : fmt::format("a step takes {}, and one of data parallelism {}",
                           duration_text(one.price.seconds), duration_text(data.seconds));
}

/// The slowest node's time for a gradient, as a step without any exchange has it.
double gradient_seconds(const Scenario& scenario) {
  Scenario quick = scenario;
  quick.link = {};
  quick.between.clear();
  quick.trunks.clear();
  quick.media.clear();
  quick.hosts.assign(scenario.hosts.size(), {});
  quick.network = {};
  quick.transport = {};
  return play(quick, MixedPart{.elements = 1}, Computing::gradients).seconds;
}

}  // namespace

/// Whether the time of a message depends on chance.
bool varies(const Scenario& scenario) {
  const auto does = [](const LinkSpec& link) { return link.loss > 0 || link.jitter > 0; };
  return does(scenario.link) || std::ranges::any_of(scenario.between, does, &LinksBetween::link) ||
         std::ranges::any_of(scenario.trunks, does, &Trunk::link);
}

void require_priceable(const Scenario& scenario) {
  if (scenario.attack || scenario.sampling.clients != nullptr) {
    throw Error("strategies", scenario.attack
                                  ? "nodes lie in the scenario, and strategies trust all of them"
                                  : "clients are drawn for each exchange, and strategies need all "
                                    "nodes in each step");
  }
  if (scenario.task.model.find("share=") != std::string::npos) {
    refuse("strategies", scenario.task.model,
           "the model's layers are tied already; give it without share=, and the strategy `tied` "
           "ties them");
  }
  if (varies(scenario)) {
    throw Error(
        "strategies",
        "links lose packets or have jitter, and a strategy's price is that of a few blocks, "
        "times their number, so that chance would be multiplied; leave loss and jitter out");
  }
  if (scenario.nodes < 2 || scenario.nodes > kMostNodes) {
    refuse("strategies", fmt::format("{} nodes", scenario.nodes),
           fmt::format("they are priced for 2 to {} nodes", kMostNodes));
  }
}

std::vector<StrategyPrice> price_strategies(const Scenario& scenario, const StopPricing& stop) {
  require_priceable(scenario);
  const TrainPlan plan = make_train_plan(options_of(scenario, run_of("allreduce")));
  const ModelShape model = shape_of(plan);
  std::vector<Priced> all;
  for (const std::string compressor : {"none", "quant:8"}) {
    for (const Strategy* strategy : strategies()) {
      if (stop && stop()) {
        break;
      }
      all.push_back(price_strategy(scenario, plan, model, *strategy, compressor));
    }
  }
  const double gradient_s = gradient_seconds(scenario);
  std::vector<StrategyPrice> prices;
  for (Priced& one : all) {
    const StrategyPrice& data = all.front().price;
    if (one.price.priced && one.price.refused.empty() && data.refused.empty()) {
      one.price.refused = slowness(one, data, gradient_s);
    }
    // What the model does not have, it has in no encoding.
    if (one.price.priced || one.price.compressor == "none") {
      prices.push_back(one.price);
    }
  }
  std::ranges::stable_sort(prices, {}, [](const StrategyPrice& one) {
    return std::tuple(!one.priced, !one.refused.empty(), one.seconds);
  });
  return prices;
}

}  // namespace sotto::study
