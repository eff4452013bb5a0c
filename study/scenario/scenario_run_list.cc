// The runs of a scenario.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/study/internal/scenario_spelling.h>
#include <sotto/study/scenario/internal/run_list.h>

namespace sotto::study {
namespace {

/// A run as the file has it: its words or, as a table, these and a label.
struct WrittenRun {
  std::string words;
  std::string label;
  std::string place;
};

WrittenRun written_run(const TomlReader& in, const toml::node& node, const std::string& path) {
  WrittenRun run = {.words = {}, .label = {}, .place = toml_place(path, node) + ": run"};
  if (const auto* words = node.as_string()) {
    run.words = words->get();
    return run;
  }
  if (node.as_table() == nullptr) {
    in.refuse("run", "it must be a string or a table { run, label }, or a list of these");
  }
  TomlReader table(path, "run", *node.as_table());
  table.require("run", "the run's words, e.g. \"dcd quant:8 ring\"");
  run.words = *table.text("run");
  run.label = table.text("label").value_or("");
  if (table.has("label") && (run.label.empty() || run.label.find('@') != std::string::npos)) {
    table.refuse("label", "it is what tables call the run: some words, without an @");
  }
  table.finish();
  return run;
}

std::vector<WrittenRun> written_runs(TomlReader& in, const toml::table& file,
                                     const std::string& path) {
  in.allow({"run"});
  const toml::node* const node = file.get("run");
  std::vector<WrittenRun> runs;
  if (node != nullptr && node->is_array()) {
    for (const toml::node& one : *node->as_array()) {
      runs.push_back(written_run(in, one, path));
    }
  } else if (node != nullptr) {
    runs.push_back(written_run(in, *node, path));
  }
  if (runs.empty()) {
    in.refuse("run", "give one or more runs, e.g. run = [\"allreduce\", \"dcd quant:8 ring\"]");
  }
  return runs;
}

}  // namespace

void read_runs(TomlReader& in, const toml::table& file, const std::string& path,
               Scenario& scenario) {
  for (const WrittenRun& written : written_runs(in, file, path)) {
    try {
      scenario.runs.push_back(parse_run(written.words));
    } catch (const Error& error) {
      throw refusal_of_words(written.place, written.words, error, Spelling());
    }
    RunSpec& run = scenario.runs.back();
    run.label = written.label;
    scenario.run_places.push_back(written.place);
    const auto same = [&](const RunSpec& other) { return other.shown() == run.shown(); };
    if (std::count_if(scenario.runs.begin(), scenario.runs.end(), same) > 1) {
      throw Error(fmt::format("{}: '{}' stands there twice", written.place, run.shown()));
    }
  }
}

}  // namespace sotto::study
