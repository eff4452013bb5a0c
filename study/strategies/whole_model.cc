// Strategies whose nodes have all of the model and take whole gradients: data parallelism, tied
// blocks, and a state that is shared out.
#include <string>
#include <utility>
#include <vector>

#include <sotto/base/error.h>
#include <sotto/study/strategies/internal/all_strategies.h>

namespace sotto::study::internal {
namespace {

bool exact(const std::string& compressor) { return compressor == "none"; }

StrategyWay whole(const ModelShape& model, std::string algorithm, std::size_t parameters,
                  const std::string& compressor) {
  RunSpec run = run_of(algorithm, exact(compressor) ? "" : compressor);
  return {.text = "",
          .mixed = {.algorithm = std::move(algorithm),
                    .compressor = compressor,
                    .elements = parameters},
          .program = {},
          .memory_floats = held_floats(model, parameters) + static_cast<double>(model.activations),
          .run = std::move(run)};
}

/// All-reduce, whose compressed form is qmean.
std::string mean_of(const std::string& compressor) {
  return exact(compressor) ? "allreduce" : "qmean";
}

std::vector<StrategyWay> data_ways(const ModelShape& model, int /*nodes*/,
                                   const std::string& compressor) {
  return {whole(model, mean_of(compressor), model.parameters, compressor)};
}

std::vector<StrategyWay> tied_ways(const ModelShape& model, int /*nodes*/,
                                   const std::string& compressor) {
  if (model.tied.empty()) {
    throw Error(
        "its model has no equal blocks that can be tied: that is for a transformer of two "
        "or more layers without experts");
  }
  StrategyWay way = whole(model, mean_of(compressor), model.tied_parameters, compressor);
  way.text = model.tied;
  way.run = way.run->with("model", model.tied);
  return {way};
}

std::vector<StrategyWay> sharded_ways(const ModelShape& model, int nodes,
                                      const std::string& compressor) {
  StrategyWay way = whole(model, "sharded", model.parameters, compressor);
  // The model, its gradient and what the sender's compressor lost; of the state, of the sum, of
  // what the owner's lost and of its encoding only a node's part.
  const double kept = 3 + static_cast<double>(model.state + 3) / nodes;
  way.memory_floats =
      kept * static_cast<double>(model.parameters) + static_cast<double>(model.activations);
  return {way};
}

}  // namespace

constinit const Strategy kDataStrategy = {
    .name = "data",
    .what = "the whole model at each node, the mean of all gradients",
    .runs_with = "sotto train",
    .ways = data_ways};

constinit const Strategy kTiedStrategy = {
    .name = "tied",
    .what = "equal blocks have one set of weights, which `sotto checkpoint untie` parts later",
    .runs_with = "sotto train",
    .ways = tied_ways};

constinit const Strategy kShardedStrategy = {
    .name = "sharded",
    .what = "each node keeps the step rule's state of its part of the model",
    .runs_with = "sotto train",
    .ways = sharded_ways};

}  // namespace sotto::study::internal
