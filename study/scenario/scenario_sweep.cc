// The scenarios of a sweep: the file with other values at some of its keys.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/error.h>
#include <sotto/study/scenario/internal/sweep.h>

namespace sotto::study {
namespace {

constexpr std::size_t kMostKeys = 2;
constexpr std::size_t kMostPoints = 1000;
/// The nodes of all points together: each has a scenario of its own in memory, 200 bytes a node.
constexpr std::size_t kMostNodesInAll = 10'000'000;

/// One key of the sweep, in its parts, and what it is to hold.
struct Swept {
  std::string key;
  std::vector<std::string> parts;
  std::string name;  ///< the key's last parts, enough to tell it from the other key
  std::vector<const toml::node*> values;
  std::vector<std::string> texts;  ///< the values as text
};

std::vector<std::string> parts_of(const std::string& key) {
  std::vector<std::string> parts;
  for (std::size_t from = 0; from <= key.size();) {
    const std::size_t dot = std::min(key.find('.', from), key.size());
    parts.push_back(key.substr(from, dot - from));
    from = dot + 1;
  }
  return parts;
}

std::optional<std::string> name_in(const toml::node& node) {
  const toml::table* const table = node.as_table();
  return table == nullptr ? std::nullopt : (*table)["name"].value<std::string>();
}

/// Puts `value` where parts[at…] lead from `node`: through tables, into all tables of a list, or
/// into the one that has a name. False where they lead nowhere.
bool put(toml::node& node, const std::vector<std::string>& parts, std::size_t at,
         const toml::node& value) {
  if (toml::table* const table = node.as_table()) {
    if (at + 1 == parts.size()) {
      value.visit([&](const auto& held) { table->insert_or_assign(parts[at], held); });
      return true;
    }
    toml::node* const next = table->get(parts[at]);
    return next != nullptr && put(*next, parts, at + 1, value);
  }
  toml::array* const list = node.as_array();
  if (list == nullptr || list->empty()) {
    return false;
  }
  const auto named = std::find_if(list->begin(), list->end(),
                                  [&](const toml::node& one) { return name_in(one) == parts[at]; });
  if (named != list->end() && at + 1 < parts.size()) {
    return put(*named, parts, at + 1, value);
  }
  return std::all_of(list->begin(), list->end(),
                     [&](toml::node& one) { return put(one, parts, at, value); });
}

/// The keys of a table as they stand in the file: the table sorts them by name.
std::vector<const toml::key*> keys_in_order(const toml::table& table) {
  std::vector<const toml::key*> keys;
  for (const auto& [key, node] : table) {
    keys.push_back(&key);
  }
  std::ranges::stable_sort(keys, [](const toml::key* a, const toml::key* b) {
    const auto at = [](const toml::key* key) {
      return std::pair(key->source().begin.line, key->source().begin.column);
    };
    return at(a) < at(b);
  });
  return keys;
}

void read_values(const toml::node& node, const std::string& place, Swept& one) {
  const std::string where = fmt::format("{}.\"{}\"", place, one.key);
  const toml::array* const values = node.as_array();
  if (values == nullptr || values->empty()) {
    throw Error(fmt::format(
        "{}: give a list of the values that it is to have, e.g. [\"1 Mbit/s\", \"10 Mbit/s\"]",
        where));
  }
  for (const toml::node& value : *values) {
    one.values.push_back(&value);
    one.texts.push_back(toml_value_text(value, place, one.key));
    if (std::ranges::count(one.texts, one.texts.back()) > 1) {
      throw Error(fmt::format("{}: '{}' stands there twice", where, one.texts.back()));
    }
  }
}

/// Names keys by as few of their last parts as tell them apart.
void name_keys(std::vector<Swept>& all) {
  std::size_t shared = 0;
  if (all.size() == kMostKeys) {
    const auto& a = all.front().parts;
    const auto& b = all.back().parts;
    while (shared + 1 < std::min(a.size(), b.size()) &&
           a[a.size() - 1 - shared] == b[b.size() - 1 - shared]) {
      ++shared;
    }
  }
  for (Swept& one : all) {
    const auto last = one.parts.end() - static_cast<std::ptrdiff_t>(shared + 1);
    one.name = fmt::format("{}", fmt::join(last, one.parts.end(), "."));
  }
}

std::vector<Swept> read_swept(const toml::table& sweep, const std::string& place) {
  std::vector<Swept> all;
  std::size_t points = 1;
  for (const toml::key* const key : keys_in_order(sweep)) {
    Swept& one = all.emplace_back();
    one.key = key->str();
    one.parts = parts_of(one.key);
    read_values(*sweep.get(key->str()), place, one);
    points *= one.values.size();
  }
  if (all.empty() || all.size() > kMostKeys || points > kMostPoints) {
    throw Error(
        fmt::format("{}: a sweep has one key or two, and {} points at most", place, kMostPoints));
  }
  name_keys(all);
  return all;
}

/// The file with one value of each key, `turn` says which.
SweepPoint point_of(const std::vector<Swept>& swept, const std::vector<std::size_t>& turn,
                    const std::string& place, toml::table& changed) {
  SweepPoint point;
  for (std::size_t k = 0; k < swept.size(); ++k) {
    const Swept& one = swept[k];
    if (!put(changed, one.parts, 0, *one.values[turn[k]])) {
      throw Error(fmt::format("{}.\"{}\": the file has nothing there", place, one.key));
    }
    const std::string& text = one.texts[turn[k]];
    point.name += fmt::format("{}{}={}", k == 0 ? "" : ", ", one.name, text);
    point.values.emplace_back(one.key, text);
  }
  return point;
}

}  // namespace

std::vector<std::shared_ptr<const SweepPoint>> read_sweep(
    const toml::table& file, const std::string& path, const std::function<toml::table()>& parse,
    const std::function<Scenario(const toml::table& changed)>& read) {
  const toml::node* const node = file.get("sweep");
  if (node == nullptr) {
    return {};
  }
  const std::string place = fmt::format("{}: sweep", toml_place(path, *node));
  if (!node->is_table()) {
    throw Error(fmt::format("{}: it is a table, {{ \"network.link.bandwidth\" = [...] }}", place));
  }
  const std::vector<Swept> swept = read_swept(*node->as_table(), place);
  std::vector<std::shared_ptr<const SweepPoint>> points;
  std::vector<std::size_t> turn(swept.size());
  std::size_t nodes = 0;
  for (;;) {
    toml::table changed = parse();  // a copy would not know its lines
    changed.erase("sweep");
    SweepPoint point = point_of(swept, turn, place, changed);
    try {
      point.scenario = std::make_shared<const Scenario>(read(changed));
    } catch (const Error& error) {
      throw Error(fmt::format("{}: with {}: {}", place, point.name, error.what()));
    }
    nodes += static_cast<std::size_t>(point.scenario->nodes);
    if (nodes > kMostNodesInAll) {
      throw Error(fmt::format("{}: its points have more than {} nodes together; sweep fewer values",
                              place, kMostNodesInAll));
    }
    points.push_back(std::make_shared<const SweepPoint>(std::move(point)));
    std::size_t k = swept.size();
    while (k > 0 && ++turn[k - 1] == swept[k - 1].values.size()) {
      turn[--k] = 0;
    }
    if (k == 0) {
      return points;
    }
  }
}

}  // namespace sotto::study
