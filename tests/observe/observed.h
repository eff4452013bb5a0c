// What a run has told of itself, read back.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <sotto/observe/event_record.h>

#include "support/text_of_file.h"

namespace sotto::test {

inline std::vector<nlohmann::json> lines_of(const std::filesystem::path& path,
                                            std::string_view prefix = "") {
  std::istringstream in(text_of_file(path));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) {
    REQUIRE(line.starts_with(prefix));
    lines.push_back(nlohmann::json::parse(line.substr(prefix.size())));
  }
  return lines;
}

template <typename T>
T number_at(const std::string& bytes, std::size_t at) {
  T value{};
  REQUIRE(at + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// The data of each record; frame and checksums are checked.
inline std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (std::size_t at = 0; at < file.size();) {
    const auto length = number_at<std::uint64_t>(file, at);
    CHECK(number_at<std::uint32_t>(file, at + 8) == sotto::masked_crc32c(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, length));
    REQUIRE(records.back().size() == length);
    CHECK(number_at<std::uint32_t>(file, at + 12 + length) == sotto::masked_crc32c(records.back()));
    at += 12 + length + 4;
  }
  return records;
}

inline std::string event_file(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      return entry.path().string();
    }
  }
  return {};
}

/// X events of each thread nest and come in the order of their ends, what is said to begin in a
/// process ends there, and every process and thread has a name; the names that there are.
inline std::set<std::string> check_trace(const nlohmann::json& trace) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
  std::map<std::pair<int, std::string>, int> open;
  std::set<int> processes;
  std::set<std::pair<int, int>> named;
  std::set<std::string> names;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    names.insert(event.at("name"));
    const std::string phase = event.at("ph");
    CHECK(event.at("ts").get<double>() >= 0);
    processes.insert(event.at("pid").get<int>());
    if (phase == "X") {
      const double from = event.at("ts");
      threads[{event.at("pid"), event.at("tid")}].emplace_back(
          from, from + event.at("dur").get<double>());
    } else if (phase == "b" || phase == "e") {
      open[{event.at("pid"), event.at("id2").at("local")}] += phase == "b" ? 1 : -1;
    } else if (event.at("name") == "process_name") {
      named.emplace(event.at("pid"), 0);
    } else if (event.at("name") == "thread_name") {
      named.emplace(event.at("pid"), event.at("tid"));
    }
  }
  for (const auto& [id, count] : open) {
    CHECK(count == 0);
  }
  for (const int process : processes) {
    CAPTURE(process);
    CHECK(named.contains({process, 0}));
  }
  constexpr double kRounding = 0.0015;  // microseconds, of two sums
  for (const auto& [thread, spans] : threads) {
    CHECK(named.contains(thread));
    for (std::size_t k = 1; k < spans.size(); ++k) {
      CHECK(spans[k - 1].second <= spans[k].second + kRounding);
      const bool apart = spans[k - 1].second <= spans[k].first + kRounding;
      const bool around = spans[k].first <= spans[k - 1].first + kRounding;
      CHECK((apart || around));
    }
  }
  return names;
}

}  // namespace sotto::test
