// What a model costs that is cut into stages on a slow network, and what it learns, by how the rows
// between the stages are encoded: exactly, in few bits without memory, or as keyed differences.
//
// A network 784-128-128-10 with ReLU is cut in 2 or 3; 4,096 generated digits, 10 passes, 128
// examples a step in 4 micro-batches, SGD with momentum. 10 ms from node to node; 10 GFlop/s a
// node. All numbers are of the simulator: models are those of a real run, times are virtual. Means
// of 3 seeds, but for the time at 100 Mbit/s, which is of the first.
//
// "No memory" gives each visit of an example a key of its own, so that it is a first one each time.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include <sotto/trainers/data/digits.h>
#include <sotto/trainers/data/loaders.h>

#include "bench/support/command_line.h"
#include "staged_training.h"

namespace sotto::bench {
namespace {

constexpr int kSeeds = 3;

std::shared_ptr<const Dataset> images(const char* folder, std::uint64_t seed) {
  return folder == nullptr ? make_digits({.train = kExamples, .test = kTests, .seed = seed})
                           : load_mnist(folder);
}

void measure(const Way& way, const char* folder) {
  StagedOutcome mean;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto data = images(folder, seed);
    const StagedOutcome one = train_stages(way, *data, seed, 20);
    mean.there += one.there / kSeeds;
    mean.back += one.back / kSeeds;
    mean.bits += one.bits / kSeeds;
    mean.loss += one.loss / kSeeds;
    mean.accuracy += one.accuracy / kSeeds;
    mean.seconds += one.seconds / kSeeds;
  }
  const auto data = images(folder, 1);
  const StagedOutcome fast = train_stages(way, *data, 1, 100);
  std::printf("| %d | %-27s | %5.1f | %6.2f | %6.2f | %6.4f | %6.2f %% | %5.1f | %5.1f |\n",
              way.stages, way.name, mean.bits, mean.there / 1e6, mean.back / 1e6, mean.loss,
              100 * mean.accuracy, mean.seconds, fast.seconds);
  std::fflush(stdout);
}

constexpr Way kWays[] = {
    {"exact both ways", "none", "none", "none", true, 2},
    {"exact, back 8 bits", "none", "none", "quant:8", true, 2},
    {"8 bits, no memory", "quant:8", "quant:8", "quant:8", false, 2},
    {"4 bits, no memory", "quant:4", "quant:4", "quant:8", false, 2},
    {"3 bits, no memory", "quant:3", "quant:3", "quant:8", false, 2},
    {"2 bits, no memory", "quant:2", "quant:2", "quant:8", false, 2},
    {"keyed: 8 bits, then 4", "quant:4", "quant:8", "quant:8", true, 2},
    {"keyed: 8 bits, then 3", "quant:3", "quant:8", "quant:8", true, 2},
    {"keyed: 8 bits, then 2", "quant:2", "quant:8", "quant:8", true, 2},
    {"the same, memory in fp16", "quant:2", "quant:8", "quant:8", true, 2, KeyedForm::fp16},
    {"exact both ways", "none", "none", "none", true, 3},
    {"8 bits, no memory", "quant:8", "quant:8", "quant:8", false, 3},
    {"keyed: 8 bits, then 3", "quant:3", "quant:8", "quant:8", true, 3},
    {"keyed: 8 bits, then 2", "quant:2", "quant:8", "quant:8", true, 3},
};

void print_table(const std::string& mnist) {
  std::printf(
      "| stages | rows there | bits | MB there | MB back | loss | accuracy | s at 20 Mbit/s | "
      "s at 100 |\n| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (const Way& way : kWays) {
    measure(way, mnist.empty() ? nullptr : mnist.c_str());
  }
}

}  // namespace
}  // namespace sotto::bench

int main(int argc, char** argv) {
  CLI::App app("What a model cut into stages costs on a slow network, and what it learns",
               "keyed_wire");
  std::string mnist;
  app.add_option("MNIST", mnist, "Folder of MNIST's files; without one, digits that are drawn")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  return sotto::bench::run_main(app, argc, argv, [&] {
    sotto::bench::print_table(mnist);
    return sotto::console::kDone;
  });
}
