// `sotto checkpoint inspect`: what a saved state is, and whether it is whole.
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <sotto/base/error.h>
#include <sotto/console/output.h>
#include <sotto/sites/nodes/state/site_state_file.h>
#include <sotto/study/units.h>
#include <sotto/trainers/files/checkpoint.h>
#include <sotto/trainers/files/saved_model.h>

#include "commands.h"

namespace sotto::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpointInspectExamples =
    "Examples:\n"
    "  sotto checkpoint inspect saved\n"
    "  sotto checkpoint inspect saved/node-0.round-100.checkpoint\n"
    "  sotto checkpoint inspect state/state.a --json -\n"
    "Exits with 1 when the file, or one in the folder, is damaged.";

struct InspectOptions {
  console::CommonOptions common;
  std::string file;
};

Json report_json(const std::string& path, const FileReport& report) {
  Json sections = Json::array();
  for (const FileReport::Section& section : report.sections) {
    sections.push_back(
        {{"name", section.name}, {"bytes", section.bytes}, {"whole", section.whole}});
  }
  Json settings = Json::object();
  std::string_view rest = report.settings;
  while (!rest.empty()) {
    const auto line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const auto equals = line.find('=');
    if (equals != std::string_view::npos) {
      settings[one_line(line.substr(0, equals))] = one_line(line.substr(equals + 1));
    }
  }
  const bool site = report.kind == &site_state_kind();
  return {{"sotto", SOTTO_VERSION},
          {"file", printable(path)},
          {"kind", report.kind->noun},
          {"version", report.kind->version},
          {"bytes", report.bytes},
          {"round", report.round},
          {site ? "life" : "rank", report.first},
          {site ? "number" : "nodes", report.second},
          {"whole", report.trouble.empty()},
          {"trouble", report.trouble},
          {"sections", sections},
          {"settings", settings}};
}

void print(const console::Output& output, const Json& report) {
  const bool site = report.contains("life");
  output.line(fmt::format(
      "{}: a {} of round {}, {}", report.at("file").get<std::string>(),
      report.at("kind").get<std::string>(), report.at("round").get<std::uint64_t>(),
      site ? fmt::format("number {} of life {}", report.at("number").get<std::uint32_t>(),
                         report.at("life").get<std::uint32_t>())
           : fmt::format("node {} of {}", report.at("rank").get<std::uint32_t>(),
                         report.at("nodes").get<std::uint32_t>())));
  std::vector<std::vector<std::string>> rows;
  for (const Json& section : report.at("sections")) {
    rows.push_back({section.at("name").get<std::string>(),
                    study::amount(section.at("bytes").get<double>()),
                    section.at("whole").get<bool>() ? "right" : "WRONG"});
  }
  output.table({"section", "size", "checksum"}, rows);
  if (!report.at("whole").get<bool>()) {
    output.line(fmt::format("damaged: {}", report.at("trouble").get<std::string>()));
  }
  output.line("");
  for (const auto& [name, value] : report.at("settings").items()) {
    output.line(fmt::format("{} = {}", name, value.get<std::string>()));
  }
}

Result<FileReport> inspect(const std::string& path) {
  const std::array<const FileKind*, 2> kinds = {&checkpoint_kind(), &site_state_kind()};
  return inspect_file(path, kinds);
}

int inspect_one(const InspectOptions& options, const console::Output& output) {
  const auto report = inspect(options.file);
  if (!report.ok()) {
    throw std::runtime_error(report.status().message());
  }
  const Json json = report_json(options.file, *report);
  print(output, json);
  output.json(json);
  return report->trouble.empty() ? console::kDone : console::kFailed;
}

/// Files of checkpoints, by round, the newest first, and of sites' states, by name.
std::vector<std::string> states_in(const std::string& folder) {
  const auto checkpoints = checkpoints_in(folder);
  if (!checkpoints.ok()) {
    throw std::runtime_error(printable(checkpoints.status().message()));
  }
  std::vector<std::string> paths;
  for (const CheckpointName& name : *checkpoints) {
    paths.push_back(name.path);
  }
  for (const char* name : {"state.a", "state.b"}) {
    const auto path = fs::path(folder) / name;
    if (std::error_code code; fs::exists(path, code)) {
      paths.push_back(path.string());
    }
  }
  return paths;
}

int inspect_folder(const InspectOptions& options, const console::Output& output) {
  Json files = Json::array();
  std::vector<std::vector<std::string>> rows;
  bool whole = true;
  for (const std::string& path : states_in(options.file)) {
    const auto report = inspect(path);
    const std::string trouble = report.ok() ? report->trouble : report.status().message();
    whole &= trouble.empty();
    files.push_back(
        report.ok()
            ? report_json(path, *report)
            : Json{{"file", printable(path)}, {"whole", false}, {"trouble", printable(trouble)}});
    rows.push_back({printable(fs::path(path).filename().string()),
                    report.ok() ? fmt::to_string(report->round) : "?",
                    report.ok() ? study::amount(static_cast<double>(report->bytes)) : "?",
                    trouble.empty() ? "whole" : "DAMAGED: " + printable(trouble)});
  }
  if (rows.empty()) {
    throw std::runtime_error(printable(options.file) + ": there is no checkpoint in this folder");
  }
  output.table({"file", "round", "size", "state"}, rows);
  output.json({{"sotto", SOTTO_VERSION},
               {"folder", printable(options.file)},
               {"whole", whole},
               {"files", files}});
  return whole ? console::kDone : console::kFailed;
}

int run(const InspectOptions& options) {
  const console::Output output(options.common);
  std::error_code code;
  return fs::is_directory(options.file, code) ? inspect_folder(options, output)
                                              : inspect_one(options, output);
}

}  // namespace

console::Command add_inspect_command(CLI::App& checkpoint) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = checkpoint.add_subcommand(
      "inspect", "Tells what a checkpoint, or a site's state, holds and whether it is whole");
  command->add_option("FILE", options->file, "The file, or a folder with such files")
      ->type_name("FILE")
      ->required();
  return completed(*command, options, kCheckpointInspectExamples, run);
}

}  // namespace sotto::cli
