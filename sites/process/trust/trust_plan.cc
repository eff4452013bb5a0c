#include "trust_plan.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sotto/base/delimited_text.h>
#include <sotto/base/error.h>
#include <sotto/base/name_length.h>
#include <sotto/base/number.h>
#include <sotto/base/text.h>
#include <sotto/comm/trust/peers_file.h>

namespace sotto {
namespace {

constexpr std::size_t kMostColumns = 16;

/// Why no folder and no list takes the name; empty where they do.
std::string_view fault_of_name(const std::string& name) {
  if (name.empty() || name.size() > kMostNameBytes) {
    return "a name has 1 to 100 bytes";
  }
  if (one_line(name) != name || name.find_first_of("/\\,\"") != std::string::npos) {
    return "a name goes into lists and names a folder: no slash, backslash, comma, quote or "
           "control character, and valid UTF-8";
  }
  if (name.front() == '.' || name.front() == '-' || name.front() == '#') {
    return "a name does not begin with a dot, a hyphen or #";
  }
  return small_letters(name) == "overview.csv" ? "a file of this name goes beside the folders" : "";
}

/// Takes a table with named columns apart, line by line.
class Table {
 public:
  Table(const std::string& path, std::string_view text, std::vector<std::string_view> columns)
      : path_(path),
        rest_(text),
        columns_(std::move(columns)),
        splitter_(Dialect{}, kMostColumns),
        places_(columns_.size(), kMostColumns) {
    skip_byte_order_mark(rest_);
    const auto* const header = next_fields();
    if (header == nullptr) {
      refuse_line("the file is empty; its first line names the columns");
    }
    width_ = header->size();
    for (std::size_t i = 0; i < width_; ++i) {
      const auto found = std::ranges::find(columns_, (*header)[i]);
      if (found == columns_.end()) {
        refuse_line(fmt::format("'{}' is no column; there are {}", excerpt((*header)[i]),
                                fmt::join(columns_, ", ")));
      }
      auto& place = places_[static_cast<std::size_t>(found - columns_.begin())];
      if (place != kMostColumns) {
        refuse_line(fmt::format("the column '{}' is there twice", *found));
      }
      place = i;
    }
  }

  [[noreturn]] void refuse_line(const std::string& why) const {
    throw Error(fmt::format("{}:{}: {}", path_, line_, why));
  }
  void require(std::size_t column) const {
    if (places_[column] == kMostColumns) {
      refuse_line(fmt::format("the column '{}' is missing", columns_[column]));
    }
  }
  /// False at the end.
  bool next() {
    row_ = next_fields();
    if (row_ != nullptr && row_->size() != width_) {
      refuse_line(fmt::format("{} cells where the first line has {}", row_->size(), width_));
    }
    return row_ != nullptr;
  }
  std::string_view cell(std::size_t column) const {
    return places_[column] == kMostColumns ? std::string_view() : (*row_)[places_[column]];
  }

 private:
  const std::vector<std::string_view>* next_fields() {
    std::string_view line;
    while (take_line(rest_, line)) {
      ++line_;
      if (trimmed(line).empty() || trimmed(line).front() == '#') {
        continue;
      }
      const auto& fields = splitter_.split(line);
      if (!splitter_.fault().empty()) {
        refuse_line(splitter_.fault());
      }
      return &fields;
    }
    return nullptr;
  }

  const std::string path_;
  std::string_view rest_;
  std::vector<std::string_view> columns_;
  FieldSplitter splitter_;
  std::vector<std::size_t> places_;
  std::size_t width_ = 0;
  std::size_t line_ = 0;
  const std::vector<std::string_view>* row_ = nullptr;
};

}  // namespace

TrustPlan parse_trust_plan(const std::string& path, std::string_view text) {
  Table table(path, text, {"name", "address", "observer"});
  table.require(0);
  TrustPlan plan;
  std::map<std::string, std::string> taken;
  while (table.next()) {
    PlannedSite site{std::string(table.cell(0)), std::string(table.cell(1))};
    if (const auto fault = fault_of_name(site.name); !fault.empty()) {
      table.refuse_line(fmt::format("name: '{}': {}", printable(excerpt(site.name)), fault));
    }
    const auto [first, fresh] = taken.emplace(small_letters(site.name), site.name);
    if (!fresh) {
      table.refuse_line(
          fmt::format("name: '{}' is there already, as '{}'; names that differ in "
                      "case alone are one folder on some systems",
                      site.name, first->second));
    }
    const auto observer = table.cell(2);
    if (!observer.empty() && observer != "yes" && observer != "no") {
      table.refuse_line(
          fmt::format("observer: '{}': it is yes or no", printable(excerpt(observer))));
    }
    if (site.address.find_first_of(",\n\r") != std::string::npos) {
      table.refuse_line("address: several addresses have spaces between them");
    }
    site.observer = observer == "yes";
    if (plan.sites.size() == kMostPeers) {
      table.refuse_line(fmt::format("more than {} sites", kMostPeers));
    }
    plan.sites.push_back(std::move(site));
  }
  if (plan.sites.size() < 2) {
    throw Error(
        fmt::format("{}: it lists {} sites; a federation has 2 or more", path, plan.sites.size()));
  }
  for (std::size_t from = 0; from < plan.sites.size(); ++from) {
    for (std::size_t to = 0; to < plan.sites.size(); ++to) {
      if (from != to && !plan.sites[from].observer) {
        plan.edges.emplace_back(from, to);
      }
    }
  }
  return plan;
}

void take_trust_edges(TrustPlan& plan, const std::string& path, std::string_view text) {
  Table table(path, text, {"from", "to"});
  table.require(0);
  table.require(1);
  std::map<std::string, std::size_t, std::less<>> places;
  for (std::size_t i = 0; i < plan.sites.size(); ++i) {
    places.emplace(plan.sites[i].name, i);
  }
  const auto place_of = [&](std::string_view cell) {
    if (const auto found = places.find(cell); found != places.end()) {
      return found->second;
    }
    const auto number = parse_number<std::size_t>(cell);
    if (!number || *number >= plan.sites.size()) {
      table.refuse_line(fmt::format("'{}' is no site: write a name, or a place from 0 to {}",
                                    printable(excerpt(cell)), plan.sites.size() - 1));
    }
    return *number;
  };
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  while (table.next()) {
    const std::size_t from = place_of(table.cell(0));
    const std::size_t to = place_of(table.cell(1));
    if (from == to) {
      table.refuse_line(fmt::format("{} sends to itself", plan.sites[from].name));
    }
    if (plan.sites[from].observer) {
      table.refuse_line(
          fmt::format("{} is an observer, which sends to nobody", plan.sites[from].name));
    }
    edges.emplace_back(from, to);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  plan.edges = std::move(edges);
}

}  // namespace sotto
