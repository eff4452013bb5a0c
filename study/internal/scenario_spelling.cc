#include <sotto/study/internal/scenario_spelling.h>

#include <fmt/format.h>

#include <sotto/base/names.h>
#include <sotto/base/text.h>
#include <sotto/study/internal/task_settings.h>

namespace sotto::study {
namespace {

/// "FILE:LINE: task.lr" → "task.lr"
std::string_view key_in(std::string_view place) { return place.substr(place.rfind(' ') + 1); }

}  // namespace

std::string ScenarioSpelling::shared_place(std::string_view setting) const {
  const std::string name = dashed(setting);
  const auto place = scenario_.task_places.find(name);
  const bool shared = place != scenario_.task_places.end() && run_.find(name) == nullptr;
  return shared ? place->second : std::string();
}

std::string ScenarioSpelling::subject(std::string_view setting) const {
  const std::string place = shared_place(setting);
  return place.empty() ? mention(setting, {}) : place;
}

std::string ScenarioSpelling::mention(std::string_view setting, std::string_view value) const {
  const std::string name = dashed(setting);
  if (run_.find(name) != nullptr) {
    return value.empty() ? name : fmt::format("{}={}", name, value);
  }
  const std::string place = shared_place(setting);
  std::string key = place.empty() ? name : std::string(key_in(place));
  if (place.empty() && stands_in_task(name)) {
    key = "task." + name;
  }
  return value.empty() ? key : fmt::format("{} = {}", key, toml_value(value));
}

Error refusal_of_words(const std::string& place, const std::string& words, const Error& error,
                       const Spelling& spelling) {
  // An error of the whole run has the words as its value already.
  const bool whole = error.field() == "run";
  return Error(fmt::format("{}: '{}': {}", place, words,
                           whole ? error.reason().text(spelling) : error.render(spelling)));
}

Error refusal_of_run(const Scenario& scenario, std::size_t run, const Error& error) {
  const RunSpec& words = scenario.runs[run];
  const ScenarioSpelling spelling(scenario, words);
  if (!spelling.shared_place(error.field()).empty()) {
    return Error(error.render(spelling));
  }
  return refusal_of_words(scenario.run_places[run], words.name, error, spelling);
}

}  // namespace sotto::study
