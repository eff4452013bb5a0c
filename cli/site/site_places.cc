#include "site_places.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>

#include <sotto/study/option_names.h>

namespace sotto::cli {
namespace {

constexpr auto kOfTraining = std::to_array<std::string_view>({"--task",
                                                              "--model",
                                                              "--batch",
                                                              "--partition",
                                                              "--gradient-time",
                                                              "--init",
                                                              "--algorithm",
                                                              "--compressor",
                                                              "--consensus-stepsize",
                                                              "--rule",
                                                              "--step-rule",
                                                              "--lr",
                                                              "--momentum",
                                                              "--nesterov",
                                                              "--weight-decay",
                                                              "--beta1",
                                                              "--beta2",
                                                              "--epsilon",
                                                              "--bias-correction",
                                                              "--trust-coefficient",
                                                              "--clip-norm",
                                                              "--schedule",
                                                              "--noise-multiplier",
                                                              "--privacy-epsilon",
                                                              "--privacy-delta",
                                                              "--privacy-unit",
                                                              "--communication-interval",
                                                              "--rounds",
                                                              "--eval-every",
                                                              "--dump-parameters",
                                                              "--seed"});

/// What else of a site's file `sotto train` has under another name.
constexpr auto kElsewhere =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"--bind", "listen"},
                                                                  {"--key", "key"},
                                                                  {"--peers", "peers"},
                                                                  {"--timeout", "network.timeout"},
                                                                  {"--part", "training.part"},
                                                                  {"--export", "training.export"}});

/// The key in a site's file of an option; empty: there is none.
std::string key_of(std::string_view option) {
  if (is_training_option(option)) {
    return fmt::format("training.{}", option.substr(2));
  }
  const auto* const found =
      std::ranges::find(kElsewhere, option, &std::pair<std::string_view, std::string_view>::first);
  return found == kElsewhere.end() ? std::string() : std::string(found->second);
}

/// The option with which a text begins, "--lr"; empty: none.
std::string_view leading_option(std::string_view text) {
  if (!text.starts_with("--")) {
    return {};
  }
  const auto* const end = std::find_if(text.begin() + 2, text.end(), [](unsigned char c) {
    return std::isalnum(c) == 0 && c != '-';
  });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

/// Options within a sentence as the keys that they are here.
std::string with_keys(std::string_view text) {
  std::string said;
  while (!text.empty()) {
    const std::string_view option = leading_option(text);
    const std::string key = key_of(option);
    if (key.empty()) {
      said += text.front();
      text.remove_prefix(1);
    } else {
      said += key.substr(key.find('.') + 1);
      text.remove_prefix(option.size());
    }
  }
  return said;
}

}  // namespace

bool is_training_option(std::string_view option) {
  return std::ranges::find(kOfTraining, option) != kOfTraining.end();
}

SitePlaces::SitePlaces(std::string path, const toml::table& file) : path_(std::move(path)) {
  for (const auto& [key, value] : file) {
    lines_[std::string(key.str())] = value.source().begin.line;
    if (const auto* table = value.as_table()) {
      for (const auto& [inner, setting] : *table) {
        std::string name(inner.str());
        std::ranges::replace(name, '_', '-');
        lines_[fmt::format("{}.{}", key.str(), name)] = setting.source().begin.line;
      }
    }
  }
}

std::string SitePlaces::of(const std::string& key) const {
  auto found = lines_.find(key);
  if (found == lines_.end()) {
    found = lines_.find(key.substr(0, key.find('.')));
  }
  return found == lines_.end() ? fmt::format("{}: {}", path_, key)
                               : fmt::format("{}:{}: {}", path_, found->second, key);
}

std::string SitePlaces::blame(std::string_view message) const {
  if (message.starts_with(path_ + ":")) {
    return std::string(message);
  }
  const std::string named = study::with_option_names(message);
  const std::string key = leading_key(named);
  return key.empty() ? fmt::format("{}: {}", of("training"), with_keys(named))
                     : of(key) + with_keys(named.substr(named.find_first_of(": ")));
}

std::string SitePlaces::leading_key(std::string_view message) const {
  const std::string_view word = message.substr(0, message.find_first_of(": "));
  std::string key = key_of(word);
  for (const std::string& known :
       {std::string(word), fmt::format("training.{}", word), fmt::format("network.{}", word)}) {
    if (key.empty() && lines_.contains(known)) {
      return known;
    }
  }
  return key;
}

}  // namespace sotto::cli
