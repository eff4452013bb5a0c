// What train_gpt.cc and train_gpt_plain.cc share: the command line, and how the learning rate goes.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <map>
#include <numbers>
#include <stdexcept>
#include <string>
#include <string_view>

#include <torch/torch.h>

/// The defaults are those of a model of 10.7 million parameters.
struct Recipe {
  std::string file;         ///< the text
  std::string folder;       ///< of checkpoints; empty: none are written
  std::string algorithm;    ///< of sotto; empty: its default
  std::string compressor;   ///< of sotto; empty: the algorithm's default
  std::string tensorboard;  ///< a folder for figures; empty: none are written
  std::string bind;         ///< this host's address, on a trusted network of several; empty: one
  int steps = 600;
  int width = 384;
  int layers = 6;
  int batch = 8;       ///< rows of a backward pass
  int accumulate = 2;  ///< passes of a step
  int warm_up = 50;    ///< steps
  int every = 50;      ///< steps from one evaluation, and checkpoint, to the next
  int resume = 0;      ///< the step of the checkpoints to go on from; 0: begins anew
  double rate = 1e-3;  ///< the highest learning rate
  double until = 0;    ///< a loss at which training ends; 0: after all steps
  bool bfloat16 = false;

  /// The learning rate of a step: a ramp, and then half a cosine down to a tenth.
  double rate_at(int step) const {
    if (step < warm_up) {
      return rate * (step + 1) / warm_up;
    }
    const double way = static_cast<double>(step - warm_up) / std::max(1, steps - warm_up);
    return rate * (0.55 + 0.45 * std::cos(std::numbers::pi * way));
  }

  /// Where a checkpoint lies: of the model, of the optimizer of some node.
  std::string checkpoint(int step, std::string_view what) const {
    return folder + "/" + std::to_string(step) + "." + std::string(what) + ".pt";
  }
};

inline void set_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (auto& group : optimizer.param_groups()) {
    group.options().set_lr(rate);
  }
}

template <typename Number>
void read_number(std::string_view name, std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) {
    throw std::invalid_argument(std::string(name) + " " + std::string(text) +
                                ": a number from 0 up is wanted");
  }
}

/// Throws std::invalid_argument for what is no `--name value`.
inline Recipe read_recipe(int argc, char** argv) {
  Recipe recipe;
  const std::map<std::string_view, std::string*> texts = {{"--checkpoints", &recipe.folder},
                                                          {"--algorithm", &recipe.algorithm},
                                                          {"--compressor", &recipe.compressor},
                                                          {"--tensorboard", &recipe.tensorboard},
                                                          {"--bind", &recipe.bind}};
  const std::map<std::string_view, int*> numbers = {
      {"--steps", &recipe.steps},           {"--width", &recipe.width},
      {"--layers", &recipe.layers},         {"--batch", &recipe.batch},
      {"--accumulate", &recipe.accumulate}, {"--warm-up", &recipe.warm_up},
      {"--every", &recipe.every},           {"--resume", &recipe.resume}};
  const std::map<std::string_view, double*> measures = {{"--rate", &recipe.rate},
                                                        {"--until", &recipe.until}};
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--bfloat16") {
      recipe.bfloat16 = true;
    } else if (!name.starts_with("--") && recipe.file.empty()) {
      recipe.file = name;
    } else if (i + 1 < argc && texts.contains(name)) {
      *texts.at(name) = argv[++i];
    } else if (i + 1 < argc && numbers.contains(name)) {
      read_number(name, argv[++i], *numbers.at(name));
    } else if (i + 1 < argc && measures.contains(name)) {
      read_number(name, argv[++i], *measures.at(name));
    } else {
      throw std::invalid_argument(std::string(name) + ": unknown, or without a value");
    }
  }
  if (recipe.file.empty() || recipe.every == 0 || recipe.accumulate == 0 || recipe.batch == 0) {
    throw std::invalid_argument("a FILE to train on, and numbers above 0, are wanted");
  }
  return recipe;
}

/// Trains as the command line says. Returns the exit status.
inline int run_recipe(int argc, char** argv, void (*train)(const Recipe&)) {
  try {
    train(read_recipe(argc, argv));
    return 0;
  } catch (const std::invalid_argument& mistake) {
    std::fprintf(stderr,
                 "%s\nusage: %s FILE [--steps N] [--width N] [--layers N] [--batch N] "
                 "[--accumulate N] [--warm-up N]\n  [--rate GAMMA] [--every N] [--until "
                 "LOSS] [--bfloat16] [--checkpoints FOLDER] [--resume STEP]\n  [--algorithm "
                 "NAME] [--compressor SPEC] [--tensorboard FOLDER] [--bind ADDRESS]\n",
                 mistake.what(), argv[0]);
    return 2;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 1;
  }
}
