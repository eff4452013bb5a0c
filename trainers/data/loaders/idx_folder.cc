#include "idx_folder.h"

#include <algorithm>
#include <map>
#include <regex>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/base/names.h>

#include "file.h"

namespace sotto {
namespace {

constexpr std::string_view kExpectedFiles =
    "expected are train-images-idx3-ubyte and train-labels-idx1-ubyte, or t10k-images-idx3-ubyte "
    "and t10k-labels-idx1-ubyte, or all four, each as it is or with .gz";
constexpr std::size_t kMostEntries = 10'000;
constexpr std::size_t kMostFileName = 200;

/// A pair of which one file may be missing.
struct Found {
  std::filesystem::path images;
  std::filesystem::path labels;
  /// A further file for one of them, and that one.
  std::filesystem::path surplus;
  std::filesystem::path taken;
};

/// The files of a set: what trains, and what tests.
using FoundSet = std::map<bool, Found>;

std::map<std::string, FoundSet> list_sets(const std::filesystem::path& folder) {
  static const std::regex pattern(
      "(?:(.+)[-.])?(train|t10k|test)-(images|labels)[-.]idx[0-9](?:-[a-z0-9]+)?(?:\\.gz)?");
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end && paths.size() < kMostEntries; entry.increment(error)) {
    paths.push_back(entry->path());
  }
  // What is not packed comes before what is, and is taken.
  std::sort(paths.begin(), paths.end());
  std::map<std::string, FoundSet> sets;
  for (const auto& path : paths) {
    const std::string name = path.filename().string();
    std::smatch match;
    if (name.size() > kMostFileName || !std::regex_match(name, match, pattern)) {
      continue;
    }
    Found& found = sets[match[1].str()][match[2].str() == "train"];
    std::filesystem::path& place = match[3].str() == "images" ? found.images : found.labels;
    if (place.empty()) {
      place = path;
    } else if (path != place.string() + ".gz") {
      found.surplus = path;
      found.taken = place;
    }
  }
  return sets;
}

std::string replaced_in(std::string text, std::string_view old, std::string_view with) {
  if (const std::size_t at = text.rfind(old); at != std::string::npos) {
    text.replace(at, old.size(), with);
  }
  return text;
}

IdxPair whole_pair(const Found& found) {
  if (!found.surplus.empty()) {
    refuse_file(found.surplus, "",
                fmt::format("{} is there for the same; leave one of them",
                            found.taken.filename().string()));
  }
  const bool has_images = !found.images.empty();
  if (has_images && !found.labels.empty()) {
    return {found.images, found.labels};
  }
  const auto& there = has_images ? found.images : found.labels;
  std::string name = there.filename().string();
  name = name.ends_with(".gz") ? name.substr(0, name.size() - 3) : name;
  const std::string missing =
      has_images ? replaced_in(replaced_in(name, "images", "labels"), "idx3", "idx1")
                 : replaced_in(replaced_in(name, "labels", "images"), "idx1", "idx3");
  refuse_file(
      there.parent_path() / missing, "",
      fmt::format("there is no such file, nor with .gz, to go with {}", there.filename().string()));
}

}  // namespace

IdxFolder find_idx_files(const std::filesystem::path& folder, const std::string& set,
                         const std::string& task) {
  require_folder(folder, kExpectedFiles);
  const auto sets = list_sets(folder);
  if (sets.empty()) {
    refuse_file(folder, "", fmt::format("none of its files is there: {}", kExpectedFiles));
  }
  std::vector<std::string> names;
  names.reserve(sets.size());
  for (const auto& [name, found] : sets) {
    names.push_back(name.empty() ? "mnist" : name);
  }
  const auto chosen = std::find_if(sets.begin(), sets.end(), [&](const auto& one) {
    return one.first == set || (one.first.empty() && set == "mnist") ||
           (!set.empty() && one.first.ends_with("-" + set));
  });
  if (chosen == sets.end() && !set.empty()) {
    refuse_file(folder, "",
                fmt::format("set={}: there is no such data set; there are {}", excerpt(set),
                            fmt::join(names, ", ")));
  }
  if (set.empty() && sets.size() > 1) {
    refuse_file(
        folder, "",
        fmt::format(
            "several data sets are there: {}{}", fmt::join(names, ", "),
            task.empty() ? "" : fmt::format("; say which, as {},set={}", task, names.back())));
  }
  const auto& [name, found] = set.empty() ? *sets.begin() : *chosen;
  IdxFolder files{.set = name, .train = std::nullopt, .test = std::nullopt};
  for (const auto& [trains, pair] : found) {
    (trains ? files.train : files.test) = whole_pair(pair);
  }
  return files;
}

}  // namespace sotto
