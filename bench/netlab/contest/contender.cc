#include "contender.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>

namespace sotto::netlab {
namespace {

using enum Runner;

constexpr std::array kStepContenders = {
    Contender{"sotto allreduce gloo", sotto_peer, "allreduce", "gloo", Baseline::own, 1},
    Contender{"sotto dpsgd gloo", sotto_peer, "dpsgd ring", "gloo", Baseline::none, 1},
    Contender{"sotto dcd quant:8 gloo", sotto_peer, "dcd quant:8 ring", "gloo", Baseline::none,
              0.28},
    Contender{"sotto dcd quant:4 gloo", sotto_peer, "dcd quant:4 ring", "gloo", Baseline::none,
              0.14},
    Contender{"sotto choco sign gloo", sotto_peer, "choco sign ring", "gloo", Baseline::none, 0.05},
    Contender{"sotto choco sign delayed gloo", sotto_peer, "choco sign ring delayed-gradient=true",
              "gloo", Baseline::none, 0.05},
    Contender{"sotto allreduce zmq", sotto_peer, "allreduce", "zmq", Baseline::own, 1},
    Contender{"sotto dpsgd zmq", sotto_peer, "dpsgd ring", "zmq", Baseline::none, 1},
    Contender{"sotto dcd quant:8 zmq", sotto_peer, "dcd quant:8 ring", "zmq", Baseline::none, 0.28},
    Contender{"sotto dcd quant:4 zmq", sotto_peer, "dcd quant:4 ring", "zmq", Baseline::none, 0.14},
    Contender{"sotto choco sign zmq", sotto_peer, "choco sign ring", "zmq", Baseline::none, 0.05},
    Contender{"sotto choco sign delayed zmq", sotto_peer, "choco sign ring delayed-gradient=true",
              "zmq", Baseline::none, 0.05},
    Contender{"gloo ring", gloo_peer, "ring", "", Baseline::gloo, 1},
    Contender{"gloo bcube", gloo_peer, "bcube", "", Baseline::gloo, 1},
    Contender{"gloo halving-doubling", gloo_peer, "halving-doubling", "", Baseline::gloo, 1},
    Contender{"gloo sharded", gloo_peer, "sharded", "", Baseline::gloo, 1},
    Contender{"gloo hierarchical", gloo_peer, "hierarchical", "", Baseline::gloo, 2},
    Contender{"gloo ring unfused", gloo_peer, "ring --unfused", "", Baseline::none, 10},
    Contender{"gloo halving-doubling unfused", gloo_peer, "halving-doubling --unfused", "",
              Baseline::none, 10},
    Contender{"gloo ring fp16", gloo_peer, "ring --half", "", Baseline::none, 0.6},
    Contender{"gloo bcube fp16", gloo_peer, "bcube --half", "", Baseline::none, 0.6},
    Contender{"gloo halving-doubling fp16", gloo_peer, "halving-doubling --half", "",
              Baseline::none, 0.6},
    Contender{"gloo sharded fp16", gloo_peer, "sharded --half", "", Baseline::none, 0.6},
    Contender{"gloo hierarchical fp16", gloo_peer, "hierarchical --half", "", Baseline::none, 1},
    Contender{"mpi allreduce", mpi_peer, "--neighbour-bits=0", "", Baseline::others, 1},
    Contender{"mpi neighbours 32 bit", mpi_peer, "--neighbour-bits=32", "", Baseline::none, 1},
    Contender{"mpi neighbours 8 bit", mpi_peer, "--neighbour-bits=8", "", Baseline::none, 0.28},
    Contender{"mpi neighbours 4 bit", mpi_peer, "--neighbour-bits=4", "", Baseline::none, 0.14},
    Contender{"mpi neighbours 1 bit", mpi_peer, "--neighbour-bits=1", "", Baseline::none, 0.05},
    Contender{"ddp", ddp_peer, "none", "", Baseline::others, 1},
    Contender{"ddp fp16", ddp_peer, "fp16", "", Baseline::ddp_hook, 0.6},
    Contender{"ddp powersgd:1", ddp_peer, "powersgd:1", "", Baseline::ddp_hook, 0.2},
    Contender{"ddp powersgd:2", ddp_peer, "powersgd:2", "", Baseline::ddp_hook, 0.2},
};

constexpr std::array kTrainingContenders = {
    Contender{"sotto allreduce", sotto, "allreduce", "gloo", Baseline::own},
    Contender{"sotto dcd quant:8", sotto, "dcd quant:8 ring", "gloo", Baseline::none},
    Contender{"sotto dcd quant:4", sotto, "dcd quant:4 ring", "gloo", Baseline::none},
    Contender{"sotto choco sign", sotto, "choco sign ring", "gloo", Baseline::none},
    Contender{"sotto choco sign delayed", sotto, "choco sign ring delayed-gradient=true", "gloo",
              Baseline::none},
    Contender{"sotto diloco", sotto,
              "allreduce communication-interval=20 outer-lr=0.7 outer-momentum=0.9 "
              "outer-nesterov=true",
              "gloo", Baseline::none},
    Contender{"sotto qmean quant:4", sotto,
              "qmean quant:4 communication-interval=20 outer-lr=0.7 outer-momentum=0.9 "
              "outer-nesterov=true",
              "gloo", Baseline::none},
    Contender{"sotto sparseloco", sotto, "sparseloco topk:0.03,values=2 communication-interval=20",
              "gloo", Baseline::none},
    Contender{"gloo ring", gloo_trainer, "ring", "", Baseline::gloo},
    Contender{"gloo halving-doubling", gloo_trainer, "halving-doubling", "", Baseline::gloo},
    Contender{"gloo halving-doubling fp16", gloo_trainer, "halving-doubling --half", "",
              Baseline::none},
    Contender{"ddp", ddp_peer, "none", "", Baseline::others},
    Contender{"ddp fp16", ddp_peer, "fp16", "", Baseline::ddp_hook},
    Contender{"ddp powersgd:1", ddp_peer, "powersgd:1", "", Baseline::ddp_hook},
    Contender{"ddp powersgd:2", ddp_peer, "powersgd:2", "", Baseline::ddp_hook},
    Contender{"ddp post-local:20", ddp_peer, "post-local:20", "", Baseline::ddp_hook},
};

constexpr int kMostTimes = 20;  ///< rounds at most, in multiples of those that were asked for

}  // namespace

std::span<const Contender> step_contenders() { return kStepContenders; }
std::span<const Contender> training_contenders() { return kTrainingContenders; }

std::vector<Contender> choose(std::span<const Contender> all,
                              const std::vector<std::string>& names) {
  const auto called = [&](std::string_view name) {
    return std::ranges::any_of(all, [&](const Contender& one) { return one.name == name; });
  };
  for (const std::string& name : names) {
    if (std::ranges::none_of(
            all, [&](const Contender& one) { return one.name.find(name) != std::string::npos; })) {
      const auto known = names_of(all);
      refuse("--only", name,
             fmt::format("no contender's name has that in it{} there are {}",
                         did_you_mean(name, known), fmt::join(known, ", ")));
    }
  }
  std::vector<Contender> chosen;
  for (const Contender& one : all) {
    const bool wanted = std::ranges::any_of(names, [&](const std::string& name) {
      return called(name) ? one.name == name : one.name.find(name) != std::string::npos;
    });
    if (names.empty() || wanted) {
      chosen.push_back(one);
    }
  }
  return chosen;
}

int rounds_of(const Contender& contender, int rounds) {
  const double times = std::min<double>(kMostTimes, 1 / contender.share);
  return std::max(1, static_cast<int>(std::lround(rounds * times)));
}

}  // namespace sotto::netlab
