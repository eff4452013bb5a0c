#include <sotto/optim/algorithm_info.h>

#include <algorithm>

#include <fmt/format.h>

namespace sotto {

bool AlgorithmInfo::has(std::string_view key) const {
  return std::ranges::find(hyperparameters, key, &Hyperparameter::key) != hyperparameters.end();
}

std::string synopsis(const AlgorithmInfo& info) {
  std::string keys;
  for (const Hyperparameter& one : info.hyperparameters) {
    keys += keys.empty() ? ":" : ",";
    keys += one.kind == HyperparameterKind::text ? std::string(one.symbol)
                                                 : fmt::format("{}={}", one.key, one.symbol);
  }
  return keys.empty() ? std::string(info.name) : fmt::format("{}[{}]", info.name, keys);
}

double state_floats(const StateMemory& memory, int nodes, int degree, bool changing_graph) {
  return memory.floats + memory.per_nth / nodes +
         degree * (memory.per_neighbour + (changing_graph ? memory.per_changing_neighbour : 0));
}

std::string state_formula(const AlgorithmInfo& info) {
  const StateMemory& memory = info.memory;
  const auto times = [](double factor, std::string_view what) {
    return factor == 1 ? std::string(what) : fmt::format("{} {}", factor, what);
  };
  std::string text = fmt::format("{}", memory.floats);
  if (memory.per_neighbour > 0) {
    text += " + " + times(memory.per_neighbour, "degree");
  }
  if (memory.per_nth > 0) {
    text += fmt::format(" + {}/n", memory.per_nth);
  }
  if (!memory.of_matrices.empty()) {
    text += fmt::format(" + {}", memory.of_matrices);
  }
  if (memory.per_changing_neighbour > 0) {
    text += fmt::format(", or {} + {} where the graph changes", text,
                        times(memory.per_changing_neighbour, "degree"));
  }
  for (const Hyperparameter& one : info.hyperparameters) {
    if (one.floats > 0) {
      text += fmt::format(", and {} with {}", one.floats, one.key);
    }
  }
  return text;
}

std::string_view graph_need_name(GraphNeed need) {
  switch (need) {
    case GraphNeed::any:
      return "any";
    case GraphNeed::doubly_stochastic:
      return "doubly stochastic";
    case GraphNeed::symmetric:
      return "symmetric and doubly stochastic";
    case GraphNeed::column_stochastic:
      return "column stochastic";
  }
  return "unknown";
}

}  // namespace sotto
