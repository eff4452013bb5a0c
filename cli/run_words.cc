#include "run_words.h"

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/compress/registry.h>
#include <sotto/optim/registry.h>
#include <sotto/topology/registry.h>

namespace sotto::cli {
namespace {

/// "quant:8,chunk=64" → "quant"
std::string_view family(std::string_view spec) { return spec.substr(0, spec.find_first_of(":,")); }

template <typename Infos>
bool lists(const Infos& infos, std::string_view name) {
  return std::any_of(infos.begin(), infos.end(),
                     [&](const auto& info) { return info.name == name; });
}

/// Settings go through the options of `train` themselves, so that they are read and checked alike.
void apply_settings(std::string_view words, std::vector<std::string> settings,
                    TrainOptions& options) {
  CLI::App command;
  add_train_options(command, options);
  std::reverse(settings.begin(), settings.end());  // as CLI11 takes them
  try {
    command.parse(settings);
  } catch (const CLI::ParseError& error) {
    refuse("--run", words, error.what());
  }
}

}  // namespace

TrainOptions parse_run(std::string_view words, const TrainOptions& shared) {
  TrainOptions options = shared;
  std::vector<std::string> settings;
  std::istringstream in{std::string(words)};
  std::string word;
  if (!(in >> word)) {
    refuse("--run", words, "it starts with an algorithm, e.g. \"dcd quant:8 ring lr=0.05\"");
  }
  options.algorithm = algorithm_info(word).name;
  options.compressor.clear();
  while (in >> word) {
    const std::string_view name = family(word);
    if (lists(compressors(), name)) {
      options.compressor = word;
    } else if (lists(topologies(), name) || name == "file") {
      options.topology = word;
    } else if (const auto equals = word.find('='); equals != std::string::npos && equals > 0) {
      settings.push_back("--" + word);
      std::replace(settings.back().begin(),
                   settings.back().begin() + 2 + static_cast<std::ptrdiff_t>(equals), '_', '-');
    } else {
      refuse("--run", words,
             fmt::format("'{}' is neither a compressor nor a topology (see `sotto list`), nor a "
                         "setting as NAME=VALUE",
                         word));
    }
  }
  apply_settings(words, std::move(settings), options);
  return options;
}

}  // namespace sotto::cli
