#include <sotto/study/plan/train_command.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include <sotto/comm/transport.h>
#include <sotto/study/scenario/batch_speeds.h>
#include <sotto/study/train/batch_share.h>

namespace sotto::study {
namespace {

/// One word of a POSIX shell.
std::string as_word(const std::string& text) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
  };
  if (std::ranges::all_of(text, plain)) {
    return text;
  }
  std::string word = "'";
  for (const char c : text) {
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return word + "'";
}

/// The transport that the scenario is about, else one for several hosts; empty: this build has
/// none.
std::string transport_of(const Scenario& scenario) {
  const TransportModel zmq = TransportModel::zmq();
  for (const TransportInfo& info : transports()) {
    const bool other =
        scenario.transport.on_demand
            ? info.name != "gloo"
            : scenario.transport.send_buffer_bytes == zmq.send_buffer_bytes && info.name != "zmq";
    if (info.available && info.processes && !other) {
      return std::string(info.name);
    }
  }
  return "";
}

}  // namespace

std::vector<RunSetting> command_settings(const RunSpec& run, const Scenario& scenario,
                                         Round rounds) {
  std::vector<RunSetting> settings = {{"nodes", fmt::format("{}", scenario.nodes)}};
  const std::vector<RunSetting> given = joined_settings(run, scenario.task_settings);
  settings.insert(settings.end(), given.begin(), given.end());
  for (RunSetting& setting : settings) {
    if (setting.name == "batch-share" && setting.value == kShareBySpeed) {
      setting.value = speeds_text(batch_speeds(scenario));
    }
  }
  if (std::ranges::none_of(given, &RunSetting::is_length)) {
    settings.push_back({"rounds", fmt::format("{}", rounds)});
  }
  if (const std::uint64_t seed = scenario.task.seed; seed != 0) {
    settings.push_back({"seed", fmt::format("{}", seed)});
  }
  if (const std::string transport = transport_of(scenario); !transport.empty()) {
    settings.push_back({"transport", transport});
  }
  return settings;
}

std::string train_command(const RunSpec& run, const Scenario& scenario, Round rounds) {
  std::string command = "sotto train";
  for (const RunSetting& setting : command_settings(run, scenario, rounds)) {
    command += ' ' + as_word(fmt::format("--{}={}", setting.name, setting.value));
  }
  return command;
}

}  // namespace sotto::study
