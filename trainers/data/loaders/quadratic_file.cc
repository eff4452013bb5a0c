#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sotto/base/decoded_text.h>
#include <sotto/base/error.h>
#include <sotto/base/json_text.h>
#include <sotto/trainers/tasks/quadratic.h>

#include "file.h"

namespace sotto {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 28;
constexpr std::size_t kMostDepth = 4;  // {"nodes": [{"h": [1]}]}

/// Reads one problem; knows the file for the sake of messages.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {}

  QuadraticProblem read() const {
    const Json root = parse();
    QuadraticProblem problem;
    for (const double value : numbers(member(root, "the file", "start"), "start")) {
      if (std::abs(value) > static_cast<double>(std::numeric_limits<float>::max())) {
        refuse_file(path_, "start", "a number does not fit a 32-bit float");
      }
      problem.start.push_back(static_cast<float>(value));
    }
    const Json& nodes = member(root, "the file", "nodes");
    if (!nodes.is_array() || nodes.empty()) {
      refuse_file(path_, "nodes", "a list with at least one node is expected");
    }
    for (const Json& node : nodes) {
      const std::string place = fmt::format("nodes[{}]", problem.nodes.size());
      problem.nodes.push_back({.h = vector(node, place, "h", problem.start.size()),
                               .c = vector(node, place, "c", problem.start.size())});
    }
    return problem;
  }

 private:
  Json parse() const {
    const std::string text =
        decode_text(read_file(path_, kMostBytes), path_.string(), kMostBytes).text;
    try {
      return parse_json<Json>(text, kMostDepth);
    } catch (const Error& error) {
      refuse_file(path_, "", error.what());
    }
  }

  const Json& member(const Json& object, std::string_view place, const char* key) const {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end()) {
      refuse_file(path_, place, fmt::format("an object with \"{}\" is expected", key));
    }
    return *found;
  }

  std::vector<double> numbers(const Json& list, std::string_view place) const {
    if (!list.is_array() || list.empty()) {
      refuse_file(path_, place, "a list of numbers is expected");
    }
    std::vector<double> values;
    values.reserve(list.size());
    for (const Json& value : list) {
      if (!value.is_number() || !std::isfinite(value.get<double>())) {
        refuse_file(path_, fmt::format("{}[{}]", place, values.size()),
                    "a finite number is expected");
      }
      values.push_back(value.get<double>());
    }
    return values;
  }

  std::vector<double> vector(const Json& node, const std::string& place, const char* key,
                             std::size_t dimension) const {
    const std::string here = fmt::format("{}.{}", place, key);
    auto values = numbers(member(node, place, key), here);
    if (values.size() != dimension) {
      refuse_file(
          path_, here,
          fmt::format("{} numbers are expected, as in start; found {}", dimension, values.size()));
    }
    return values;
  }

  std::filesystem::path path_;
};

}  // namespace

std::shared_ptr<const QuadraticProblem> load_quadratic(const std::filesystem::path& file) {
  return std::make_shared<const QuadraticProblem>(Reader(file).read());
}

}  // namespace sotto
