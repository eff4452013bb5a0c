// What programs that start `sotto train` write behind it. Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <sotto/study/train/run_spec.h>

namespace sotto::bench {

/// The options of `sotto train` with these settings: "--lr=0.1".
inline std::vector<std::string> option_words(const std::vector<study::RunSetting>& settings) {
  std::vector<std::string> words;
  words.reserve(settings.size());
  for (const study::RunSetting& setting : settings) {
    words.push_back(fmt::format("--{}={}", setting.name, setting.value));
  }
  return words;
}

/// The options of `sotto train` that do this run ("dcd quant:8 ring"), with those of `shared` that
/// it leaves as they are. Throws Error for words that are no run.
inline std::vector<std::string> train_words(std::string_view run,
                                            const std::vector<study::RunSetting>& shared = {}) {
  return option_words(study::joined_settings(study::parse_run(run), shared));
}

}  // namespace sotto::bench
